# SPDX-License-Identifier: Apache-2.0

"""The list of all options, for oslo-config-generator."""

from oslo_config import cfg

from hpcvirt.conf import filters
from hpcvirt.conf import group
from hpcvirt.conf import weights


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """List the options of all groups.

    The entry point group ``oslo.config.opts`` names this function.
    """
    return [(group.GROUP, [*filters.list_opts(), *weights.list_opts()])]

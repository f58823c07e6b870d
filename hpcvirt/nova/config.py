# SPDX-License-Identifier: Apache-2.0

"""Register and read options in Nova's configuration.

Importing a module registers no options. A plug-in calls :func:`register` when
nova-scheduler creates it, and reads the options afterwards.
"""

import nova.conf
from oslo_config import cfg

from hpcvirt.conf import filters
from hpcvirt.conf import weights


def register() -> cfg.ConfigOpts:
    """Register the options and return Nova's configuration."""
    conf: cfg.ConfigOpts = nova.conf.CONF
    filters.register_opts(conf)
    weights.register_opts(conf)
    return conf


def read_packing() -> bool:
    """Read ``[compute]packing_host_numa_cells_allocation_strategy``.

    The claim on the compute host reads it too, and takes the fullest cells of
    the host first if it is set, the emptiest otherwise. Read it once per
    request: reading an option takes longer than refusing a host.
    """
    return bool(nova.conf.CONF.compute
                .packing_host_numa_cells_allocation_strategy)

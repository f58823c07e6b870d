# SPDX-License-Identifier: Apache-2.0

"""The entry point for Tempest: the path of the tests, and their options."""

import pathlib
from typing import Any

from oslo_config import cfg
from tempest.test_discover import plugins

from hpcvirt.tempest_plugin import config


class HpcvirtTempestPlugin(plugins.TempestPlugin):
    """The plugin, whose tests ``tempest run --regex hpcvirt`` runs."""

    def load_tests(self) -> tuple[str, str]:
        root = pathlib.Path(__file__).resolve().parent
        return str(root / 'tests'), str(root.parents[1])

    def register_opts(self, conf: cfg.ConfigOpts) -> None:
        config.register_opts(conf)

    def get_opt_lists(self) -> list[tuple[str, list[Any]]]:
        return [(config.GROUP.name, list(config.OPTIONS))]

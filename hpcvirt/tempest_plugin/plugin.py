# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""The entry point for Tempest: the place of the tests and their options."""

import pathlib
from typing import Any

from oslo_config import cfg
from tempest.test_discover import plugins

from hpcvirt.tempest_plugin import config


class HpcvirtTempestPlugin(plugins.TempestPlugin):
    """Registers the tests, which ``tempest run --regex hpcvirt`` runs."""

    def load_tests(self) -> tuple[str, str]:
        root = pathlib.Path(__file__).resolve().parent
        return str(root / 'tests'), str(root.parents[1])

    def register_opts(self, conf: cfg.ConfigOpts) -> None:
        config.register_opts(conf)

    def get_opt_lists(self) -> list[tuple[str, list[Any]]]:
        return [(config.GROUP.name, list(config.OPTIONS))]

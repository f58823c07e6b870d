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

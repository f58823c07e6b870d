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

"""The group ``[hpcvirt]`` in Nova's configuration.

Importing a module registers no options. A plug-in calls :func:`ready` when
nova-scheduler creates it, and reads the options afterwards.
"""

import nova.conf
from oslo_config import cfg

from hpcvirt.conf import filters
from hpcvirt.conf import weights


def ready() -> cfg.ConfigOpts:
    """Register the options and return Nova's configuration."""
    conf: cfg.ConfigOpts = nova.conf.CONF
    filters.register_opts(conf)
    weights.register_opts(conf)
    return conf

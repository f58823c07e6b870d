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

"""Read the nova.conf that decides a replay."""

import nova.conf
from nova import exception as nova_exception
from nova import objects

from hpcvirt import exception
from hpcvirt.nova import config
from hpcvirt.nova.controller import masking
from hpcvirt.nova.controller import settings
from hpcvirt.nova.replay import scheduler


def load(path: str) -> None:
    """Read the options of nova-scheduler and nova-compute from a file.

    Neither a database nor Placement is used.

    :raises InvalidInput: if the file cannot be used, or names a filter or a
        weigher that is not installed
    """
    settings.parse((path,))
    config.ready()
    conf = nova.conf.CONF
    # The fleet says which devices its hosts have, and the replay lets the
    # claim choose among them.
    conf.set_override('device_spec', [], 'pci')
    conf.set_override('pci_in_placement', False, 'filter_scheduler')
    objects.register_all()
    try:
        with settings.usable():
            scheduler.Manager()
    except (nova_exception.NovaException, ImportError, ValueError) as exc:
        raise exception.InvalidInput(path, masking.masked(exc)) from None

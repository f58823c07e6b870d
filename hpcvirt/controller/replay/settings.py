# SPDX-License-Identifier: Apache-2.0

"""Read the nova.conf of a replay."""

import nova.conf
from nova import exception as nova_exception
from nova import objects

from hpcvirt import exception
from hpcvirt.controller import masking
from hpcvirt.controller import settings
from hpcvirt.controller.replay import in_process_scheduler
from hpcvirt.nova import config


def load(path: str) -> None:
    """Read the options of nova-scheduler and nova-compute from a file.

    Neither a database nor Placement is used.

    :raises InvalidInput: if the file cannot be used, or names a filter or a
        weigher that is not installed
    """
    settings.parse((path,))
    config.register()
    conf = nova.conf.CONF
    # The fleet describes the devices of its hosts, and the claim chooses among
    # them.
    conf.set_override('device_spec', [], 'pci')
    conf.set_override('pci_in_placement', False, 'filter_scheduler')
    objects.register_all()
    try:
        with settings.convert_errors():
            in_process_scheduler.ReplayHostManager()
    except (nova_exception.NovaException, ImportError, ValueError) as exc:
        raise exception.InvalidInput(path, masking.mask(exc)) from None

# SPDX-License-Identifier: Apache-2.0

"""PCI requests and pools."""

from hpcvirt.fit import devices
from hpcvirt.model import shape


def request(count=1, affinity='required', **tags):
    """Request devices that have tags."""
    return devices.DeviceRequest((tags,), count, shape.PCIAffinity(affinity))


def pool(cell, free, provider=None, **tags):
    """Make a pool of free devices of a cell."""
    return devices.Pool(cell, free, tags, provider)


#: Two sockets of two cells.
SOCKETS = {0: 0, 1: 0, 2: 1, 3: 1}

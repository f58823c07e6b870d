# SPDX-License-Identifier: Apache-2.0

"""Read what a bridge is, and its ACS, from its PCI configuration space.

The kernel gives the first 64 bytes to any user, and the capabilities behind
them to root only. Registers: PCI Express Base Specification 6.0, 7.5 and 7.7.
"""

from hpcvirt.model import wiring

_TYPES = {4: wiring.PortKind.ROOT, 5: wiring.PortKind.UPSTREAM,
          6: wiring.PortKind.DOWNSTREAM, 7: wiring.PortKind.BRIDGE,
          8: wiring.PortKind.BRIDGE}

#: Extended capabilities follow the 256 bytes of conventional PCI.
_EXTENDED = 0x100
_WHOLE = 0x1000

_PCI_EXPRESS = 0x10
_ACS = 0x0d


def read_bridge(data: bytes) -> tuple[wiring.PortKind | None,
                                      frozenset[str] | None]:
    """Read the kind and the ACS of a bridge.

    :param data: the content of the file ``config``, whole or in part
    :returns: what it is and the controls of ACS that are on; None for either
        if it cannot be read
    """
    if len(data) < _EXTENDED:
        return None, None
    place = data[0x34] & 0xfc if data[0x06] & 0x10 else 0
    for _ in range(_EXTENDED // 4):
        if not place:
            return wiring.PortKind.BRIDGE, frozenset()
        if data[place] == _PCI_EXPRESS:
            return _TYPES.get(data[place + 2] >> 4), _read_acs(data)
        place = data[place + 1] & 0xfc
    return None, None


def _read_acs(data: bytes) -> frozenset[str] | None:
    place = _EXTENDED
    for _ in range(_WHOLE // 4):
        header = int.from_bytes(data[place:place + 4], 'little')
        if header & 0xffff == _ACS and len(data) > place + 6:
            return frozenset(
                name for bit, name in enumerate(wiring.ACS_CONTROLS)
                if data[place + 6] >> bit & 1)
        place = header >> 20 & 0xffc
        if not place and len(data) >= _WHOLE:
            return frozenset()
    return None

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

"""Which PCI functions a topology lists: one rule for every source.

The class code alone decides, since every source knows it: not the driver
(a function bound to vfio-pci is as much a network adapter as before) and not
the SR-IOV capability, which hwloc does not tell. Virtual functions have the
class of their physical function and are listed beside it.
"""

from hpcvirt import exception

#: Base classes (PCI Code and ID Assignment Specification) of which every
#: function is listed.
_BASE_CLASSES = {
    0x02,  # network controllers: Ethernet, InfiniBand, Omni-Path
    0x12,  # processing accelerators
}

#: Single classes beside them. Left out on purpose: 0300, the VGA console of
#: nearly every server; 0100, 0104, 0106 and 0107, the disks that the host
#: itself runs on; 1080, the security processor in every EPYC.
_CLASSES = {
    0x0108,  # NVMe
    0x0302,  # 3D controllers: GPUs without a display
    0x0380,  # other display controllers: GPUs without a display, too
    0x0b40,  # co-processors: QuickAssist
    0x0c06,  # InfiniBand, before the class 0207 existed
}


def is_listed(class_code: int) -> bool:
    """Tell whether a function of this class belongs into a topology.

    :param class_code: base class and subclass: 0x0200 is Ethernet
    """
    return class_code >> 8 in _BASE_CLASSES or class_code in _CLASSES


def hexadecimal(text: str, where: str, what: str, digits: int) -> int:
    """Read a hexadecimal number, with or without ``0x``.

    :param digits: how many digits it has at most
    :raises InvalidInput: if it is anything else
    """
    bare = text.strip().lower().removeprefix('0x')
    if not 1 <= len(bare) <= digits or set(bare) - set('0123456789abcdef'):
        raise exception.InvalidInput(
            where, f'{what} is {text.strip()[:40]!r}, not a hexadecimal '
            f'number of {digits} digits')
    return int(bare, 16)

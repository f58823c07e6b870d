# SPDX-License-Identifier: Apache-2.0

"""Read the facts of the devices: IOMMU, virtual functions, their creators."""

import dataclasses
import re
from collections.abc import Iterator
from collections.abc import Mapping

from hpcvirt.audit.reading.facts import Fact
from hpcvirt.audit.reading.facts import FactGroup
from hpcvirt.audit.reading.files import Files

_PCI = 'sys/bus/pci/devices'
_GROUPS = 'sys/kernel/iommu_groups'
_CLASS = 'sys/class'

#: The classes of devices whose firmware the kernel shows, and the files with
#: the model and the version.
_VERSIONS = (('infiniband', 'board_id', 'fw_ver'),
             ('nvme', 'model', 'firmware_rev'))

#: The directories whose files create virtual functions at boot, and the
#: endings of these files.
_PLACES = (
    ('etc/udev/rules.d', ('.rules',)),
    ('etc/systemd/system', ('.service',)),
    ('etc/systemd/network', ('.link', '.network')),
    ('etc/tmpfiles.d', ('.conf',)),
    ('etc/modprobe.d', ('.conf',)),
    ('etc/NetworkManager/system-connections', ('',)),
    ('etc/netplan', ('.yaml',)),
    ('etc/os-net-config', ('.yaml', '.json')),
    ('etc/network/interfaces.d', ('',)),
    ('etc/tuned', ('.conf',)),
)
_FILES = ('etc/rc.local', 'etc/rc.d/rc.local', 'etc/network/interfaces',
          'etc/os-net-config/sriov_config.yaml')

#: All of them, as a shell finds them.
PATTERNS = (*_FILES, *(f'{place}/*{ending}' for place, endings in _PLACES
                       for ending in endings))

#: The words for virtual functions in the kernel, systemd, NetworkManager,
#: netplan, os-net-config, the drivers, and most scripts of sites.
WORDS = re.compile(
    'sr-?iov|total-vfs|virtual-function-count|max_vfs|num_?vfs',
    re.IGNORECASE)
ADDRESS = re.compile('[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}[.][0-7]')


@dataclasses.dataclass(frozen=True, slots=True)
class VirtualFunctions:
    """The virtual functions of a device.

    :ivar count: how many exist
    :ivar cells: the cells that they say they are near to
    """

    address: str
    count: int
    cells: frozenset[int | None]


def _iommu_types(files: Files) -> frozenset[str]:
    types = {files.text(f'{_GROUPS}/{group}/type', _GROUPS)
             for group in files.names(_GROUPS, 'sys/kernel')}
    return frozenset(kind for kind in types if kind)


def _functions(files: Files) -> Iterator[VirtualFunctions]:
    for address in files.names(_PCI, 'sys'):
        here = f'{_PCI}/{address}'
        if not files.number(f'{here}/sriov_totalvfs', here):
            continue
        links = [name for name in files.names(here, here)
                 if re.fullmatch('virtfn[0-9]+', name)]
        yield VirtualFunctions(
            address.lower(), files.need_number(f'{here}/sriov_numvfs'),
            frozenset(_cell(files, f'{here}/{link}') for link in links))


def _cell(files: Files, device: str) -> int | None:
    number = files.number(f'{device}/numa_node', _PCI)
    return None if number is None or number < 0 else number


def _firmware(files: Files) -> Mapping[str, str]:
    bios = [files.text(f'sys/class/dmi/id/bios_{name}', _CLASS)
            for name in ('vendor', 'version', 'date')]
    found = {'BIOS': {' '.join(filter(None, bios))}} if any(bios) else {}
    for kind, model, version in _VERSIONS:
        for name in files.names(f'{_CLASS}/{kind}', _CLASS):
            here = f'{_CLASS}/{kind}/{name}'
            text = files.text(f'{here}/{version}', _CLASS)
            if text:
                found.setdefault(files.text(f'{here}/{model}', _CLASS) or name,
                                 set()).add(text)
    return {name: ', '.join(sorted(texts)) for name, texts in found.items()}


def _creators(files: Files) -> Mapping[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    names = [*_FILES]
    for place, endings in _PLACES:
        names += [f'{place}/{name}' for name in files.names(place, 'etc')
                  if name.endswith(endings)]
    for name in names:
        text = files.text(name, 'etc') if not files.exists(name) else ''
        if text and WORDS.search(text):
            for address in ADDRESS.findall(text.lower()) or ['*']:
                found.setdefault(address, []).append(f'/{name}')
    return {address: tuple(dict.fromkeys(files))
            for address, files in found.items()}


class DeviceFacts(FactGroup):
    """The devices."""

    #: Their names.
    iommus = Fact(Files.names, f'{_CLASS}/iommu', _CLASS)
    #: The types of the default domains of the groups: ``identity``, ``DMA``,
    #: ``DMA-FQ``; empty on a kernel that does not say.
    iommu_types = Fact(_iommu_types)
    #: Of each device that supports SR-IOV.
    functions = Fact(lambda files: tuple(_functions(files)))
    #: Device address -> the files that create its virtual functions at boot;
    #: ``*`` for files that name no device.
    creators = Fact(_creators)
    #: ``BIOS`` or the model of a device -> the version, or the versions of
    #: several such devices.
    firmware = Fact(_firmware)

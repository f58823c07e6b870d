# SPDX-License-Identifier: Apache-2.0

"""Read the facts of the hardware: devices, firmware, limits, errors, links."""

import contextlib
import dataclasses
import functools
import re
import typing
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping

from hpcvirt.audit import fact
from hpcvirt.audit.reading import cpu
from hpcvirt.audit.reading import files as files_module
from hpcvirt.audit.reading.files import Fact
from hpcvirt.audit.reading.files import FactGroup
from hpcvirt.audit.reading.files import Files
from hpcvirt.topology import hardware_state
from hpcvirt.topology import sysfs_wiring
from hpcvirt.topology import tool_output

T = typing.TypeVar('T')

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

#: The hooks that libvirt runs for each guest: one file, or all in a folder.
_HOOKS = 'etc/libvirt/hooks/qemu'
_FABRIC = 'usr/share/nvidia/nvswitch/fabricmanager.cfg'


def _list_places() -> Iterator[str]:
    """Yield the patterns of the files in _PLACES."""
    for place, endings in _PLACES:
        for ending in endings:
            yield f'{place}/*{ending}'


#: All of them, as a shell finds them.
PATTERNS = (*_FILES, _HOOKS, f'{_HOOKS}.d/*', _FABRIC, *_list_places())

#: The words for virtual functions in the kernel, systemd, NetworkManager,
#: netplan, os-net-config, the drivers, and most scripts of sites.
WORDS = re.compile(
    'sr-?iov|total-vfs|virtual-function-count|max_vfs|num_?vfs',
    re.IGNORECASE)
#: The words for the GUIDs of virtual functions in iproute2 and in the driver
#: of the vendor, and for its agent of Neutron.
GUIDS = re.compile('node_guid|port_guid|sriov/.{1,8}/policy|eswitchd',
                   re.IGNORECASE)
#: The words of a hook that tells the fabric manager of NVSwitches which GPUs
#: a guest has: its client, and its library.
ACTIVATION = re.compile('fmpm|fabric_?manager|libnvfm', re.IGNORECASE)
MODE = re.compile('^FABRIC_MODE=[0-9]{1,3}', re.MULTILINE)
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


@dataclasses.dataclass(frozen=True, slots=True)
class GroupedFunction:
    """A PCI function of an IOMMU group, of whatever class.

    :ivar group: the number of the group
    :ivar code: the base class and subclass in four hexadecimal digits
    :ivar driver: None if none is bound to it
    """

    address: str
    group: int
    code: str
    vendor_id: str
    product_id: str
    driver: str | None


@dataclasses.dataclass(frozen=True, slots=True)
class MemoryController:
    """A memory controller that EDAC watches, with its errors since the boot.

    :ivar channels: (type of the memory, channel) -> its MiB; empty if the
        driver does not say
    """

    name: str
    corrected: int
    uncorrected: int
    channels: Mapping[tuple[str, str], int]


def _controls(files: Files) -> Mapping[str, tool_output.Controls]:
    return _read_functions(files, tool_output.read_controls,
                           sysfs_wiring.read_controls)


def _sizes(files: Files) -> Mapping[str, tool_output.TransferSizes]:
    return _read_functions(files, tool_output.read_sizes,
                           sysfs_wiring.read_sizes)


def _read_output(files: Files, name: str) -> str:
    # A note is not worth an unknown fact in copies without this output.
    with contextlib.suppress(fact.NotKnown):
        if not files.is_running:
            return files.setting(f'{tool_output.FOLDER}/{name}') or ''
    return ''


def _rings(files: Files) -> Mapping[str, int]:
    return tool_output.read_rings(functools.partial(_read_output, files))


def _moderated(files: Files) -> Mapping[str, int | None]:
    rings = _rings(files)
    return {name: rings.get(name) for name in tool_output.read_moderated(
        functools.partial(_read_output, files))}


def _read_functions(files: Files,
                    read_lspci: Callable[[tool_output.Text], dict[str, T]],
                    read_config: Callable[[bytes], T | None],
                    ) -> dict[str, T]:
    """Read what PCI functions say of themselves, by address.

    A capture has the output of lspci, which was root; what the files of sysfs
    say counts where both say something.
    """
    found = read_lspci(
        lambda name: '' if files.is_running else
        files.setting(f'{tool_output.FOLDER}/{name}') or '')
    for address in files.names(_PCI, 'sys'):
        said = read_config(files.data(f'{_PCI}/{address}/config'))
        if said:
            found[address] = said
    return found


def _bars(files: Files) -> Mapping[str, int]:
    found = {}
    for address in files.names(_PCI, 'sys'):
        sizes = hardware_state.read_bars(
            files.setting(f'{_PCI}/{address}/resource') or '')
        found[address] = max(sizes, default=0)
    return found


def _iommu_types(files: Files) -> frozenset[str]:
    types = {files.text(f'{_GROUPS}/{group}/type', _GROUPS)
             for group in files.names(_GROUPS, 'sys/kernel')}
    return frozenset(kind for kind in types if kind)


def _grouped(files: Files) -> Iterator[GroupedFunction]:
    for group in files.names(_GROUPS, 'sys/kernel'):
        if not re.fullmatch('[0-9]{1,9}', group):
            continue
        here = f'{_GROUPS}/{group}/devices'
        for address in files.names(here, _GROUPS):
            if not ADDRESS.fullmatch(address):
                continue  # A device of the platform, of Arm.
            there = f'{_PCI}/{address}'
            code, vendor, product = (
                (files.text(f'{there}/{name}', _PCI) or '').removeprefix('0x')
                for name in ('class', 'vendor', 'device'))
            yield GroupedFunction(address, int(group), code[:4], vendor,
                                  product, files.driver(there))


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


def _creators(files: Files, words: re.Pattern[str],
              ) -> Mapping[str, tuple[str, ...]]:
    """Find the files with certain words: address or ``*`` -> files."""
    found: dict[str, list[str]] = {}
    names = [*_FILES]
    for place, endings in _PLACES:
        names += [f'{place}/{name}' for name in files.names(place, 'etc')
                  if name.endswith(endings)]
    for name in names:
        text = files.text(name, 'etc') if not files.exists(name) else ''
        if text and words.search(text):
            for address in ADDRESS.findall(text.lower()) or ['*']:
                found.setdefault(address, []).append(f'/{name}')
    return {address: tuple(dict.fromkeys(files))
            for address, files in found.items()}


def _activators(files: Files) -> Iterator[str]:
    names = [_HOOKS]
    names += [f'{_HOOKS}.d/{name}' for name in files.names(
        f'{_HOOKS}.d', 'etc')]
    for name in names:
        text = files.text(name, 'etc') if not files.exists(name) else ''
        if text and ACTIVATION.search(text):
            yield f'/{name}'


def _fabric_mode(files: Files) -> int | None:
    text = files.text(_FABRIC, 'etc')
    modes = MODE.findall(text or '')
    return int(modes[-1].partition('=')[2]) if modes else None


def _uptime_s(files: Files) -> int:
    match = re.match('([0-9]{1,12})[.]', files.need('proc/uptime'))
    if match is None:
        raise files_module.make_unknown('proc/uptime', 'is not a time')
    return int(match[1])


def _limits(files: Files) -> Mapping[int, frozenset[int]]:
    found: dict[int, frozenset[int]] = {}
    pstate = f'{hardware_state.CPU}/intel_pstate'
    share = (files.need_number(f'{pstate}/max_perf_pct')
             if files.exists(pstate) else 100)
    for here, cpus in cpu.policies(files):
        most = files.need_number(f'{here}/cpuinfo_max_freq')
        if files.need(f'{here}/scaling_driver') == 'acpi-cpufreq':
            # Its limits are states, and its maximum is the boost beyond them.
            most = max(map(int, re.findall('[0-9]{1,9}', files.need(
                f'{here}/scaling_available_frequencies'))), default=most)
        limit = min(files.need_number(f'{here}/scaling_max_freq'),
                    files.number(f'{here}/bios_limit', here) or most)
        percent = min(share, 100 * limit // max(1, most))
        found[percent] = found.get(percent, frozenset()) | cpus
    return found


def _throttled(files: Files) -> int | None:
    return max((count or 0 if time_ms is None else time_ms // 1000
                for _, count, time_ms in hardware_state.read_throttling(
                    files.setting, files.names)
                if count is not None or time_ms is not None), default=None)


def _controllers(files: Files) -> Iterator[MemoryController]:
    for name, corrected, uncorrected in hardware_state.read_memory_errors(
            files.setting, files.names):
        here = f'{hardware_state.EDAC}/{name}'
        if corrected is None or uncorrected is None:
            raise files_module.make_unknown(here, 'counts no errors')
        channels: dict[tuple[str, str], int] = {}
        for module in files.names(here, here):
            there = f'{here}/{module}'
            if re.fullmatch('(?:dimm|rank)[0-9]+', module):
                place = re.search('channel [0-9]+',
                                  files.need(f'{there}/dimm_location'))
                if place:
                    key = files.need(f'{there}/dimm_mem_type'), place[0]
                    channels[key] = channels.get(key, 0) + files.need_number(
                        f'{there}/size')
        yield MemoryController(name, corrected, uncorrected, channels)


class HardwareFacts(FactGroup):
    """The hardware, and how well it does."""

    #: Network devices with adaptive moderation of interrupts -> the entries of
    #: their ring, as far as a capture has them.
    moderated = Fact(_moderated)
    #: Network devices -> the entries of their ring, likewise.
    rings = Fact(_rings)
    #: The names of all IOMMUs.
    iommus = Fact(Files.names, f'{_CLASS}/iommu', _CLASS)
    #: The types of the default domains of the groups: ``identity``, ``DMA``,
    #: ``DMA-FQ``; empty on a kernel that does not say.
    iommu_types = Fact(_iommu_types)
    #: The PCI functions of all groups.
    grouped = Fact(lambda files: tuple(_grouped(files)))
    #: Of each device that supports SR-IOV.
    functions = Fact(lambda files: tuple(_functions(files)))
    #: Device address -> how it may transfer data, as far as that is known.
    controls = Fact(_controls)
    #: Address of a device or a bridge -> how much it transfers at once, as far
    #: as that is known.
    sizes = Fact(_sizes)
    #: Device address -> the MiB of its largest region of memory; 0 without.
    bars = Fact(_bars)
    #: Device address -> the files that create its virtual functions at boot;
    #: ``*`` for files that name no device.
    creators = Fact(_creators, WORDS)
    #: The files that give GUIDs to virtual functions at boot, likewise.
    guids = Fact(_creators, GUIDS)
    #: The hooks of libvirt that activate partitions of NVSwitches.
    activators = Fact(lambda files: tuple(_activators(files)))
    #: The mode of the fabric manager: 0 for a host or a guest that has all
    #: GPUs, 1 for guests with some, 2 for vGPUs; None without one.
    fabric_mode = Fact(_fabric_mode)
    #: ``BIOS`` or the model of a device -> the version, or the versions of
    #: several such devices.
    firmware = Fact(_firmware)
    uptime_s = Fact(_uptime_s)
    #: The percentage of their highest frequency that CPUs may have -> CPUs.
    limits = Fact(_limits)
    #: The longest time since the boot for which a CPU was throttled, in
    #: seconds, or how often if the kernel only counts that; None if it does
    #: neither.
    throttled = Fact(_throttled)
    #: Of storage, network and display devices and accelerators.
    links = Fact(lambda files: tuple(hardware_state.read_links(
        files.setting, files.names)))
    #: Empty without a driver of EDAC.
    controllers = Fact(lambda files: tuple(_controllers(files)))

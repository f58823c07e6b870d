# SPDX-License-Identifier: Apache-2.0

"""Read the state of hardware: PCIe links, memory errors, throttling.

An audit must know why a file is missing; ``hpcvirt host watch`` need not. The
functions therefore take a function that reads a file and one that lists a
folder, by names such as ``sys/devices``.
"""

import dataclasses
import re
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator

from hpcvirt import words

Text = Callable[[str], str | None]
Names = Callable[[str], Iterable[str]]

CPU = 'sys/devices/system/cpu'
_PCI = 'sys/bus/pci/devices'
EDAC = 'sys/devices/system/edac/mc'

_BRIDGE = '0604'
#: A line of the file resource: the first and the last address, and flags. In
#: those of memory, the third digit from the end is 2.
_REGION = re.compile('^0x([0-9a-f]{1,16}) 0x([0-9a-f]{1,16}) 0x.*(.)..$',
                     re.MULTILINE)
#: The lines of the ROM and of virtual functions follow those of the BARs.
_BARS = 6
#: Base classes of devices: storage, network, display, accelerator [pci.ids].
_KINDS = ('01', '02', '03', '12')
#: Devices that slow their link down while they are idle, and the speed with
#: which every link starts.
_PAUSING = ('03', '12')
_LOWEST_SPEED = 2.5


def read_bars(resource: str) -> tuple[int, ...]:
    """Read the MiB of each BAR in memory, without those below 1 MiB.

    :param resource: the content of the file ``resource`` of a device
    """
    sizes = []
    for start, end, kind in _REGION.findall(resource)[:_BARS]:
        size = int(end, 16) - int(start, 16) + 1 >> 20
        if kind == '2' and size > 0:
            sizes.append(size)
    return tuple(sizes)


@dataclasses.dataclass(frozen=True, slots=True)
class PcieLink:
    """A PCIe link: pairs of the speed in GT/s of each lane, and the lanes.

    :ivar kind: the base class of the device, such as ``02`` for networks
    :ivar now: the current speed and lanes
    :ivar card: the most that the device supports
    :ivar slot: the most that the port above it supports
    """

    address: str
    kind: str
    now: tuple[float, int]
    card: tuple[float, int]
    slot: tuple[float, int]

    @property
    def best(self) -> tuple[float, int]:
        """The highest speed and the most lanes that both ends support."""
        return min(self.card[0], self.slot[0]), min(self.card[1], self.slot[1])

    @property
    def lacks(self) -> tuple[float, float]:
        """The fractions of speed and lanes that the link lacks.

        For a device that slows its idle link down, the speed does not count,
        and lanes do not count at the lowest speed.
        """
        speed, lanes = (max(0.0, 1 - now / best) for now, best in zip(
            self.now, self.best, strict=True))
        if self.kind in _PAUSING:
            is_idle = self.now[0] <= _LOWEST_SPEED < self.best[0]
            return 0.0, 0.0 if is_idle else lanes
        return speed, lanes


def read_links(text: Text, names: Names) -> Iterator[PcieLink]:
    """Read the links of storage, networks, displays and accelerators."""
    kinds = {address: (text(f'{_PCI}/{address}/class') or '').removeprefix(
        '0x') for address in names(_PCI)}
    ports = {}
    for address, kind in kinds.items():
        bus = (text(f'{_PCI}/{address}/secondary_bus_number')
               if kind.startswith(_BRIDGE) else None)
        if bus and re.fullmatch('[0-9]{1,3}', bus):
            below = f'{address.partition(":")[0]}:{int(bus):02x}'
            ports[below] = read_link(text, f'{_PCI}/{address}/max')
    for address, kind in kinds.items():
        if kind[:2] in _KINDS:
            now, card = (read_link(text, f'{_PCI}/{address}/{which}')
                         for which in ('current', 'max'))
            slot = ports.get(address.rpartition(':')[0])
            if now and card and slot:  # chips on a root bus have no link
                yield PcieLink(address.lower(), kind[:2], now, card, slot)


def read_link(text: Text, place: str) -> tuple[float, int] | None:
    """Read GT/s and lanes; None without a link (virtual functions)."""
    speed = re.match(r'([0-9]{1,3}(?:\.[0-9])?) GT/s',
                     text(f'{place}_link_speed') or '')
    lanes = text(f'{place}_link_width') or ''
    return ((float(speed[1]), int(lanes)) if speed and re.fullmatch(
        '[1-9]|[12][0-9]|3[0-2]', lanes) else None)


def read_memory_errors(text: Text, names: Names,
                       ) -> Iterator[tuple[str, int | None, int | None]]:
    """Yield the corrected and uncorrected errors of each controller."""
    for name in names(EDAC):
        if re.fullmatch('mc[0-9]+', name):
            yield (name, read_number(text, f'{EDAC}/{name}/ce_count'),
                   read_number(text, f'{EDAC}/{name}/ue_count'))


def read_throttling(text: Text, names: Names,
                    ) -> Iterator[tuple[str, int | None, int | None]]:
    """Yield how often and for how many ms each core and socket was throttled.

    A figure that the kernel does not report is None: old kernels report no
    time, and some processors nothing for sockets.
    """
    for name in names(CPU):
        if re.fullmatch('cpu[0-9]+', name):
            for part in ('core', 'package'):
                here = f'{CPU}/{name}/thermal_throttle/{part}_throttle'
                yield (f'{name}-{part}', read_number(text, f'{here}_count'),
                       read_number(text, f'{here}_total_time_ms'))


def read_number(text: Text, name: str) -> int | None:
    """Read a whole number; None if the file has none."""
    return words.read_whole(text(name) or '')

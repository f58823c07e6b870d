# SPDX-License-Identifier: Apache-2.0

"""Compare the addresses that a guest needs with those that QEMU gives it.

A guest whose CPU is a model, which is Nova's default on KVM, has addresses of
40 bits in QEMU, whatever its host has; with ``host-passthrough`` it has those
of the host. Its memory must fit below this limit, and above its memory the
BARs of its devices. What does not fit is not usable in the guest.
"""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence

from hpcvirt.flavors import device_choice
from hpcvirt.flavors import memory
from hpcvirt.flavors import planned as plans
from hpcvirt.flavors import planned_sets
from hpcvirt.flavors import warning
from hpcvirt.model import host as host_model
from hpcvirt.specs import vocabulary

#: The width that QEMU gives to all CPU models (TCG_PHYS_ADDR_BITS).
DEFAULT_BITS = 40

#: QEMU moves the memory above 2 GiB to 4 GiB (machine type q35), and keeps
#: these addresses above the memory for BARs, whatever devices a guest has.
_MOVED_MIB = 2048
_WINDOW_MIB = 32768

#: BARs of this size fit below 4 GiB.
_SMALL_MIB = 256


def find_end_mib(memory_mib: int, devices: Iterable[Sequence[int]]) -> int:
    """Find the end of the addresses of a guest in MiB.

    Each device is below a port of its own, whose window has all of its BARs.
    A BAR begins at a multiple of its size, so the small BARs of a device move
    its large one to the next multiple.

    :param devices: the MiB of the BARs of each device
    """
    top = memory_mib + _MOVED_MIB
    end = top
    for bars in sorted(devices, key=lambda sizes: -max(sizes, default=0)):
        largest = max(bars, default=0)
        if largest <= _SMALL_MIB:
            continue
        begin = end + sum(bars) - largest
        end = -(-begin // largest) * largest + largest
    return max(end, top + _WINDOW_MIB)


def find_warnings(hosts: Sequence[plans.PlannedHost],
                  flavors: Iterable[plans.PlannedFlavor],
                  ) -> Iterator[warning.PlanWarning]:
    """Warn about flavors that need more addresses than their guests have."""
    for row in flavors:
        specs = row.flavor.extra_specs
        mode = specs.get(vocabulary.MAXPHYSADDR_MODE.name)
        bits = DEFAULT_BITS
        if mode == 'passthrough':
            continue
        if mode == 'emulate':
            bits = int(specs.get(vocabulary.MAXPHYSADDR_BITS.name, bits))
        ends = [find_end_mib(row.flavor.ram_mib, _list_bars(row, host))
                for host in hosts if row.per_host[host.name]
                and memory.small_page_kib(host.host)
                == host_model.SMALL_PAGE_KIB]
        end = max(ends, default=0)
        if end > 2 ** bits >> 20:
            yield warning.PlanWarning(
                warning.WarningCode.ADDRESS_WIDTH,
                'the memory of a guest and the BARs of its devices need '
                f'addresses up to {-(-end // 1024)} GiB, and with '
                + (f'{vocabulary.MAXPHYSADDR_BITS.name}={bits} it has '
                   if mode else "Nova's default cpu_mode QEMU gives it ")
                + f'{2 ** bits >> 30} GiB; set [libvirt]cpu_mode = '
                'host-passthrough on the hosts, and '
                f'{vocabulary.MAXPHYSADDR_MODE.name}: passthrough in '
                'extra_specs of the profile', (row.flavor.name,))


def _list_bars(row: plans.PlannedFlavor,
               host: plans.PlannedHost) -> list[tuple[int, ...]]:
    """List the BARs of the whole devices that a guest gets on a host.

    Of devices that differ, those with the largest BARs count.
    """
    if host.host.wiring is None:
        return []
    bars = {each.address: each.bars_mib
            for each in host.host.wiring.attachments}
    found = []
    for number, wanted in enumerate(host.profile.devices):
        if wanted.kind is not device_choice.DeviceKind.WHOLE:
            continue
        given = [bars.get(item.device.address, ()) for item in host.offered
                 if item.wanted == wanted]
        given.sort(key=lambda sizes: max(sizes, default=0), reverse=True)
        found += given[:planned_sets.count_devices(row.guest, number, wanted)]
    return found

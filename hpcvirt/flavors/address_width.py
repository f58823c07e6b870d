# SPDX-License-Identifier: Apache-2.0

"""Compare the addresses that a guest needs with those that QEMU gives it.

A guest whose CPU is a model, which is Nova's default on KVM, has addresses of
40 bits in QEMU, whatever its host has; with ``host-passthrough`` it has those
of the host. Its memory must fit below this limit, and above its memory the
BARs of its devices. What does not fit is not usable in the guest.

Extra specs ask for another width. Nova passes them to libvirt as they are,
which refuses some combinations, and any on Arm.
"""

import typing
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.flavors import device_choice
from hpcvirt.flavors import memory
from hpcvirt.flavors import planned as plans
from hpcvirt.flavors import planned_sets
from hpcvirt.flavors import warning
from hpcvirt.model import flavor as flavor_model
from hpcvirt.model import host as host_model
from hpcvirt.model import shape as shape_model
from hpcvirt.specs import vocabulary

#: The width that QEMU gives to all CPU models (TCG_PHYS_ADDR_BITS).
DEFAULT_BITS = 40

#: QEMU moves the memory above 2 GiB to 4 GiB (machine type q35), and keeps
#: these addresses above the memory for BARs, whatever devices a guest has.
_MOVED_MIB = 2048
_WINDOW_MIB = 32768

#: The IOMMU of AMD does not translate the 12 GiB below 1 TiB. QEMU moves all
#: memory above 4 GiB behind them if memory and window would reach them.
_HOLE_BEGIN_MIB = 1012 * 1024
_HOLE_END_MIB = 1024 * 1024

#: BARs of this size fit below 4 GiB.
_SMALL_MIB = 256


def find_end_mib(memory_mib: int, devices: Iterable[Sequence[int]],
                 is_amd: bool = False) -> int:
    """Find the end of the addresses of a guest in MiB.

    Each device is below a port of its own, whose window has all of its BARs.
    A BAR begins at a multiple of its size, so the small BARs of a device move
    its large one to the next multiple.

    :param devices: the MiB of the BARs of each device
    :param is_amd: whether its processor is of AMD
    """
    top = memory_mib + _MOVED_MIB
    if is_amd and top + _WINDOW_MIB > _HOLE_BEGIN_MIB:
        top = _HOLE_END_MIB + memory_mib - _MOVED_MIB
    end = top
    for bars in sorted(devices, key=lambda sizes: -max(sizes, default=0)):
        largest = max(bars, default=0)
        if largest <= _SMALL_MIB:
            continue
        begin = end + sum(bars) - largest
        end = -(-begin // largest) * largest + largest
    return max(end, top + _WINDOW_MIB)


def count_bits(end_mib: int) -> int:
    """Count the bits of addresses below an end."""
    return ((end_mib << 20) - 1).bit_length()


def read_bits(specs: Mapping[str, str]) -> int:
    """Read the width that extra specs ask for, the default if it is none."""
    text = specs.get(vocabulary.MAXPHYSADDR_BITS.name, '')
    return (int(text) if vocabulary.MAXPHYSADDR_BITS.accepts(text)
            else DEFAULT_BITS)


def find_refusal(specs: Mapping[str, str]) -> tuple[str, str] | None:
    """Find why libvirt refuses the width that extra specs ask for.

    :returns: the key at fault, and why; None if it does not
    """
    mode = specs.get(vocabulary.MAXPHYSADDR_MODE.name)
    bits = vocabulary.MAXPHYSADDR_BITS.name
    if mode == 'emulate' and bits not in specs:
        return vocabulary.MAXPHYSADDR_MODE.name, (
            f'the mode emulate needs {bits}, or the image hw_maxphysaddr_bits')
    if mode == 'passthrough' and bits in specs:
        return bits, 'the mode passthrough allows no number of bits'
    return None


class WidthProblem(typing.NamedTuple):
    """Why the addresses of a flavor's guests are too few, or are refused.

    :ivar key: the extra spec at fault
    :ivar advice: what to set in the flavor and on its hosts; empty if the
        extra spec must only go
    """

    key: str
    what: str
    advice: str = ''


def find_warnings(hosts: Sequence[plans.PlannedHost],
                  flavors: Iterable[plans.PlannedFlavor],
                  ) -> Iterator[warning.PlanWarning]:
    """Warn about flavors that need more addresses than their guests have."""
    for row in flavors:
        own = [host for host in hosts if row.per_host[host.name]]
        found = find_problem(row.flavor, row.guest, own)
        if found is not None:
            what = found.what
            if found.advice and found.key == 'ram':
                what += f'; {found.advice}'
            elif found.advice:
                what += f'; in extra_specs of the profile, {found.advice}'
            yield warning.PlanWarning(warning.WarningCode.ADDRESS_WIDTH, what,
                                      (row.flavor.name,))


def find_problem(flavor: flavor_model.Flavor, guest: shape_model.Shape,
                 hosts: Sequence[plans.PlannedHost]) -> WidthProblem | None:
    """Find whether guests need more addresses than they have on some host.

    :param guest: what the flavor requests
    :param hosts: hosts that take the flavor
    """
    specs = flavor.extra_specs
    refusal = find_refusal(specs)
    if refusal is not None:
        key, why = refusal
        return WidthProblem(key, f'libvirt refuses each guest: {why}')
    mode = vocabulary.MAXPHYSADDR_MODE.name
    on_arm = [host.name for host in hosts if _is_arm(host)]
    if on_arm and mode in specs:
        return WidthProblem(mode, f'libvirt refuses each guest on {on_arm[0]}:'
                            ' it sets no width on Arm')
    ends = [(find_end_mib(flavor.ram_mib, _list_bars(guest, host),
                          'AMD' in (host.host.processor or '')), host.host)
            for host in hosts if not _is_arm(host)]
    for end, host in ends:
        if (host.address_bits is not None
                and end > 2 ** host.address_bits >> 20):
            return WidthProblem(
                'ram', 'the memory of a guest and the BARs of its devices '
                f'need addresses up to {-(-end // 1024)} GiB, and those of '
                f'{host.name} end at {2 ** host.address_bits >> 30} GiB '
                f'({host.address_bits} bits)',
                'give it less memory or fewer devices')
    return _describe_lack(max((end for end, _ in ends), default=0), specs)


def _describe_lack(end_mib: int,
                   specs: Mapping[str, str]) -> WidthProblem | None:
    """Say that the addresses up to an end exceed the width of a guest."""
    mode_key = vocabulary.MAXPHYSADDR_MODE.name
    bits_key = vocabulary.MAXPHYSADDR_BITS.name
    mode = specs.get(mode_key)
    bits = DEFAULT_BITS
    if mode == 'emulate':
        bits = read_bits(specs)
    if mode == 'passthrough' or end_mib <= 2 ** bits >> 20:
        return None
    needed = f'{bits_key}: {count_bits(end_mib)}'
    found = ('the memory of a guest and the BARs of its devices need '
             f'addresses up to {-(-end_mib // 1024)} GiB, and with ')
    if mode:
        return WidthProblem(
            bits_key, f'{found}{bits_key}={bits} it has {2 ** bits >> 30} GiB',
            f'set {needed}')
    return WidthProblem(
        mode_key, f"{found}Nova's default cpu_mode QEMU gives it "
        f'{2 ** bits >> 30} GiB',
        f'set {mode_key}: passthrough, and [libvirt]cpu_mode = '
        'host-passthrough on the hosts, or, if guests migrate between '
        f'different processors, emulate and {needed}')


def _is_arm(host: plans.PlannedHost) -> bool:
    """Whether a host is of Arm, which mostly has pages of 4 KiB, too."""
    return ((host.host.processor or '').startswith('Arm,')
            or memory.small_page_kib(host.host) != host_model.SMALL_PAGE_KIB)


def _list_bars(guest: shape_model.Shape,
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
        found += given[:planned_sets.count_devices(guest, number, wanted)]
    return found

# SPDX-License-Identifier: Apache-2.0

"""Rules about the hardware: devices, errors, throttling, links."""

import collections
import dataclasses
from collections.abc import Iterator

from hpcvirt.audit import fact
from hpcvirt.audit.finding import Severity
from hpcvirt.audit.rule import AuditSubject
from hpcvirt.audit.rule import cpu_words
from hpcvirt.audit.rule import join_first
from hpcvirt.audit.rule import Rule
from hpcvirt.audit.rule import Violation
from hpcvirt.flavors import device_choice
from hpcvirt.flavors import kernel_settings
from hpcvirt.flavors import profile as profiles

#: The part of their highest frequency that CPUs should at least be allowed.
MIN_FREQUENCY_PERCENT = 90

#: The class of InfiniBand controllers [pci.ids].
_INFINIBAND = '0207'

#: mcelog reports a module with more corrected errors than that.
MAX_CORRECTED_A_DAY = 10

#: The part of the time in which a CPU may be throttled.
MAX_THROTTLED_PERCENT = 0.1


def _passes_devices(subject: AuditSubject) -> bool:
    """Whether guests get devices of the host."""
    return bool(
        (subject.profile and subject.profile.devices)
        or any(item.count for item in subject.facts.hardware.functions)
        or any('vfio' in (device.driver or '')
               for device in subject.host.devices)
        or (subject.nova and subject.nova.all('pci', 'device_spec')))


def _iommu(subject: AuditSubject) -> Iterator[Violation]:
    if subject.facts.hardware.iommus or not _passes_devices(subject):
        return
    intel = subject.facts.cpu.vendor == 'GenuineIntel'
    yield Violation(
        'no IOMMU is enabled, but guests get devices', 'an enabled IOMMU',
        (('# on in the firmware (VT-d, AMD-Vi, SMMU), and on the kernel '
         'command line'), ('intel_iommu=on ' if intel else '')
         + kernel_settings.HOST_DMA))


def _translation(subject: AuditSubject) -> Iterator[Violation]:
    types = subject.facts.hardware.iommu_types
    if types and 'identity' not in types and _passes_devices(subject):
        yield Violation(
            'the IOMMU translates the DMA of the host itself '
            f'({", ".join(sorted(types))})',
            'only that of guests (identity for the host)',
            ('# on the kernel command line', kernel_settings.HOST_DMA))


def _present(subject: AuditSubject) -> Iterator[Violation]:
    counts = {item.address: item.count
              for item in subject.facts.hardware.functions}
    for item in subject.plan.offered if subject.plan else ():
        if item.wanted.kind is not device_choice.DeviceKind.VF:
            continue
        address, has = item.device.address, counts.get(item.device.address, 0)
        if has < item.count:
            if item.device.driver is None:
                yield Violation(
                    f'{address} has no driver, which creates virtual '
                    'functions', 'the driver of the vendor',
                    (f'# find out why: dmesg | grep {address}',))
            yield Violation(
                f'{address} has {has} virtual functions',
                f'{item.count}, as the flavors need them',
                (*((('echo 0 > /sys/bus/pci/devices/'
                    f'{address}/sriov_numvfs'),) if has else ()),
                 (f'echo {item.count} > /sys/bus/pci/devices/{address}/'
                 'sriov_numvfs')))


def _cell(subject: AuditSubject) -> Iterator[Violation]:
    if len(subject.host.cells) < 2:
        return
    lost = [item.address for item in subject.facts.hardware.functions
            if None in item.cells]
    lost += [device.address for device in subject.host.devices
             if device.total_vfs and device.cell is None
             and device.address not in lost]
    for address in lost:
        yield Violation(
            f'the cell of {address} or of its virtual functions is unknown',
            'the cell that the slot belongs to',
            (('# update the firmware, which names the cells of slots '
             '(ACPI _PXM); until then Nova considers the device equally near '
              'to all cells'),))


def _persistent(subject: AuditSubject) -> Iterator[Violation]:
    created = [item for item in subject.facts.hardware.functions
               if item.count]
    creators = subject.facts.hardware.creators if created else {}
    for item in created:
        if item.address not in creators and '*' not in creators:
            rule = '/etc/udev/rules.d/70-hpcvirt-vfs.rules'
            yield Violation(
                f'nothing creates the {item.count} virtual functions of '
                f'{item.address} at boot', 'a rule that does',
                (f'# {rule}',
                 kernel_settings.format_vf_rule(item.address, item.count)))


def _guids(subject: AuditSubject) -> Iterator[Violation]:
    created = {item.address: item.count
               for item in subject.facts.hardware.functions if item.count}
    cards = [item.address for item in (
        subject.facts.hardware.grouped if created else ())
        if item.code == _INFINIBAND and item.address in created]
    setters = subject.facts.hardware.guids if cards else {}
    for address in cards:
        if address not in setters and '*' not in setters:
            yield Violation(
                f'nothing gives GUIDs to the {created[address]} InfiniBand '
                f'virtual functions of {address} at boot',
                'GUIDs and a policy, and virt_enabled 2 in OpenSM',
                ('# /etc/udev/rules.d/70-hpcvirt-vfs.rules',
                 kernel_settings.format_guid_rule(address, created[address])))


#: For programs that send small messages, as in study S5.
_SMALL = dataclasses.replace(profiles.DEFAULT, moderate_interrupts=False,
                             ring_entries=128)


def _moderation(subject: AuditSubject) -> Iterator[Violation]:
    found = subject.facts.hardware.moderated
    profile = subject.profile or profiles.DEFAULT
    rule = kernel_settings.format_network_rule(profile)
    names = [name if ring is None else f'{name} (ring of {ring})'
             for name, ring in found.items()]
    if rule:
        yield from _as_profile(subject, profile, rule)
    elif names:
        yield Violation(
            f'interrupt moderation of {join_first(names)} is adaptive',
            'off, and rings of 128, if your programs send small messages: '
            'measure both',
            tuple(kernel_settings.format_network_commands(_SMALL, name)
                  for name in found))


def _as_profile(subject: AuditSubject, profile: profiles.Profile,
                rule: str) -> Iterator[Violation]:
    """Compare network devices with a profile that says how they are."""
    hardware = subject.facts.hardware
    change = ('# /etc/udev/rules.d/71-hpcvirt-network.rules', rule)
    if hardware.moderated and not profile.moderate_interrupts:
        yield Violation(
            f'interrupt moderation of {join_first(list(hardware.moderated))} '
            'is adaptive', 'off, as the profile says', change,
            Severity.WARNING)
    entries = profile.ring_entries
    other = [f'{name} has a ring of {count}' for name, count
             in hardware.rings.items() if count != entries]
    if entries is not None and other:
        yield Violation(join_first(other),
                        f'rings of {entries}, as the profile says', change,
                        Severity.WARNING)


def _frequency(subject: AuditSubject) -> Iterator[Violation]:
    if subject.facts.cpu.no_turbo:
        return  # The rule turbo says so; some kernels limit CPUs by it.
    for percent, cpus in subject.facts.hardware.limits.items():
        if percent < MIN_FREQUENCY_PERCENT:
            place = (f'/sys/devices/system/cpu/cpu{min(cpus)}/cpufreq/'
                     'cpuinfo_max_freq')
            yield Violation(
                f'{cpu_words(cpus)} limited to {percent} % of the highest '
                'frequency', 'no limit',
                (f'cpupower frequency-set --max $(cat {place})',
                 ('# or max_perf_pct of intel_pstate, a limit of the firmware '
                  '(bios_limit), a profile of TuneD')))


def _throttled(subject: AuditSubject) -> Iterator[Violation]:
    cpu, hardware = subject.facts.cpu, subject.facts.hardware
    if cpu.vendor != 'GenuineIntel' or cpu.is_guest:
        return  # The kernel counts it on processors of Intel only.
    throttled, uptime_s = hardware.throttled, hardware.uptime_s
    if throttled is None:
        raise fact.NotKnown(
            '/sys/devices/system/cpu/cpu0/thermal_throttle', 'is missing')
    if throttled * 100 > uptime_s * MAX_THROTTLED_PERCENT:
        yield Violation(
            f'a CPU was throttled for {throttled} s (or {throttled} times, if '
            f'the kernel only counts) in {uptime_s} s since the boot',
            f'at most {MAX_THROTTLED_PERCENT} % of the time',
            ('# look for fans, heat sinks and power supplies: ipmitool sdr',))


def _errors(subject: AuditSubject) -> Iterator[Violation]:
    hardware = subject.facts.hardware
    found = hardware.controllers
    if not found and not subject.facts.cpu.is_guest:
        yield Violation(
            'no EDAC driver counts memory errors', 'an EDAC driver',
            ('# dmesg | grep -i edac; perhaps the firmware keeps them',),
            Severity.NOTE)
    replace = ('# find the module: ras-mc-ctl --summary',)
    for item in found:
        if item.uncorrected:
            yield Violation(f'{item.name} has {item.uncorrected} uncorrected '
                            'memory errors', 'none', replace, Severity.ERROR)
        if item.corrected:
            most = MAX_CORRECTED_A_DAY * max(1.0, hardware.uptime_s / 86400)
            yield Violation(
                f'{item.name} has {item.corrected} corrected memory errors '
                'since the boot', f'at most {MAX_CORRECTED_A_DAY} a day',
                replace, None if item.corrected > most else Severity.NOTE)


def _channels(subject: AuditSubject) -> Iterator[Violation]:
    sizes: dict[str, dict[str, int]] = {}
    counts: dict[str, collections.Counter[str]] = {}
    for item in subject.facts.hardware.controllers:
        for (kind, channel), mib in item.channels.items():
            if not kind.startswith('Non-volatile'):
                sizes.setdefault(kind, {})[f'{channel} of {item.name}'] = mib
                counts.setdefault(kind, collections.Counter())[item.name] += 1
    for kind, mibs in sizes.items():
        for amounts, unit in ((counts[kind], 'channels'), (mibs, 'MiB')):
            least, most = (choose(amounts, key=amounts.__getitem__)
                           for choose in (min, max))
            if amounts[least] < amounts[most]:
                yield Violation(
                    f'{least} has {amounts[least]} {unit} of {kind}, {most} '
                    f'has {amounts[most]}', 'the same everywhere',
                    ('# dmidecode --type memory; fill all channels equally',))
                break


def _links(subject: AuditSubject) -> Iterator[Violation]:
    if subject.facts.cpu.is_guest:
        return  # Nobody knows what the host of this machine shows.
    change = (('# lspci -vv; reseat the card, try another riser or slot, look '
               'for a speed that is set in the firmware'),)
    for item in subject.facts.hardware.links:
        (speed, lanes), (lacks_speed, lacks_lanes) = item.best, item.lacks
        if lacks_lanes:
            yield Violation(
                f'{item.address} has {item.now[1]} of {lanes} lanes',
                'what card and slot can have', change)
        elif lacks_speed:
            yield Violation(
                f'{item.address} has {item.now[0]:g} of {speed:g} GT/s',
                'what card and slot can have', change)
        elif lanes < item.card[1]:
            yield Violation(
                f'{item.address} has {item.card[1]} lanes, its slot {lanes}',
                'a slot with as many lanes', (), Severity.NOTE)


RULES = (
    Rule('iommu', Severity.ERROR,
         'The IOMMU is on where guests get devices.',
         'without it no device can be passed to a guest',
         ('SDSC-SRIOV-2013', 'Linux-Parameters'), _iommu),
    Rule('iommu-passthrough', Severity.WARNING,
         'The IOMMU does not translate the DMA of the host itself.',
         "the host's own network and disks otherwise pay for each mapping",
         ('Linux-Parameters',), _translation),
    Rule('virtual-functions', Severity.ERROR,
         'With a profile: each device has the virtual functions that the '
         'flavors need.',
         'Nova refuses guests that find no virtual function',
         ('SDSC-SRIOV-2013', 'Linux-Sriov'), _present),
    Rule('device-cell', Severity.WARNING,
         'The cells of devices and of their virtual functions are known.',
         'a guest must be near its device, and Nova knows the cell only from '
         'the kernel', ('SDSC-SRIOV-2013',), _cell),
    Rule('persistent-functions', Severity.WARNING,
         'Something creates the virtual functions at every boot: udev, '
         'systemd, NetworkManager, netplan, os-net-config, modprobe.',
         'after a reboot the host otherwise offers none',
         ('Linux-Sriov',), _persistent),
    Rule('infiniband-guids', Severity.WARNING,
         'Something gives GUIDs and a policy to InfiniBand virtual functions '
         'at every boot: a rule or script, or the agent of networking-mlnx.',
         'the port of a virtual function without them stays down',
         ('NVIDIA-Guids',), _guids),
    Rule('interrupt-moderation', Severity.NOTE,
         'Network devices of the host or guest do not moderate their '
         'interrupts adaptively, in a capture in which ``ethtool`` ran (a '
         'warning, also about rings, if the profile says how they are).',
         'an interrupt that waits for more packets delays small messages; '
         'whether programs gain is not known',
         ('SDSC-SRIOV-2013',), _moderation),
    Rule('frequency-limit', Severity.WARNING,
         f'CPUs may have at least {MIN_FREQUENCY_PERCENT} % of their highest '
         'frequency (``scaling_max_freq``, ``max_perf_pct``, '
         '``bios_limit``).', 'a limit that was set once slows every guest',
         ('Linux-Cpufreq', 'Linux-Pstate'), _frequency),
    Rule('throttling', Severity.WARNING,
         f'No CPU was throttled for more than {MAX_THROTTLED_PERCENT} % of '
         'the time since the boot, or once in 1000 s if the kernel only '
         'counts it (Intel).', 'a parallel job waits for the CPU that heat or '
         'missing power slows down', ('Linux-Therm-Throt',), _throttled),
    Rule('memory-errors', Severity.WARNING,
         'EDAC counts memory errors (a note if not). None is uncorrected (an '
         f'error), and at most {MAX_CORRECTED_A_DAY} a day are corrected (a '
         'note).',
         'a module with many corrected errors soon has others, which end '
         'guests', ('Linux-Ras', 'Mcelog-Conf'), _errors),
    Rule('memory-channels', Severity.WARNING,
         'All memory controllers that EDAC knows have memory on as many '
         'channels, and as much on each.',
         'memory has its full bandwidth only if all channels are filled '
         'equally',
         ('AMD-HPC-2023',), _channels),
    Rule('pcie-link', Severity.WARNING,
         'PCIe links of network, storage, display devices and accelerators '
         'are as wide and fast as card and slot (a note if the slot is '
         'narrower).', 'half of the lanes have half of the bandwidth',
         ('Linux-Abi',), _links),
)

# SPDX-License-Identifier: Apache-2.0

"""Rules about the condition of the hardware: errors, throttling, links."""

import collections
from collections.abc import Iterator

from hpcvirt.audit import fact
from hpcvirt.audit.finding import Severity
from hpcvirt.audit.rule import AuditSubject
from hpcvirt.audit.rule import cpu_words
from hpcvirt.audit.rule import Rule
from hpcvirt.audit.rule import Violation

#: The part of their highest frequency that CPUs should at least be allowed.
MIN_FREQUENCY_PERCENT = 90

#: mcelog reports a module with more corrected errors than that.
MAX_CORRECTED_A_DAY = 10

#: The part of the time in which a CPU may be throttled.
MAX_THROTTLED_PERCENT = 0.1


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

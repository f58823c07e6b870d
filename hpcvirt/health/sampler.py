# SPDX-License-Identifier: Apache-2.0

"""Read a sample from /proc and /sys.

The formats are those of the kernel's documentation, ``proc(5)`` and
``Documentation/ABI``. What cannot be read is unknown, not zero.

Foreign tasks are all tasks on dedicated CPUs except the threads of QEMU
processes with vCPUs, which are in a control group of libvirt or of systemd's
machines, and the kernel threads that are bound to their CPUs. A task chooses
its name, but not its control group. The time of foreign tasks is counted
between two scans of all tasks; one sampler must therefore take all samples.
"""

import collections
import dataclasses
import math
import operator
import pathlib
import re
import time
from collections.abc import Iterator

from hpcvirt import exception
from hpcvirt.health import host_sample
from hpcvirt.health.host_sample import HOST
from hpcvirt.health.host_sample import Quantity
from hpcvirt.model import cpuset
from hpcvirt.topology import hardware_state

#: The names of QEMU's vCPU threads, with KVM and without.
_VCPU = re.compile(r'CPU \d+/(?:KVM|TCG)')

#: The control groups of guests, and of the services and containers that start
#: them where no groups are made for guests. Only root starts containers that
#: are not in the slice of the users, and users make groups below it only.
_GROUPS_OF_GUESTS = re.compile(
    r'machine(?:\.slice)?|(?:libvirtd|virtqemud)\.service'
    r'|docker|docker-[0-9a-f]+\.scope')
_GROUP_OF_USERS = 'user.slice'

#: Kernel threads, and those that cannot be moved to other CPUs
#: [include/linux/sched.h].
_PF_KTHREAD = 0x00200000
_PF_NO_SETAFFINITY = 0x04000000

#: Linux counts the time of tasks in hundredths of a second [time(7)].
_TICKS_PER_S = 100

#: What names of units do not have.
_UNNAMED = re.compile(r'[^\w.:@-]', re.ASCII)

_CPU = re.compile(r'cpu\d+')
_UPTIME = re.compile(r'\d+\.\d+')
_PAGES = re.compile(r'node(\d+)/hugepages/hugepages-(\d+)kB')


@dataclasses.dataclass(frozen=True, slots=True)
class _Task:
    """A thread.

    :ivar key: its id, and when it started
    :ivar ticks: the CPU time that it has used
    :ivar cpu: where it ran last
    """

    key: tuple[int, int]
    name: str
    flags: int
    ticks: int
    cpu: int

    @property
    def is_bound(self) -> bool:
        return (self.flags & _PF_KTHREAD != 0
                and self.flags & _PF_NO_SETAFFINITY != 0
                and not self.name.startswith('kworker/u'))


class HostSampler:
    """Takes samples of a machine.

    :param root: ``/``, or the root of a copy
    :param dedicated: the CPUs of guests; None for those that the kernel was
        told to isolate, or to leave without a timer tick
    """

    def __init__(self, root: pathlib.Path,
                 dedicated: frozenset[int] | None = None) -> None:
        self._proc = root / 'proc'
        self._sys = root / 'sys'
        self._dedicated = dedicated
        self._ticks: dict[tuple[int, int], int] | None = None
        self._foreign_ticks: collections.Counter[str] = collections.Counter()

    def take(self) -> host_sample.HostSample:
        """Take a sample.

        :raises Unreachable: if not even the time since boot can be read
        """
        uptime = _UPTIME.match(_text(self._proc / 'uptime') or '')
        if not uptime:
            raise exception.Unreachable(
                f'{self._proc.parent}: proc/uptime cannot be read')
        vmstat = _table(self._proc / 'vmstat')
        meminfo = _table(self._proc / 'meminfo')
        slab, memory = meminfo.get('SUnreclaim:'), meminfo.get('MemTotal:')
        guests, foreign_s = self._scan()
        values: dict[Quantity, dict[str, float] | None] = {
            **self._cpu_times(), **self._interrupts(),
            Quantity.SWAPPED: {HOST: vmstat['pswpin'] + vmstat['pswpout']}
            if vmstat.keys() >= {'pswpin', 'pswpout'} else None,
            Quantity.MAJOR_FAULTS: guests,
            Quantity.FOREIGN_TASKS: foreign_s,
            Quantity.SLAB: {HOST: slab / memory}
            if slab is not None and memory else None,
            Quantity.SLOWDOWN: dict(self._frequencies()) or None,
            **self._hardware()}
        return host_sample.HostSample(
            time=time.time(), uptime_s=float(uptime[0]), values={
                name: each for name, each in values.items()
                if each is not None},
            ksm_pages=_number(self._sys / 'kernel/mm/ksm/pages_sharing'),
            slab_kib=slab, huge_pages=dict(self._huge_pages()))

    def _cpu_times(self) -> dict[Quantity, dict[str, float]]:
        found: dict[Quantity, dict[str, float]] = collections.defaultdict(dict)
        for line in (_text(self._proc / 'stat') or '').splitlines():
            fields = line.split(maxsplit=9)
            numbers = [int(field) / _TICKS_PER_S for field in fields[1:9]
                       if field.isdecimal()]
            if (not fields or not _CPU.fullmatch(fields[0])
                    or len(numbers) != 8):
                continue
            _, _, system, idle, iowait, hard, soft, steal = numbers
            for quantity, seconds in (
                    (Quantity.BUSY, sum(numbers) - idle - iowait),
                    (Quantity.SYSTEM, system + hard + soft),
                    (Quantity.IOWAIT, iowait), (Quantity.STEAL, steal)):
                found[quantity][fields[0]] = seconds
        return found

    def _interrupts(self) -> dict[Quantity, dict[str, float]]:
        """Add up the columns of rows that end with words."""
        heading, *rows = (
            _text(self._proc / 'interrupts') or '').splitlines() or ['']
        cpus = [name.lower() for name in heading.split()]
        sums = [0] * len(cpus)
        found: dict[Quantity, dict[str, float]] = {}
        for row in rows:
            name, _, rest = row.partition(':')
            counts = rest.split(maxsplit=len(cpus))[:len(cpus)]
            # Rows without a CPU have one number.
            if (len(counts) < len(cpus)
                    or not all(map(str.isdecimal, counts))):
                continue
            numbers = list(map(int, counts))
            sums = list(map(operator.add, sums, numbers))
            if name.strip() == 'TLB':
                found[Quantity.SHOOTDOWNS] = dict(
                    zip(cpus, numbers, strict=True))
        if any(sums):
            found[Quantity.INTERRUPTS] = dict(zip(cpus, sums, strict=True))
        return found

    def _frequencies(self) -> Iterator[tuple[str, float]]:
        """Yield frequencies as fractions of what the maker promises."""
        for place in (self._sys / 'devices/system/cpu').glob('cpu[0-9]*'):
            khz = _number(place / 'cpufreq/scaling_cur_freq')
            nominal = _number(place / 'cpufreq/base_frequency') or 1000 * (
                _number(place / 'acpi_cppc/nominal_freq') or 0)
            if khz and nominal:
                yield place.name, khz / nominal

    def _hardware(self) -> dict[Quantity, dict[str, float]]:
        root = self._sys.parent
        state = (lambda name: (_text(root / name) or '').strip(),
                 lambda name: [each.name for each in (root / name).glob('*')])
        errors = list(hardware_state.read_memory_errors(*state))
        found: dict[Quantity, dict[str, float]] = {
            Quantity.THROTTLED_S: {
                unit: time_ms / 1000 for unit, _, time_ms
                in hardware_state.read_throttling(*state)
                if time_ms is not None},
            Quantity.CORRECTED_ERRORS: {
                name: count for name, count, _ in errors
                if count is not None},
            Quantity.UNCORRECTED_ERRORS: {
                name: count for name, _, count in errors
                if count is not None},
            Quantity.LINK_LOSS: {
                link.address: 1 - math.prod(1 - lack for lack in link.lacks)
                for link in hardware_state.read_links(*state)}}
        return {name: each for name, each in found.items() if each}

    def _huge_pages(self) -> Iterator[tuple[tuple[int, int],
                                            tuple[int, int]]]:
        for place in sorted((self._sys / 'devices/system/node').glob(
                'node[0-9]*/hugepages/hugepages-*')):
            match = _PAGES.fullmatch('/'.join(place.parts[-3:]))
            total = _number(place / 'nr_hugepages')
            free = _number(place / 'free_hugepages')
            if match and total is not None and free is not None:
                yield (int(match[1]), int(match[2])), (total, free)

    def _scan(self) -> tuple[dict[str, float] | None,
                             dict[str, float] | None]:
        """Look at all tasks.

        :returns: the major faults of each guest, and the time of foreign tasks
            on each dedicated CPU since the first scan
        """
        dedicated = self.find_dedicated()
        guests: dict[str, float] = {}
        ticks: dict[tuple[int, int], int] = {}
        unknown = False
        for process, tasks in self._processes():
            if any(_VCPU.fullmatch(task.name) for task in tasks):
                groups = _text(process / 'cgroup') or ''
                if _is_guest(groups):
                    found = self._major_faults(groups)
                    unknown = unknown or found is None
                    guests.update(found or {})
                    continue
            for task in tasks:
                ticks[task.key] = task.ticks
                if (self._ticks is not None and not task.is_bound
                        and task.cpu in dedicated):
                    # A task that is not known began after the last scan.
                    self._foreign_ticks[f'cpu{task.cpu}'] += max(
                        0, task.ticks - self._ticks.get(task.key, 0))
        self._ticks = ticks
        foreign = {f'cpu{cpu}': self._foreign_ticks[f'cpu{cpu}'] / _TICKS_PER_S
                   for cpu in dedicated}
        return None if unknown and not guests else guests, foreign or None

    def find_dedicated(self) -> frozenset[int]:
        """Return the dedicated CPUs; none if they are not known."""
        if self._dedicated is not None:
            return self._dedicated
        cpus = self._sys / 'devices/system/cpu'
        return (_cpus(_text(cpus / 'isolated') or '')
                | _cpus(_text(cpus / 'nohz_full') or ''))

    def _major_faults(self, groups: str) -> dict[str, float] | None:
        """Read what the group of a guest counts; see cgroups(7).

        The threads of a guest are in groups below that with its memory.
        """
        for line in groups.splitlines():
            _, _, rest = line.partition(':')
            controllers, _, path = rest.partition(':')
            parts = path.strip('/').split('/')
            if '..' in parts or controllers not in ('', 'memory'):
                continue
            for end in range(len(parts), 0, -1):
                count = _table(pathlib.Path(
                    self._sys, 'fs/cgroup', controllers, *parts[:end],
                    'memory.stat')).get('pgmajfault')
                if count is not None:
                    # A name is a label of a metric: systemd escapes hyphens.
                    return {_UNNAMED.sub('_', parts[end - 1].replace(
                        '\\x2d', '-'))[:64]: count}
        return None

    def _processes(self) -> Iterator[tuple[pathlib.Path, list[_Task]]]:
        """Yield the threads of each process; processes may end meanwhile."""
        for process in self._proc.glob('[0-9]*'):
            yield process, [task for task in (
                _task(_text(place / 'stat')) for place in
                (process / 'task').glob('[0-9]*')) if task is not None]


def _is_guest(groups: str) -> bool:
    """Tell whether control groups, as in cgroups(7), are those of a guest."""
    paths = (line.split(':', 2)[-1].strip('/').split('/')
             for line in groups.splitlines())
    return any(path[0] != _GROUP_OF_USERS
               and any(map(_GROUPS_OF_GUESTS.fullmatch, path))
               for path in paths)


def _task(stat: str | None) -> _Task | None:
    """Read the line of a task, whose name may contain anything."""
    before, bracket, after = (stat or '').rpartition(')')
    fields = after.split()
    number, _, name = before.partition(' (')
    if not bracket or len(fields) < 37 or not number.isdecimal():
        return None
    return _Task((int(number), int(fields[19])), name, int(fields[6]),
                 int(fields[11]) + int(fields[12]), int(fields[36]))


def _cpus(text: str) -> frozenset[int]:
    """Read a list of CPUs; a malformed list counts as unknown."""
    try:
        return cpuset.parse(text)
    except exception.InvalidInput:
        return frozenset()


def _text(path: pathlib.Path) -> str | None:
    try:
        return path.read_text(encoding='utf-8', errors='replace')
    except OSError:
        return None


def _number(path: pathlib.Path) -> int | None:
    text = (_text(path) or '').strip()
    return int(text) if text.isdecimal() else None


def _table(path: pathlib.Path) -> dict[str, int]:
    """Read lines of a name and a number."""
    rows = (line.split() for line in (_text(path) or '').splitlines())
    return {row[0]: int(row[1]) for row in rows
            if len(row) > 1 and row[1].isdecimal()}

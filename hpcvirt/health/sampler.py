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
import contextlib
import math
import operator
import os
import pathlib
import re
import time
import typing
from collections.abc import Iterator

from hpcvirt import exception
from hpcvirt.health import signature
from hpcvirt.health.signature import HOST
from hpcvirt.health.signature import Quantity
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

#: Kernel threads that cannot be moved to other CPUs: PF_KTHREAD and
#: PF_NO_SETAFFINITY [include/linux/sched.h].
_BOUND = 0x00200000 | 0x04000000

#: Linux counts the time of tasks in hundredths of a second [time(7)].
_TICKS_PER_S = 100

#: What names of units do not have.
_UNNAMED = re.compile(r'[^\w.:@-]', re.ASCII)

_UPTIME = re.compile(r'\d+\.\d+')
#: Of a CPU: user, nice, system, idle, iowait, irq, softirq, steal [proc(5)].
_CPU_TIMES = re.compile(r'^(cpu\d+)((?: \d+){8})', re.MULTILINE)
_PAGES = re.compile(r'/node(\d+)/hugepages/hugepages-(\d+)kB$')
#: The controllers and the path of a group, as in cgroups(7).
_GROUP = re.compile(r'^\d+:([^:]*):/(.*)$', re.MULTILINE)

_Counters = dict[Quantity, dict[str, float]]


class _Task(typing.NamedTuple):
    """A thread.

    :ivar key: its id, and when it started
    :ivar is_bound: whether it is a kernel thread that is bound to its CPU
    :ivar ticks: the CPU time that it has used
    :ivar cpu: where it ran last
    """

    key: tuple[int, int]
    name: str
    is_bound: bool
    ticks: int
    cpu: int


class HostSampler:
    """Takes samples of a machine.

    :param root: ``/``, or the root of a copy
    :param dedicated: the CPUs of guests; None for those that the kernel was
        told to isolate, or to leave without a timer tick
    """

    def __init__(self, root: pathlib.Path,
                 dedicated: frozenset[int] | None = None) -> None:
        self._root = root
        self._dedicated = dedicated
        self._ticks: dict[tuple[int, int], int] | None = None
        self._foreign_ticks: collections.Counter[str] = collections.Counter()

    def take(self) -> signature.HostSample:
        """Take a sample.

        :raises Unreachable: if not even the time since boot can be read
        """
        uptime = _UPTIME.match(self._text('proc/uptime'))
        if not uptime:
            raise exception.Unreachable(
                f'{self._root}: proc/uptime cannot be read')
        vmstat = self._table('proc/vmstat')
        meminfo = self._table('proc/meminfo')
        slab, memory = meminfo.get('SUnreclaim:'), meminfo.get('MemTotal:')
        major_faults, foreign_s = self._scan()
        values: _Counters = {
            **self._cpu_times(), **self._interrupts(), **self._hardware(),
            Quantity.FOREIGN_TASKS: foreign_s,
            Quantity.SLOWDOWN: dict(self._frequencies())}
        if vmstat.keys() >= {'pswpin', 'pswpout'}:
            values[Quantity.SWAPPED] = {
                HOST: vmstat['pswpin'] + vmstat['pswpout']}
        if slab is not None and memory:
            values[Quantity.SLAB] = {HOST: slab / memory}
        values = {name: units for name, units in values.items() if units}
        if major_faults is not None:
            values[Quantity.MAJOR_FAULTS] = major_faults
        return signature.HostSample(
            time=time.time(), uptime_s=float(uptime[0]), values=values,
            ksm_pages=self._number('sys/kernel/mm/ksm/pages_sharing'),
            slab_kib=slab, huge_pages=dict(self._huge_pages()))

    def _cpu_times(self) -> _Counters:
        found: _Counters = collections.defaultdict(dict)
        for cpu, numbers in _CPU_TIMES.findall(self._text('proc/stat')):
            user, nice, system, _, iowait, hard, soft, steal = map(
                int, numbers.split())
            system += hard + soft
            for quantity, ticks in (
                    (Quantity.BUSY, user + nice + system + steal),
                    (Quantity.SYSTEM, system),
                    (Quantity.IOWAIT, iowait), (Quantity.STEAL, steal)):
                found[quantity][cpu] = ticks / _TICKS_PER_S
        return found

    def _interrupts(self) -> _Counters:
        """Add up the columns of rows that end with words."""
        heading, *rows = self._text('proc/interrupts').split('\n')
        cpus = [name.lower() for name in heading.split()]
        sums = [0] * len(cpus)
        found: _Counters = {}
        for row in rows:
            name, _, rest = row.partition(':')
            counts = rest.split(maxsplit=len(cpus))[:len(cpus)]
            numbers = [int(count) for count in counts if count.isdecimal()]
            # Rows without a CPU have one number.
            if len(numbers) < len(cpus):
                continue
            sums = list(map(operator.add, sums, numbers))
            if name.strip() == 'TLB':
                found[Quantity.SHOOTDOWNS] = dict(
                    zip(cpus, numbers, strict=True))
        if any(sums):
            found[Quantity.INTERRUPTS] = dict(zip(cpus, sums, strict=True))
        return found

    def _frequencies(self) -> Iterator[tuple[str, float]]:
        """Yield frequencies as fractions of what the maker promises."""
        for cpu in self._names(hardware_state.CPU):
            here = f'{hardware_state.CPU}/{cpu}'
            khz = self._number(f'{here}/cpufreq/scaling_cur_freq')
            nominal = self._number(f'{here}/cpufreq/base_frequency') or (
                1000 * (self._number(f'{here}/acpi_cppc/nominal_freq') or 0))
            if khz and nominal:
                yield cpu, khz / nominal

    def _hardware(self) -> _Counters:
        state = self._text, self._names
        errors = list(hardware_state.read_memory_errors(*state))
        return {
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

    def _huge_pages(self) -> Iterator[tuple[tuple[str, ...],
                                            tuple[int, int]]]:
        nodes = 'sys/devices/system/node'
        for node in self._names(nodes):
            for size in self._names(f'{nodes}/{node}/hugepages'):
                here = f'{nodes}/{node}/hugepages/{size}'
                match = _PAGES.search(here)
                total = self._number(f'{here}/nr_hugepages')
                free = self._number(f'{here}/free_hugepages')
                if match and total is not None and free is not None:
                    yield match.groups(), (total, free)

    def _scan(self) -> tuple[dict[str, float] | None, dict[str, float]]:
        """Look at all tasks.

        :returns: the major faults of each guest, None if they are not known,
            and the time of foreign tasks on each dedicated CPU since the first
            scan
        """
        dedicated = self.find_dedicated()
        guests = []
        ticks: dict[tuple[int, int], int] = {}
        for process in filter(str.isdecimal, self._names('proc')):
            tasks = self._tasks(f'proc/{process}/task')
            if any(_VCPU.fullmatch(task.name) for task in tasks):
                groups = [(controllers, path.split('/'))
                          for controllers, path in _GROUP.findall(
                              self._text(f'proc/{process}/cgroup'))]
                if any(path[0] != _GROUP_OF_USERS
                       and any(map(_GROUPS_OF_GUESTS.fullmatch, path))
                       for _, path in groups):
                    guests.append(self._major_faults(groups))
                    continue
            for task in tasks:
                ticks[task.key] = task.ticks
                if (self._ticks is not None and not task.is_bound
                        and task.cpu in dedicated):
                    # A task that is not known began after the last scan.
                    self._foreign_ticks[f'cpu{task.cpu}'] += max(
                        0, task.ticks - self._ticks.get(task.key, 0))
        self._ticks = ticks
        faults = dict(filter(None, guests))
        return None if guests and not faults else faults, {
            f'cpu{cpu}': self._foreign_ticks[f'cpu{cpu}'] / _TICKS_PER_S
            for cpu in dedicated}

    def find_dedicated(self) -> frozenset[int]:
        """Return the dedicated CPUs; none if they are not known."""
        if self._dedicated is not None:
            return self._dedicated
        found: frozenset[int] = frozenset()
        for name in ('isolated', 'nohz_full'):
            with contextlib.suppress(exception.InvalidInput):
                found |= cpuset.parse(
                    self._text(f'{hardware_state.CPU}/{name}'))
        return found

    def _major_faults(self, groups: list[tuple[str, list[str]]],
                      ) -> tuple[str, float] | None:
        """Read the name of a guest, and what its group counts.

        The threads of a guest are in groups below that with its memory.
        """
        for controllers, path in groups:
            if '..' in path or controllers not in ('', 'memory'):
                continue
            for end in range(len(path), 0, -1):
                count = self._table('/'.join((
                    'sys/fs/cgroup', controllers, *path[:end], 'memory.stat',
                ))).get('pgmajfault')
                if count is not None:
                    # A name is a label of a metric: systemd escapes hyphens.
                    return _UNNAMED.sub('_', path[end - 1].replace(
                        '\\x2d', '-'))[:64], count
        return None

    def _tasks(self, folder: str) -> list[_Task]:
        """Read the threads of a process, which may end meanwhile."""
        tasks = (_read_task(self._text(f'{folder}/{number}/stat'))
                 for number in self._names(folder))
        return [task for task in tasks if task is not None]

    def _text(self, name: str) -> str:
        """Read a file without surrounding white space; empty if it fails."""
        try:
            return (self._root / name).read_text(
                encoding='utf-8', errors='replace').strip()
        except OSError:
            return ''

    def _names(self, name: str) -> list[str]:
        """List a folder; empty if that fails."""
        try:
            return sorted(os.listdir(self._root / name))
        except OSError:
            return []

    def _number(self, name: str) -> int | None:
        return hardware_state.read_number(self._text, name)

    def _table(self, name: str) -> dict[str, int]:
        """Read lines of a name and a number."""
        rows = (line.split() for line in self._text(name).splitlines())
        return {row[0]: int(row[1]) for row in rows
                if len(row) > 1 and row[1].isdecimal()}


def _read_task(stat: str) -> _Task | None:
    """Read the line of a task, whose name may contain anything."""
    before, bracket, after = stat.rpartition(')')
    fields = after.split()
    number, _, name = before.partition(' (')
    if not bracket or len(fields) < 37 or not number.isdecimal():
        return None
    is_bound = (int(fields[6]) & _BOUND == _BOUND
                and not name.startswith('kworker/u'))
    return _Task((int(number), int(fields[19])), name, is_bound,
                 int(fields[11]) + int(fields[12]), int(fields[36]))

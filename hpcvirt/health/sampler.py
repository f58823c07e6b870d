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

import dataclasses
import pathlib
import re
import time
from collections.abc import Iterator

from hpcvirt import exception
from hpcvirt.health import host_sample
from hpcvirt.model import cpuset

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

_UPTIME = re.compile(r'\d+\.\d+')
_CELL = re.compile(r'node(\d+)')
_PAGES = re.compile(r'hugepages-(\d+)kB')


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
        told to isolate
    """

    def __init__(self, root: pathlib.Path,
                 dedicated: frozenset[int] | None = None) -> None:
        self._proc = root / 'proc'
        self._sys = root / 'sys'
        self._dedicated = dedicated
        self._ticks: dict[tuple[int, int], int] | None = None
        self._foreign_ticks = 0

    def take(self) -> host_sample.HostSample:
        """Take a sample.

        :raises Unreachable: if not even the time since boot can be read
        """
        uptime = _UPTIME.match(_text(self._proc / 'uptime') or '')
        online = (_text(self._sys / 'devices/system/cpu/online') or '').strip()
        if not uptime or not online:
            raise exception.Unreachable(
                f'{self._proc.parent}: proc/uptime and '
                'sys/devices/system/cpu/online cannot be read')
        boot_id = _text(self._proc / 'sys/kernel/random/boot_id')
        cpu_time, interrupts = self._stat()
        vmstat = _table(self._proc / 'vmstat')
        meminfo = _table(self._proc / 'meminfo')
        dedicated, foreign_s, busiest = self._scan()
        return host_sample.HostSample(
            time=time.time(), boot_id=(boot_id or '').strip(),
            uptime_s=float(uptime[0]), online=online,
            cpus=max(1, len(_cpus(online))), cpu_time=cpu_time,
            interrupts=interrupts, shootdowns=self._shootdowns(),
            swapped_pages=_sum(vmstat, ('pswpin', 'pswpout')),
            ksm_pages=_number(self._sys / 'kernel/mm/ksm/pages_sharing'),
            slab_kib=meminfo.get('SUnreclaim:'),
            memory_kib=meminfo.get('MemTotal:'),
            huge_pages=tuple(self._huge_pages()), foreign_tasks_s=foreign_s,
            dedicated=dedicated, busiest=busiest,
            corrected_errors=_total(
                self._sys / 'devices/system/edac/mc', 'mc*/ce_count'),
            throttles=_total(self._sys / 'devices/system/cpu',
                             'cpu[0-9]*/thermal_throttle/*_throttle_count'))

    def _stat(self) -> tuple[host_sample.CpuTime | None, int | None]:
        cpu_time = interrupts = None
        for line in (_text(self._proc / 'stat') or '').splitlines():
            fields = line.split(maxsplit=9)
            numbers = [int(field) for field in fields[1:9]
                       if field.isdecimal()]
            if fields[:1] == ['cpu'] and len(numbers) == 8:
                cpu_time = host_sample.CpuTime(
                    total=sum(numbers), iowait=numbers[4], steal=numbers[7],
                    system=numbers[2] + numbers[5] + numbers[6])
            elif fields[:1] == ['intr'] and numbers:
                interrupts = numbers[0]
        return cpu_time, interrupts

    def _shootdowns(self) -> int | None:
        """Add up a row that ends with words."""
        try:
            with (self._proc / 'interrupts').open(encoding='utf-8') as lines:
                for line in lines:
                    name, _, rest = line.partition(':')
                    if name.strip() == 'TLB':
                        return sum(int(field) for field in rest.split()
                                   if field.isdecimal())
        except (OSError, UnicodeDecodeError):
            pass
        return None

    def _huge_pages(self) -> Iterator[host_sample.HugePageUsage]:
        for place in sorted((self._sys / 'devices/system/node').glob(
                'node[0-9]*/hugepages/hugepages-*')):
            size = _PAGES.fullmatch(place.name)
            cell = _CELL.fullmatch(place.parent.parent.name)
            total = _number(place / 'nr_hugepages')
            free = _number(place / 'free_hugepages')
            if size and cell and total is not None and free is not None:
                yield host_sample.HugePageUsage(cell=int(cell[1]),
                                           size_kib=int(size[1]), total=total,
                                           free=free)

    def _scan(self) -> tuple[int, float | None, str | None]:
        """Look at all tasks.

        :returns: the number of dedicated CPUs, the time of foreign tasks since
            the first scan, and the busiest one since the last scan
        """
        dedicated = self._dedicated
        if dedicated is None:
            dedicated = _cpus(_text(
                self._sys / 'devices/system/cpu/isolated') or '')
        if not dedicated:
            return 0, None, None
        ticks: dict[tuple[int, int], int] = {}
        most, busiest = 0, None
        for process, tasks in self._processes():
            if (any(_VCPU.fullmatch(task.name) for task in tasks)
                    and _is_guest(_text(process / 'cgroup') or '')):
                continue
            for task in tasks:
                ticks[task.key] = task.ticks
                if (self._ticks is None or task.is_bound
                        or task.cpu not in dedicated):
                    continue
                # A task that is not known began after the last scan.
                used = task.ticks - self._ticks.get(task.key, 0)
                self._foreign_ticks += max(0, used)
                if used > most:
                    most, busiest = used, task.name
        self._ticks = ticks
        return len(dedicated), self._foreign_ticks / _TICKS_PER_S, busiest

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


def _sum(table: dict[str, int], names: tuple[str, ...]) -> int | None:
    found = [table[name] for name in names if name in table]
    return sum(found) if len(found) == len(names) else None


def _total(place: pathlib.Path, pattern: str) -> int | None:
    """Add up the numbers in all files that there are."""
    found = [number for number in map(_number, place.glob(pattern))
             if number is not None]
    return sum(found) if found else None

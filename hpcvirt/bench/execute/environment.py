# SPDX-License-Identifier: Apache-2.0

"""Capture the environment of a sample, on which its figures depend.

It has what must be equal on both sides and what explains a slow figure: CPU
model and microcode, kernel and its command line, mitigations, hypervisor, page
sizes, KSM, governor, NUMA layout, load and steal time, the program and the
libraries that it is linked with. What a machine does not have is left out.
"""

import dataclasses
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import words
from hpcvirt.bench.execute import executor
from hpcvirt.bench.execute import machine_facts

#: Longer values are cut; CPU flags are about 1,500 characters. A guest could
#: print megabytes, which every sample would keep.
LONGEST = 4000

_CPU = 'sys/devices/system/cpu'
_CPUINFO = 'proc/cpuinfo'
_MEMORY_PAGES = 'sys/kernel/mm'
#: Facts to their files.
_FILES = {
    'cpu.online': machine_facts.CPUS_ONLINE,
    'cpu.smt': f'{_CPU}/smt/active',
    'kvm.ept': 'sys/module/kvm_intel/parameters/ept',
    'kvm.npt': 'sys/module/kvm_amd/parameters/npt',
    'cpu.governor': f'{_CPU}/cpu0/cpufreq/scaling_governor',
    'cpu.no_turbo': f'{_CPU}/intel_pstate/no_turbo',
    'cpu.boost': f'{_CPU}/cpufreq/boost',
    'clocksource':
        'sys/devices/system/clocksource/clocksource0/current_clocksource',
    'kernel': 'proc/sys/kernel/osrelease',
    'kernel.version': 'proc/version',
    'kernel.cmdline': 'proc/cmdline',
    'kernel.numa_balancing': 'proc/sys/kernel/numa_balancing',
    'boot_id': machine_facts.BOOT_ID,
    'host': machine_facts.HOSTNAME,
    'virtual.vendor': 'sys/class/dmi/id/sys_vendor',
    'virtual.product': 'sys/class/dmi/id/product_name',
    'pages.thp': f'{_MEMORY_PAGES}/transparent_hugepage/enabled',
    'pages.thp_defrag': f'{_MEMORY_PAGES}/transparent_hugepage/defrag',
    'pages.ksm': f'{_MEMORY_PAGES}/ksm/run',
}
#: Beginnings of facts to files of which there is one for each member of a
#: folder, whose name each ``*`` stands for.
_FILES_OF_MEMBERS = (
    ('mitigation.', f'{_CPU}/vulnerabilities/*'),
    ('pages.', f'{_MEMORY_PAGES}/hugepages/*/nr_hugepages'),
    ('numa.', 'sys/devices/system/node/*/cpulist'),
    ('link.', 'sys/class/infiniband/*/ports/1/rate'),
    ('link.', 'sys/class/net/*/device/net/*/speed'),
)
_POOL = 'hugepages-'

#: What changes while a sample runs.
_LOADAVG = 'proc/loadavg'
_UPTIME = 'proc/uptime'
_VMSTAT = 'proc/vmstat'
_STAT = 'proc/stat'
_OF_LOAD = (_LOADAVG, _UPTIME, _VMSTAT, machine_facts.MEMORY,
            f'{_STAT}:^cpu ')
#: Values of :func:`load` that only grow.
_COUNTERS = frozenset({'ticks', 'read_kib'})

#: Prints what programs say of themselves. Its arguments are the words of a
#: command; those that are programs are recorded, with their libraries. Each
#: ``file`` is one whose replacement would change the answer.
SOFTWARE = """
fact() { [ -z "$2" ] || printf '%s=%s\\n' "$1" "$2"; }
IFS= read -r value < /proc/sys/kernel/random/boot_id && fact boot_id "$value"
fact arch "$(uname -m)"
fact libc "$(getconf GNU_LIBC_VERSION 2>/dev/null)"
for program in gcc gfortran mpirun; do
  found=$(command -v $program 2> /dev/null) || continue
  fact file "$found"
  $program --version 2>/dev/null |
    { IFS= read -r value; fact $program "$value"; }
done
for word; do
  program=$(command -v "$word" 2>/dev/null) || continue
  [ -f "$program" ] && [ -x "$program" ] || continue
  case $program in /*) fact file "$program" ;; esac
  sum=$(sha256sum < "$program") && fact "program.${word##*/}" "${sum%% *}"
  ldd "$program" 2>/dev/null | while read -r name arrow path rest; do
    [ -r "$path" ] || continue
    fact file "$path"
    case $name in *blas*|*lapack*|*mkl*|*mpi*|*fftw*|*gomp*)
      fact "library.$name" \
        "$(readlink -f "$path") $(wc -c < "$path") bytes" ;;
    esac
  done
done
:
"""


@dataclasses.dataclass(frozen=True, slots=True)
class _Software:
    """What :data:`SOFTWARE` has printed.

    :ivar state: the boot, and the state of the files
    """

    facts: Mapping[str, str]
    files: tuple[str, ...]
    state: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Captured:
    """The environment of a command at a moment.

    :ivar facts: what does not change during a sample
    :ivar load: from :func:`load`
    """

    facts: Mapping[str, str]
    load: Mapping[str, str]


class Environments:
    """The environments of the commands of a run.

    What only programs say is read once, and again if the machine has booted or
    one of the files was replaced.
    """

    def __init__(self) -> None:
        self._software: dict[tuple[str, ...], _Software] = {}

    def capture(self, place: executor.Executor,
                command: Sequence[str] = ()) -> Captured:
        """Capture the environment of a command.

        :param command: the programs in it are recorded, with their libraries
        :raises Unreachable: if the machine does not answer
        """
        key = (place.name, *command)
        known = self._software.get(key)
        if known is not None:
            files = _read_files(place, known.files)
        if known is None or known.state != _state(files):
            known, files = _read_software(place, command)
            self._software[key] = known
        return Captured({**_find_facts(files), **known.facts},
                        _find_load(files))


def facts(place: executor.Executor) -> Mapping[str, str]:
    """Capture the facts of a machine once; see :class:`Environments`."""
    return Environments().capture(place).facts


def load(place: executor.Executor) -> Mapping[str, str]:
    """Capture the current load.

    :raises Unreachable: if the machine does not answer
    """
    return _find_load(machine_facts.read(place, *_OF_LOAD))


def _read_files(place: executor.Executor,
                states: Sequence[str]) -> machine_facts.MachineFacts:
    return machine_facts.read(
        place, f'{_CPUINFO}:^', *_FILES.values(), *(
            pattern for _, pattern in _FILES_OF_MEMBERS), *_OF_LOAD,
        states=states)


def _read_software(place: executor.Executor, command: Sequence[str],
                   ) -> tuple[_Software, machine_facts.MachineFacts]:
    answer = machine_facts.ask(place, SOFTWARE, *command)
    names = tuple(dict.fromkeys(answer.lines('file')))
    files = _read_files(place, names)
    said = _cut({name: answer.line(name)
                 for name in answer if name != 'file'})
    state = (said.pop('boot_id', ''), *_state(files)[1:])
    return _Software(said, names, state), files


def _state(files: machine_facts.MachineFacts) -> tuple[str, ...]:
    return (files.line(machine_facts.BOOT_ID), *files.lines('state'))


def _find_facts(files: machine_facts.MachineFacts) -> dict[str, str]:
    flags = files.row(_CPUINFO, 'flags') or files.row(_CPUINFO, 'Features')
    memory, *_ = [*files.row(machine_facts.MEMORY, 'MemTotal').split(), '']
    found = {
        'cpu.model': files.row(_CPUINFO, 'model name'),
        'cpu.microcode': files.row(_CPUINFO, 'microcode'),
        'cpu.flags': flags,
        'virtual': 'yes' if 'hypervisor' in flags.split() else 'no',
        'memory.total_kib': memory,
        **{fact: files.line(name) for fact, name in _FILES.items()}}
    for beginning, pattern in _FILES_OF_MEMBERS:
        for member in files.names(pattern.partition('/*')[0]):
            name = beginning + member.removeprefix(_POOL)
            found[name] = files.line(pattern.replace('*', member))
    return _cut(found)


def _find_load(files: machine_facts.MachineFacts) -> dict[str, str]:
    loads = files.line(_LOADAVG).split()
    found = dict(_read_counters(files))
    if len(loads) > 3:
        found['load'] = loads[0]
        found['running'] = loads[3].partition('/')[0]
    found['uptime_s'] = files.line(_UPTIME).partition(' ')[0]
    found['swap_free_kib'] = files.row(
        machine_facts.MEMORY, 'SwapFree').partition(' ')[0]
    return _cut(found)


def _cut(found: Mapping[str, str]) -> dict[str, str]:
    """Drop empty values, and cut those that are too long to be kept."""
    return {name: value[:LONGEST] for name, value in found.items() if value}


def _read_counters(files: machine_facts.MachineFacts,
                   ) -> Iterator[tuple[str, str]]:
    yield 'ticks', files.line(_STAT).partition(' ')[2]
    for line in files.lines(_VMSTAT):
        name, _, value = line.partition(' ')
        if name == 'pgpgin':
            yield 'read_kib', value


def describe_load(before: Mapping[str, str],
                  after: Mapping[str, str]) -> dict[str, str]:
    """Describe the load before, during and after a sample.

    :param before: from :func:`load`
    :param after: from :func:`load`
    :returns: ``load.before``, ``load.after``, ``uptime_s.before`` and so on,
        ``disk_read_mib`` for the sample, and ``steal_percent`` and
        ``iowait_percent`` of its CPU time
    """
    change = {f'{name}.before': value for name, value in before.items()
              if name not in _COUNTERS}
    change.update({f'{name}.after': value for name, value in after.items()
                   if name not in _COUNTERS})
    read_before, read_after = (words.read_whole(now.get('read_kib', ''))
                               for now in (before, after))
    if read_before is not None and read_after is not None:
        change['disk_read_mib'] = str((read_after - read_before) // 1024)
    spent = [late - early for early, late in
             zip(_ticks(before), _ticks(after), strict=False)]
    # The first eight columns of /proc/stat are disjoint; user time includes
    # guest time (proc(5)).
    total = sum(spent[:8])
    if total > 0 and len(spent) >= 8:
        change['iowait_percent'] = f'{100 * spent[4] / total:.2f}'
        change['steal_percent'] = f'{100 * spent[7] / total:.2f}'
    return change


def _ticks(load_now: Mapping[str, str]) -> list[int]:
    columns = map(words.read_whole, load_now.get('ticks', '').split())
    return [ticks for ticks in columns if ticks is not None]

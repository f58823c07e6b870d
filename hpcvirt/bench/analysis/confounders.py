# SPDX-License-Identifier: Apache-2.0

"""Compare the conditions of both sides besides virtualization.

A condition that differs is a *confounder*: it may cause a loss that looks like
a loss by virtualization. If the sides ran different programs, or ran on
different CPUs, the comparison is invalid.

Some facts of a guest cannot be compared with those of its host. A guest has no
governor and no turbo mode, and its microcode version is set by the hypervisor.
Its CPU has the name of the libvirt CPU model, unless it is that of the host.
"""

import itertools
import re
import statistics
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence

from hpcvirt.bench.model import record

#: Names of facts in the environments of samples, as they are reported.
_COMPARED = {
    'arch': 'architecture', 'cpu.model': 'CPU model', 'kernel': 'kernel',
    'kernel.numa_balancing': 'NUMA balancing', 'clocksource': 'clock source',
    'pages.thp': 'transparent huge pages',
    'pages.thp_defrag': 'defragmentation for huge pages',
    'libc': 'C library', 'gcc': 'gcc', 'gfortran': 'gfortran',
    'mpirun': 'MPI',
}
#: The same for facts that a guest does not have, or not those of its host.
_OF_HOSTS = {
    'cpu.microcode': 'microcode', 'cpu.governor': 'governor',
    'cpu.no_turbo': 'turbo off', 'cpu.boost': 'turbo', 'cpu.smt': 'SMT',
    'pages.ksm': 'KSM',
}
_LIBRARY = 'library.'
_PROGRAM = 'program.'
_MITIGATION = 'mitigation.'
#: Programs that start the measured one.
_LAUNCHERS = frozenset({'mpirun', 'env', 'sh', 'numactl', 'taskset'})
#: Options of the kernel that change its speed.
_OPTIONS = re.compile(
    r'(mitigations|isolcpus|nohz_full|rcu_nocbs|idle|intel_idle|intel_pstate|'
    r'amd_pstate|processor|cpufreq|clocksource|tsc|nosmt|transparent_hugepage|'
    r'numa_balancing|audit|nopti|pti|spectre_v2|spec_store_bypass_disable|'
    r'l1tf|mds|tsx|iommu|intel_iommu)\b')
#: Features of a CPU that make programs faster.
_FEATURES = re.compile(
    r'(ssse3|sse|avx|amx|fma|f16c|bmi|popcnt|pdpe1gb|pcid|invpcid|rdtscp|'
    r'asimd|sve)')
#: The names of real CPUs, and the QEMU models that look like one.
_REAL = re.compile(r'\((R|TM)\)|-Core Processor', re.IGNORECASE)
_OF_QEMU = re.compile(r'QEMU|KVM|Duo CPU +T7700|CPU +T2600|CPU +N270|'
                      r'Phenom\(tm\) 9550')

#: The smallest differences of the load that are reported: running programs,
#: CPU time in percent, MiB, and in any case a fraction of the larger value.
_RUNNING = 1.0
_STOLEN = 1.0
_WAITING = 5.0
_READ_MIB = 64.0
_PART = 0.25

_SIDES = (record.Side.NATIVE, record.Side.GUEST)


def find_obstacle(run: record.Run) -> str | None:
    """Return why the sides of a run cannot be compared, None if they can.

    Facts that one side does not have are ignored.
    """
    facts = _Facts(run)
    names = [{name for name in facts.values(side, 'cpu.model')
              if _REAL.search(name) and not _OF_QEMU.search(name)}
             for side in _SIDES]
    if all(names) and names[0] != names[1]:
        return 'the sides ran on different CPUs: ' + _sides(
            *(' / '.join(sorted(side)) for side in names))
    texts = {
        'arch': 'ran on different architectures: {}',
        'cores.used': 'used different numbers of cores: {}',
        **{name: f'ran different binaries of {program}: {{}} (SHA-256)'
           for name in facts.names(_PROGRAM)
           if (program := name.removeprefix(_PROGRAM)) not in _LAUNCHERS}}
    for name, text in texts.items():
        both = [facts.values(side, name) for side in _SIDES]
        if all(both) and len({*both[0], *both[1]}) > 1:
            return 'the sides ' + text.format(_sides(
                *(' / '.join(value[:12] for value in side) for side in both)))
    return None


def format_differences(runs: Sequence[record.Run]) -> tuple[str, ...]:
    """Describe the differences between the sides of runs, each as a clause.

    :returns: the differences of all runs first
    """
    found: dict[str, list[str]] = {}
    for run in runs:
        for clause in differences(run):
            found.setdefault(clause, []).append(run.label)
    common = [clause for clause, labels in found.items()
              if len(labels) == len(runs)]
    return (*common, *(f'{", ".join(labels)}: {clause}'
                       for clause, labels in found.items()
                       if clause not in common))


def differences(run: record.Run) -> tuple[str, ...]:
    """Describe the differences between the sides of a run as clauses.

    A run of one side has none.
    """
    if len({sample.side for sample in run.samples
            if not sample.warm_up}) < len(_SIDES):
        return ()
    facts = _Facts(run)
    return (*_of_facts(facts), *_of_cores(facts), *_of_words(facts),
            *_of_mitigations(facts), *_of_load(facts))


class _Facts:
    """The facts of both sides."""

    def __init__(self, run: record.Run) -> None:
        self._samples = {
            side: [sample for sample in run.samples
                   if sample.side is side and not sample.warm_up]
            for side in _SIDES}

    def values(self, side: record.Side, name: str) -> tuple[str, ...]:
        """List the distinct values of a fact, in the order of samples."""
        return tuple(dict.fromkeys(
            record.list_facts(self._samples[side], name)))

    def states(self, side: record.Side, name: str) -> list[tuple[str, ...]]:
        """List the distinct combinations of a fact's values in a sample."""
        found = [tuple(sample.facts(name)) for sample in self._samples[side]]
        return list(dict.fromkeys(filter(None, found)))

    def typical(self, side: record.Side, name: str) -> float | None:
        """Return the median of a numeric fact, None if unknown."""
        found: list[float] = []
        for sample in self._samples[side]:
            found += sample.numbers(name)
        return statistics.median(found) if found else None

    def names(self, prefix: str) -> list[str]:
        """List the names of facts with this prefix, sorted."""
        found: set[str] = set()
        for sample in itertools.chain.from_iterable(self._samples.values()):
            for name in sample.environment:
                if name.startswith(prefix):
                    found.add(name.partition('@')[0])
        return sorted(found)


def _sides(native: str, guest: str) -> str:
    return f'{native} natively, {guest} in the guest'


def _of_facts(facts: _Facts) -> Iterator[str]:
    named = {**_COMPARED, **_OF_HOSTS,
             **{name: name.removeprefix(_LIBRARY)
                for name in facts.names(_LIBRARY)}}
    is_virtual = 'yes' in facts.values(record.Side.GUEST, 'virtual')
    for name, shown in named.items():
        native, guest = (facts.values(side, name) for side in _SIDES)
        for side in _SIDES:
            states = facts.states(side, name)
            if len(states) > 1:
                yield (f'{shown} of {side} changed during the run: '
                       f'{", then ".join(map(_shown, states))}')
        if name in _OF_HOSTS and is_virtual:
            continue
        if native and guest and set(native) != set(guest):
            yield f'{shown}: {_sides(_shown(native), _shown(guest))}'


def _shown(values: Iterable[str]) -> str:
    """Format values; of a list such as ``a [b]``, only the chosen word."""
    return ' / '.join(re.sub(r'.*?\[(\w+)\].*', r'\1', value, flags=re.DOTALL)
                      for value in values)


def _of_cores(facts: _Facts) -> Iterator[str]:
    native, guest = (facts.values(side, 'cores.used') for side in _SIDES)
    places = [facts.values(side, 'place') for side in _SIDES]
    if guest and not native and all(places) and places[0] != places[1]:
        yield f'cores: native was not confined to the {_shown(guest)} of guest'


def _of_words(facts: _Facts) -> Iterator[str]:
    """Compare the features of the CPUs and the options of the kernels."""
    for name, counts, is_option in (('cpu.flags', _FEATURES, False),
                                    ('kernel.cmdline', _OPTIONS, True)):
        words = {side: _find_words(facts.values(side, name), counts)
                 for side in _SIDES}
        for side, other in (_SIDES, _SIDES[::-1]):
            alone = sorted(words[side] - words[other])
            if alone and is_option:
                yield (f'options of the kernel of {side} alone: '
                       + ' '.join(alone))
            elif alone and words[other]:
                yield f'CPU features that {other} lacks: {", ".join(alone)}'


def _find_words(values: Iterable[str], pattern: re.Pattern[str]) -> set[str]:
    """Find the words in values that match a pattern."""
    found: set[str] = set()
    for value in values:
        found.update(filter(pattern.match, value.split()))
    return found


def _of_mitigations(facts: _Facts) -> Iterator[str]:
    differing = [
        name.removeprefix(_MITIGATION) for name in facts.names(_MITIGATION)
        if len({frozenset(facts.values(side, name)) for side in _SIDES}) > 1
        and all(facts.values(side, name) for side in _SIDES)]
    if differing:
        yield 'mitigations of CPU bugs: ' + ', '.join(differing)


def _of_load(facts: _Facts) -> Iterator[str]:
    for name, least, text in (
            ('running.before', _RUNNING,
             'programs that ran before a sample: {}'),
            ('iowait_percent', _WAITING, 'CPU time spent waiting, %: {}'),
            ('disk_read_mib', _READ_MIB,
             'page cache, MiB that a sample had to read from disk: {}')):
        native, guest = (facts.typical(side, name) for side in _SIDES)
        if native is not None and guest is not None and (
                abs(native - guest) >= max(
                    least, _PART * max(native, guest))):
            yield text.format(_sides(f'{native:g}', f'{guest:g}'))
    stolen = facts.typical(_SIDES[1], 'steal_percent')
    if stolen is not None and stolen >= _STOLEN:
        yield f'{stolen:g} % of the CPU time of the guest was stolen'

# SPDX-License-Identifier: Apache-2.0

"""Measure machines, and run MPI over several of them from the first.

Open MPI starts its daemons by ssh. It takes a list of hosts with the number
of ranks for each; the first host is the machine itself. The working directory
and the files in it have to be the same on all hosts, and so has the
environment, which ``-x`` passes on.
"""

from collections.abc import Iterable
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt.bench.catalogue import sizing
from hpcvirt.bench.execute import executor

#: Prints the CPUs that a process may use, the memory in KiB, the NUMA cells
#: with CPUs, and the caches of the CPUs, one "name value" a line.
PROBE = """
echo cpus "$(nproc)"
sed -n 's/^MemTotal: *\\([0-9]*\\).*/memory_kib \\1/p' /proc/meminfo
cells=0
for node in /sys/devices/system/node/node[0-9]*; do
  [ -n "$(cat "$node/cpulist" 2>/dev/null)" ] && cells=$((cells + 1))
done
echo cells "$cells"
for cache in /sys/devices/system/cpu/cpu*/cache/index*; do
  [ -r "$cache/size" ] || continue
  [ "$(cat "$cache/type")" = Instruction ] && continue
  echo cache "$(cat "$cache/level")" "$(cat "$cache/size")" \
    "$(cat "$cache/shared_cpu_list")"
done | sort -u
"""

#: As Open MPI calls ssh, but without questions: nobody would answer them.
SSH = ('ssh', '-x', '-o', 'BatchMode=yes', '-o', 'ConnectTimeout=20')


def probe(place: executor.Executor) -> sizing.Machine:
    """Count the CPUs, memory, cells and last-level caches of a machine.

    :raises Unreachable: if it does not answer, or its answer lacks them
    """
    printed = place.run(['sh', '-c', PROBE]).stdout.decode('ascii', 'replace')
    try:
        return parse_probe(printed)
    except (ValueError, KeyError) as exc:
        raise exception.Unreachable(
            f'{place.name}: cannot count its CPUs and memory') from exc


def parse_probe(printed: str) -> sizing.Machine:
    """Read what the script prints."""
    values: dict[str, int] = {}
    caches: dict[int, dict[str, int]] = {}
    for line in printed.splitlines():
        name, *rest = line.split()
        if name == 'cache':
            level, size, cpus = rest
            caches.setdefault(int(level), {})[cpus] = _kib(size)
        else:
            values[name] = int(rest[0])
    last = caches[max(caches)] if caches else {}
    return sizing.Machine(
        cpus=values['cpus'], memory_mib=values['memory_kib'] // 1024,
        cells=max(1, values['cells']), llc_kib=sum(last.values()) or None)


def _kib(size: str) -> int:
    factor = {'K': 1, 'M': 1024, 'G': 1024 ** 2}[size[-1]]
    return int(size[:-1]) * factor


def whole(machines: Sequence[sizing.Machine]) -> sizing.Machine:
    """Add up several machines."""
    caches = [machine.llc_kib for machine in machines
              if machine.llc_kib is not None]
    return sizing.Machine(
        cpus=sum(machine.cpus for machine in machines),
        memory_mib=sum(machine.memory_mib for machine in machines),
        cells=sum(machine.cells for machine in machines),
        llc_kib=sum(caches) or None)


def slots(ranks: int, cpus: Sequence[int]) -> tuple[int, ...]:
    """Distribute ranks over machines in proportion to their CPUs.

    :param cpus: number of CPUs of each machine
    :returns: number of ranks of each machine, ``ranks`` in all
    :raises InvalidInput: if a machine would get none
    """
    counts = [0] * len(cpus)
    for _ in range(ranks):
        # The machine with the most room; of equal ones the first.
        number = min(range(len(cpus)),
                     key=lambda number: counts[number] / cpus[number])
        counts[number] += 1
    if 0 in counts:
        raise exception.InvalidInput(
            f'{ranks} ranks', f'cannot span {len(cpus)} places')
    return tuple(counts)


def hosts(names: Sequence[str], ranks: Sequence[int],
          exported: Iterable[str]) -> tuple[str, ...]:
    """Render ``{hosts}``; nothing for a single machine.

    :param names: of the machines, as the first machine reaches them
    :param ranks: of each machine
    :param exported: environment variables that the other machines get too
    """
    if len(names) < 2:
        return ()
    listed = ','.join(f'{name}:{number}'
                      for name, number in zip(names, ranks, strict=True))
    return ('--host', listed,
            *(word for name in exported for word in ('-x', name)))


def reach(first: executor.Executor, names: Sequence[str]) -> None:
    """Check that a machine reaches others by ssh without a question.

    :param names: of the other machines
    :raises Unreachable: naming the first machine that is not reached
    """
    for name in names:
        done = first.run([*SSH, name, 'true'])
        if done.status:
            stderr = done.stderr.decode('utf-8', 'replace').strip()
            last = stderr.splitlines()[-1:] or [f'status {done.status}']
            raise exception.Unreachable(
                f'{first.name} does not reach {name} by ssh without a '
                f'question, as mpirun has to: {last[0]}')


def own_name(place: executor.Executor) -> str:
    """The name that a machine has for itself, which mpirun recognizes."""
    done = place.run(['uname', '-n'])
    return done.stdout.decode('utf-8', 'replace').strip()

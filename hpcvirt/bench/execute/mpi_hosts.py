# SPDX-License-Identifier: Apache-2.0

"""Read the size of machines, and prepare MPI runs that span several.

Open MPI starts its daemons by ssh. It takes a list of hosts with the number
of ranks for each; the first host is the machine itself. The working directory,
its files and the environment, which ``-x`` exports, must be the same on all
hosts.
"""

from collections.abc import Iterable
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt import words
from hpcvirt.bench.catalogue import sizing
from hpcvirt.bench.execute import executor

#: Prints a "name value" line each for the CPUs that a process may use, the
#: memory in KiB, the number of NUMA cells with CPUs, the number of GPUs that
#: the driver of NVIDIA or AMD has, and each cache. A cell of AMD's driver that
#: is no GPU has the id 0.
PROBE = """
echo cpus "$(nproc)"
sed -n 's/^MemTotal: *\\([0-9]*\\).*/memory_kib \\1/p' /proc/meminfo
cells=0
for node in /sys/devices/system/node/node[0-9]*; do
  [ -n "$(cat "$node/cpulist" 2>/dev/null)" ] && cells=$((cells + 1))
done
echo cells "$cells"
gpus=0
for gpu in /proc/driver/nvidia/gpus/*/information \
  /sys/class/kfd/kfd/topology/nodes/*/gpu_id; do
  case $(cat "$gpu" 2>/dev/null) in '' | 0) ;; *) gpus=$((gpus + 1)) ;; esac
done
echo gpus "$gpus"
for cache in /sys/devices/system/cpu/cpu*/cache/index*; do
  [ -r "$cache/size" ] || continue
  [ "$(cat "$cache/type")" = Instruction ] && continue
  echo cache "$(cat "$cache/level")" "$(cat "$cache/size")" \
    "$(cat "$cache/shared_cpu_list")"
done | sort -u
"""

#: Calls ssh as Open MPI does, but without prompts.
SSH = ('ssh', '-x', '-o', 'BatchMode=yes', '-o', 'ConnectTimeout=20')


def probe(place: executor.Executor) -> sizing.Machine:
    """Read the CPUs, memory, cells and last-level cache of a machine.

    :raises Unreachable: if it does not answer, or its answer is incomplete
    """
    printed = place.run(['sh', '-c', PROBE]).stdout.decode('ascii', 'replace')
    try:
        return parse_probe(printed)
    except (ValueError, KeyError) as exc:
        raise exception.Unreachable(
            f'{place.name}: cannot count its CPUs and memory') from exc


def parse_probe(printed: str) -> sizing.Machine:
    """Parse the output of :data:`PROBE`.

    :raises ValueError: if a line has another form
    :raises KeyError: if a line is missing
    """
    values: dict[str, int] = {}
    caches: dict[int, dict[str, int]] = {}
    for line in printed.splitlines():
        name, *rest = line.split()
        if name == 'cache':
            level, size, cpus = rest
            caches.setdefault(_whole(level), {})[cpus] = _kib(size)
        else:
            number, = rest
            values[name] = _whole(number)
    last = caches[max(caches)] if caches else {}
    return sizing.Machine(
        cpus=values['cpus'], memory_mib=values['memory_kib'] // 1024,
        cells=max(1, values['cells']), llc_kib=sum(last.values()) or None,
        gpus=values['gpus'])


def _kib(size: str) -> int:
    factor = {'K': 1, 'M': 1024, 'G': 1024 ** 2}[size[-1]]
    return _whole(size[:-1]) * factor


def _whole(text: str) -> int:
    number = words.read_whole(text)
    if number is None:
        raise ValueError(f'{text[:40]!r} is not a whole number')
    return number


def whole(machines: Sequence[sizing.Machine]) -> sizing.Machine:
    """Sum the sizes of several machines."""
    caches = [machine.llc_kib for machine in machines
              if machine.llc_kib is not None]
    gpus = [machine.gpus for machine in machines if machine.gpus is not None]
    return sizing.Machine(
        cpus=sum(machine.cpus for machine in machines),
        memory_mib=sum(machine.memory_mib for machine in machines),
        cells=sum(machine.cells for machine in machines),
        llc_kib=sum(caches) or None,
        gpus=sum(gpus) if len(gpus) == len(machines) else None,
        nodes=len(machines))


def slots(ranks: int, cpus: Sequence[int]) -> tuple[int, ...]:
    """Distribute ranks over machines in proportion to their CPUs or GPUs.

    :param cpus: number of CPUs of each machine, or of what else ranks are for
    :returns: number of ranks of each machine; the sum is ``ranks``
    :raises InvalidInput: if a machine would get none
    """
    counts = [0] * len(cpus)
    for _ in range(ranks):
        # The machine with the fewest ranks per CPU; among equals the first.
        number = min(range(len(cpus)),
                     key=lambda number: counts[number] / cpus[number])
        counts[number] += 1
    if 0 in counts:
        raise exception.InvalidInput(
            f'{ranks} ranks', f'cannot span {len(cpus)} machines')
    return tuple(counts)


def hosts(names: Sequence[str], ranks: Sequence[int],
          exported: Iterable[str]) -> tuple[str, ...]:
    """Return the words for ``{hosts}``; none for a single machine.

    :param names: names by which the first machine reaches the machines
    :param ranks: number of ranks of each machine
    :param exported: environment variables to export to the other machines
    """
    if len(names) < 2:
        return ()
    listed = ','.join(f'{name}:{number}'
                      for name, number in zip(names, ranks, strict=True))
    return ('--host', listed,
            *(word for name in exported for word in ('-x', name)))


def reach(first: executor.Executor, names: Sequence[str]) -> None:
    """Check that a machine can log in to others by ssh without a prompt.

    :param names: names of the other machines
    :raises Unreachable: with the first machine that fails
    """
    for name in names:
        done = first.run([*SSH, name, 'true'])
        if done.status:
            stderr = done.stderr.decode('utf-8', 'replace').strip()
            last = stderr.splitlines()[-1:] or [f'status {done.status}']
            raise exception.Unreachable(
                f'{first.name} cannot log in to {name} by ssh without a '
                f'prompt, which mpirun requires: {last[0]}')


def own_name(place: executor.Executor) -> str:
    """Return the host name of a machine, by which its mpirun knows it."""
    done = place.run(['uname', '-n'])
    return done.stdout.decode('utf-8', 'replace').strip()

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
from hpcvirt.bench.execute import machine_facts
from hpcvirt.model import cpuset

_ALLOWED = 'Cpus_allowed_list'
#: What the drivers of NVIDIA and AMD say of each GPU. A cell of AMD's driver
#: that is no GPU has the id 0.
_GPUS = ('proc/driver/nvidia/gpus/*/information',
         'sys/class/kfd/kfd/topology/nodes/*/gpu_id')
_CELLS = 'sys/devices/system/node/node*/cpulist'
_CACHE = 'sys/devices/system/cpu/cpu*/cache/index*'

#: Calls ssh as Open MPI does, but without prompts.
SSH = ('ssh', '-x', '-o', 'BatchMode=yes', '-o', 'ConnectTimeout=20')


def probe(place: executor.Executor) -> sizing.Machine:
    """Read the CPUs, memory, cells and last-level cache of a machine.

    :raises Unreachable: if it does not answer, or its answer is incomplete
    """
    found = machine_facts.read(
        place, machine_facts.STATUS, machine_facts.CPUS_ONLINE,
        machine_facts.MEMORY, _CELLS, *_GPUS, f'{_CACHE}/level',
        f'{_CACHE}/type', f'{_CACHE}/size', f'{_CACHE}/shared_cpu_list')
    memory_kib = words.read_whole(found.row(
        machine_facts.MEMORY, 'MemTotal').partition(' ')[0])
    try:
        cpus = cpuset.parse(found.row(machine_facts.STATUS, _ALLOWED))
        if online := found.line(machine_facts.CPUS_ONLINE):
            cpus &= cpuset.parse(online)
        llc_kib = _sum_last_caches(found)
    except exception.InvalidInput:
        cpus, llc_kib = frozenset(), None
    if not cpus or memory_kib is None:
        raise exception.Unreachable(
            f'{place.name}: cannot count its CPUs and memory')
    return sizing.Machine(
        cpus=len(cpus), memory_mib=memory_kib // 1024,
        cells=max(1, _count(found, _CELLS)),
        llc_kib=llc_kib or None,
        gpus=sum(_count(found, pattern, '0') for pattern in _GPUS))


def _count(found: machine_facts.MachineFacts, pattern: str,
           none: str = '') -> int:
    """Count the files of a pattern that name something."""
    return sum(text not in ('', none) for _, text in found.find(pattern))


def _sum_last_caches(found: machine_facts.MachineFacts) -> int:
    """Add up the caches of the highest level in KiB, each once.

    :raises InvalidInput: if a size or a level has another form
    """
    caches: dict[int, dict[str, int]] = {}
    for name, size in found.find(f'{_CACHE}/size'):
        folder = name.removesuffix('/size')
        if found.line(f'{folder}/type') == 'Instruction':
            continue
        level = words.read_whole(found.line(f'{folder}/level'))
        kib = words.read_size(size)
        if level is None or kib is None:
            raise exception.InvalidInput(name, f'is {size[:40]!r}')
        caches.setdefault(level, {})[
            found.line(f'{folder}/shared_cpu_list')] = kib
    return sum(caches[max(caches)].values()) if caches else 0


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
    options = ['--host', listed]
    for name in exported:
        options += ('-x', name)
    return tuple(options)


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
    name = machine_facts.HOSTNAME
    return machine_facts.read(place, name).line(name)

# SPDX-License-Identifier: Apache-2.0

"""Confine commands to CPUs, and bind the ranks of MPI to the CPUs of a guest.

Open MPI binds its ranks to the cores of the machine, starting from the first,
whatever the CPU affinity of ``mpirun`` is: with 4.1.4, ``taskset -c 1 mpirun
--bind-to core`` runs on CPU 0. In a confined run Open MPI therefore binds
nothing, and each rank binds itself to a core before it executes the program:
round robin over the NUMA cells, as ``--map-by numa --bind-to core`` does in a
guest that has only these CPUs.
"""

from collections.abc import Mapping

from hpcvirt import exception
from hpcvirt.bench.execute import executor
from hpcvirt.model import cpuset

PROGRAM = 'bind'
CPUS = 'cpus'

BIND_BY_MPIRUN = ('--bind-to', 'core')
BIND_BY_RANK = ('--bind-to', 'none', 'sh', f'./{PROGRAM}')

#: Lists the allowed CPUs as "cell siblings cpu", groups them into cores,
#: orders the cores round robin over the cells, and takes that of this rank.
SCRIPT = f"""\
own=$(
  tr , '\\n' < {CPUS} | awk -F- '
    NF {{ for (cpu = $1; cpu <= $NF; cpu++) print cpu }}' |
  while read -r cpu; do
    at=/sys/devices/system/cpu/cpu$cpu
    cell=0
    for node in "$at"/node[0-9]*; do
      [ ! -e "$node" ] || cell=${{node##*node}}
    done
    echo "$cell $(cat "$at/topology/thread_siblings_list" 2> /dev/null ||
      echo "$cpu") $cpu"
  done | awk '
    {{ core = $1 " " $2 }}
    core in cpus {{ cpus[core] = cpus[core] "," $3; next }}
    {{ order[core] = turn[$1]++ " " $1; cpus[core] = $3 }}
    END {{ for (core in cpus) print order[core], cpus[core] }}' |
  sort -k 1,1n -k 2,2n |
  awk -v rank="$OMPI_COMM_WORLD_LOCAL_RANK" '
    {{ core[NR - 1] = $3 }} END {{ print core[rank % NR] }}'
)
if command -v taskset > /dev/null; then exec taskset -c "$own" "$@"; fi
exec numactl --physcpubind="$own" --localalloc "$@"
"""

#: Runs its arguments. If there is no such program, the shell exits with 127,
#: locally as over ssh.
TRY = 'exec "$@"'


def bind_ranks(command: tuple[str, ...]) -> tuple[str, ...]:
    """Make the ranks of an mpirun command bind themselves.

    The command needs :func:`files` in its directory. A command without
    ``--bind-to core`` is returned unchanged.
    """
    length = len(BIND_BY_MPIRUN)
    for number in range(len(command)):
        if command[number:number + length] == BIND_BY_MPIRUN:
            return (*command[:number], *BIND_BY_RANK,
                    *command[number + length:])
    return command


def files(cpus: frozenset[int]) -> Mapping[str, bytes]:
    """Return the files that a command of :func:`bind_ranks` needs.

    :param cpus: the CPUs for the ranks on the machine of the directory
    :returns: name to content
    """
    return {PROGRAM: SCRIPT.encode(),
            CPUS: f'{cpuset.render(cpus)}\n'.encode()}


def confine(place: executor.Executor,
            cpus: frozenset[int] | None) -> tuple[str, ...]:
    """Return the words to put before a command to confine it to CPUs.

    :returns: empty if ``cpus`` is empty or None
    :raises Unreachable: if the machine has neither numactl nor taskset
    """
    if not cpus:
        return ()
    listed = cpuset.render(cpus)
    # If there is no such program, numactl exits with 1, but env with 127.
    for words in (('numactl', f'--physcpubind={listed}', '--localalloc',
                   'env'),
                  ('taskset', '-c', listed)):
        done = place.run(['sh', '-c', TRY, 'try', *words, 'true'])
        if done.status == 0:
            return words
    stderr = done.stderr.decode('utf-8', 'replace').strip()
    raise exception.Unreachable(
        f'{place.name}: cannot confine commands to CPUs {listed}: {stderr}')

# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Ranks of MPI on the CPUs that they are given, and on no others.

Open MPI binds its ranks to the cores of the machine from the first on,
whatever CPUs ``mpirun`` itself was tied to: seen with 4.1.4, where ``taskset
-c 1 mpirun --bind-to core`` runs on CPU 0. So where a run is confined Open MPI
binds nothing, and each rank ties itself to a core before it becomes the
program: in turn over the NUMA cells, as ``--map-by numa --bind-to core`` does
in a guest that has just these CPUs.
"""

from collections.abc import Mapping

from hpcvirt.model import cpuset

PROGRAM = 'bind'
CPUS = 'cpus'

ASKED = ('--bind-to', 'core')
INSTEAD = ('--bind-to', 'none', 'sh', f'./{PROGRAM}')

#: Lists the allowed CPUs as "cell siblings cpu", makes cores of them, deals
#: the cores of all cells in turn, and takes the one of this rank.
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
    {{ print_at[core] = turn[$1]++ " " $1; cpus[core] = $3 }}
    END {{ for (core in cpus) print print_at[core], cpus[core] }}' |
  sort -k 1,1n -k 2,2n |
  awk -v rank="$OMPI_COMM_WORLD_LOCAL_RANK" '
    {{ core[NR - 1] = $3 }} END {{ print core[rank % NR] }}'
)
if command -v taskset > /dev/null; then exec taskset -c "$own" "$@"; fi
exec numactl --physcpubind="$own" --localalloc "$@"
"""


def bound(command: tuple[str, ...]) -> tuple[str, ...]:
    """A command of mpirun whose ranks tie themselves.

    It needs :func:`files` in its directory; a command that binds nothing
    stays as it is.
    """
    for number in range(len(command)):
        if command[number:number + len(ASKED)] == ASKED:
            return (*command[:number], *INSTEAD,
                    *command[number + len(ASKED):])
    return command


def files(cpus: frozenset[int]) -> Mapping[str, bytes]:
    """What lies beside such a command at a place.

    :param cpus: of that place
    """
    return {PROGRAM: SCRIPT.encode(),
            CPUS: f'{cpuset.render(cpus)}\n'.encode()}

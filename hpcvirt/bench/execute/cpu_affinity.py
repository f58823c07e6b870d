# SPDX-License-Identifier: Apache-2.0

"""Confine commands to CPUs, and bind the ranks of MPI to cores.

Open MPI binds its ranks to the cores of the machine, starting from the first,
whatever the CPU affinity of ``mpirun`` is: with 4.1.4, ``taskset -c 1 mpirun
--bind-to core`` runs on CPU 0. It also looks at no network device: the mapper
that did, ``dist``, is gone from Open MPI 5. In a confined run, and where a
benchmark has ``sh ./bind`` in its command, Open MPI therefore binds nothing,
and each rank binds itself to a core before it executes the program: round
robin over the NUMA cells, as ``--map-by numa --bind-to core`` does in a guest
that has only these CPUs. With a network device, its cell comes first.
"""

from collections.abc import Mapping

from hpcvirt import exception
from hpcvirt.bench.execute import executor
from hpcvirt.model import cpuset

PROGRAM = 'bind'
CPUS = 'cpus'

#: The variable with the name of a network device, or :data:`FOUND_DEVICE`.
DEVICE = 'HPCVIRT_NETWORK_DEVICE'
FOUND_DEVICE = 'auto'
#: Begins the line on standard error with which the first rank of a machine
#: says on which cell it is.
SAYS = 'hpcvirt bind: '

BIND_BY_MPIRUN = ('--bind-to', 'core')
BIND_BY_RANK = ('--bind-to', 'none', 'sh', f'./{PROGRAM}')

#: ``find_device`` prints the fastest active RDMA device, or else the interface
#: of the default route. ``find_cell FOLDER`` prints the cell of a device, or
#: of one below it, as a bond has them; for a guest that does not see the cells
#: of its devices, that of :func:`hpcvirt.instance_topology.writers.write_ucx`.
_NETWORK = """\
find_device() {
  device= most=0
  for port in /sys/class/infiniband/*/ports/*; do
    read -r state < "$port/state" && read -r rate < "$port/rate" || continue
    case $state in *ACTIVE) ;; *) continue ;; esac
    rate=${rate%%[!0-9]*}
    [ "${rate:-0}" -gt "$most" ] || continue
    most=$rate
    device=${port#/sys/class/infiniband/}
  done 2> /dev/null
  [ -z "$device" ] || { echo "${device%%/*}"; return; }
  awk '$2 == "00000000" && $8 == "00000000" { print $7, $1 }' \
    /proc/net/route 2> /dev/null | sort -n | sed -n '1s/.* //p'
}
find_cell() (
  at=$(readlink -f "$1/device")
  while [ -n "$at" ] && [ ! -r "$at/numa_node" ]; do at=${at%/*}; done
  cell=
  [ -z "$at" ] || read -r cell < "$at/numa_node"
  case $cell in
  '' | -*)
    cell=$(awk -v name="${1##*/}" '$1 == "cell" {
      count = split($3, names, ",")
      for (i = 1; i <= count; i++)
        if (names[i] == name || index(names[i], name ":") == 1) print $2
    }' /etc/hpcvirt/ucx-net-devices 2> /dev/null | sed -n 1p) ;;
  esac
  for lower in "$1"/lower_*; do
    [ -n "$cell" ] || [ ! -e "$lower" ] || cell=$(find_cell "$lower")
  done
  echo "$cell"
)
"""

#: Lists the allowed CPUs that are online as "cell siblings cpu", groups them
#: into cores, orders the cores round robin over the cells, and takes that of
#: this rank.
SCRIPT = _NETWORK + f"""\
device=${DEVICE} near= place='no network device'
[ "$device" != {FOUND_DEVICE} ] || device=$(find_device)
if [ -n "$device" ]; then
  folder=/sys/class/infiniband/$device
  [ -e "$folder" ] || folder=/sys/class/net/$device
  [ -e "$folder" ] || {{
    echo "$(uname -n) has no network device $device" >&2
    exit 1
  }}
  near=$(find_cell "$folder")
  place="$device on ${{near:+cell }}${{near:-an unknown cell}}"
fi
allowed=$(cat {CPUS} 2> /dev/null ||
  sed -n 's/^Cpus_allowed_list:[^0-9]*//p' /proc/self/status)
own=$(
  echo "$allowed" | tr , '\n' | awk -F- '
    NF {{ for (cpu = $1; cpu <= $NF; cpu++) print cpu }}' |
  while read -r cpu; do
    at=/sys/devices/system/cpu/cpu$cpu
    online=1
    [ ! -r "$at/online" ] || read -r online < "$at/online"
    [ -e "$at" ] && [ "$online" = 1 ] || continue
    cell=0
    for node in "$at"/node[0-9]*; do
      [ ! -e "$node" ] || cell=${{node##*node}}
    done
    echo "$cell $(cat "$at/topology/thread_siblings_list" 2> /dev/null ||
      echo "$cpu") $cpu"
  done | awk -v near="$near" '
    {{ core = $1 " " $2 }}
    core in cpus {{ cpus[core] = cpus[core] "," $3; next }}
    {{ order[core] = turn[$1]++ " " ($1 == near ? -1 : $1) " " $1
       cpus[core] = $3 }}
    END {{ for (core in cpus) print order[core], cpus[core] }}' |
  sort -k 1,1n -k 2,2n |
  awk -v rank="$OMPI_COMM_WORLD_LOCAL_RANK" '
    {{ core[NR - 1] = $3 " " $4 }} END {{ print core[rank % NR] }}'
)
[ -z "${DEVICE}" ] || [ "$OMPI_COMM_WORLD_LOCAL_RANK" != 0 ] ||
  echo "{SAYS}$(uname -n): first rank on cell ${{own% *}}, $place" >&2
own=${{own#* }}
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


def is_bound_by_rank(command: tuple[str, ...]) -> bool:
    """Whether the ranks of an mpirun command bind themselves."""
    return BIND_BY_RANK[-1] in command


def files(cpus: frozenset[int]) -> Mapping[str, bytes]:
    """Return the files that a command whose ranks bind themselves needs.

    :param cpus: the CPUs for the ranks on the machine of the directory; empty
        for all that they may use
    :returns: name to content
    """
    found = {PROGRAM: SCRIPT.encode()}
    if cpus:
        found[CPUS] = f'{cpuset.render(cpus)}\n'.encode()
    return found


def find_first_cells(stderr: bytes) -> str:
    """Find what the first rank of each machine said about its cell.

    :returns: the texts after :data:`SAYS`, empty if there are none
    """
    said = {line.removeprefix(SAYS)
            for line in stderr.decode('utf-8', 'replace').splitlines()
            if line.startswith(SAYS)}
    return '; '.join(sorted(said))


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

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

"""One run over several machines: MPI from the first of them.

Open MPI starts its daemons by ssh. It takes a list of hosts with the ranks
that each may get; the first is itself. The work directory and what lies in it
has to be the same everywhere, and so has the environment that is passed on by
``-x``.
"""

from collections.abc import Iterable
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt.bench.catalogue import sizing
from hpcvirt.bench.execute import executor

#: As Open MPI calls ssh, but nothing is asked: without a terminal it would
#: wait for an answer for ever.
SSH = ('ssh', '-x', '-o', 'BatchMode=yes', '-o', 'ConnectTimeout=20')


def whole(machines: Sequence[sizing.Machine]) -> sizing.Machine:
    """What several machines are together."""
    caches = [machine.llc_kib for machine in machines
              if machine.llc_kib is not None]
    return sizing.Machine(
        cpus=sum(machine.cpus for machine in machines),
        memory_mib=sum(machine.memory_mib for machine in machines),
        cells=sum(machine.cells for machine in machines),
        llc_kib=sum(caches) or None)


def slots(ranks: int, cpus: Sequence[int]) -> tuple[int, ...]:
    """Share ranks out among machines, each as full as the others.

    :param cpus: of each machine
    :returns: ranks of each, ``ranks`` in all
    :raises InvalidInput: if a machine would get none
    """
    taken = [0] * len(cpus)
    for _ in range(ranks):
        # The emptiest; of equal ones the first.
        number = min(range(len(cpus)),
                     key=lambda number: taken[number] / cpus[number])
        taken[number] += 1
    if 0 in taken:
        raise exception.InvalidInput(
            f'{ranks} ranks', f'cannot span {len(cpus)} places')
    return tuple(taken)


def hosts(names: Sequence[str], ranks: Sequence[int],
          exported: Iterable[str]) -> tuple[str, ...]:
    """What ``{hosts}`` stands for; nothing for a single machine.

    :param names: by which the first machine reaches the others
    :param ranks: of each
    :param exported: environment variables that the others get as well
    """
    if len(names) < 2:
        return ()
    listed = ','.join(f'{name}:{number}'
                      for name, number in zip(names, ranks, strict=True))
    return ('--host', listed,
            *(word for name in exported for word in ('-x', name)))


def reach(first: executor.Executor, names: Sequence[str]) -> None:
    """See that a machine gets to others by ssh without being asked.

    :param names: of the others
    :raises Unreachable: naming the first that it does not get to
    """
    for name in names:
        done = first.run([*SSH, name, 'true'])
        if done.status:
            said = done.stderr.decode('utf-8', 'replace').strip()
            last = said.splitlines()[-1:] or [f'status {done.status}']
            raise exception.Unreachable(
                f'{first.name} does not get to {name} by ssh without a '
                f'question, as mpirun has to: {last[0]}')


def own_name(place: executor.Executor) -> str:
    """How a machine calls itself: mpirun knows that it is here."""
    done = place.run(['uname', '-n'])
    return done.stdout.decode('utf-8', 'replace').strip()

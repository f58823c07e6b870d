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

"""Confine a native command to the host CPUs of the guest."""

from hpcvirt import exception
from hpcvirt.bench.execute import executor
from hpcvirt.model import cpuset

#: Runs its arguments. If there is no such program, the shell ends with
#: status 127 at every place, also where no other shell is between.
TRY = 'exec "$@"'


def prefix(place: executor.Executor,
           cpus: frozenset[int] | None) -> tuple[str, ...]:
    """Find the words to put before a command to confine it to CPUs.

    :returns: none if ``cpus`` is empty or None
    :raises Unreachable: if the place has neither numactl nor taskset
    """
    if not cpus:
        return ()
    listed = cpuset.render(cpus)
    # numactl ends with status 1 if there is no such program, env with 127.
    for words in (('numactl', f'--physcpubind={listed}', '--localalloc',
                   'env'),
                  ('taskset', '-c', listed)):
        done = place.run(['sh', '-c', TRY, 'try', *words, 'true'])
        if done.status == 0:
            return words
    stderr = done.stderr.decode('utf-8', 'replace').strip()
    raise exception.Unreachable(
        f'{place.name}: cannot confine commands to CPUs {listed}: {stderr}')

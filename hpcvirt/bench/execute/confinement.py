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

"""What is arranged at a place, and where the results of runs are kept."""

import getpass
import os

from hpcvirt import exception
from hpcvirt.bench.execute import executor
from hpcvirt.model import cpuset

#: Runs its arguments; that there is no such program is status 127 of the
#: shell everywhere, also where no shell is between.
TRY = 'exec "$@"'


def confinement(where: executor.Executor,
                cpus: frozenset[int] | None) -> tuple[str, ...]:
    """What ties a native command to the guest's own host CPUs.

    :returns: words to start the command through; none if ``cpus`` is None
    :raises Unreachable: if the place has neither numactl nor taskset
    """
    if not cpus:
        return ()
    listed = cpuset.render(cpus)
    for words in (('numactl', f'--physcpubind={listed}', '--localalloc'),
                  ('taskset', '-c', listed)):
        done = where.run(['sh', '-c', TRY, 'try', *words, 'true'])
        if done.status == 0:
            return words
    said = done.stderr.decode('utf-8', 'replace').strip()
    raise exception.Unreachable(
        f'{where.name}: cannot be tied to CPUs {listed}: {said}')


def instance_facts(server_id: str, flavor: str, page_kib: int,
                   host_cpus: frozenset[int] | None) -> dict[str, str]:
    """What every sample of an instance is marked with.

    :param page_kib: the pages behind its memory, 0 if unknown
    :param host_cpus: that it is pinned to, None or empty if it is not
    """
    facts = {'server.id': server_id, 'server.flavor': flavor,
             'pages': 'large' if page_kib >= 2048 else 'small'}
    if host_cpus:
        facts['server.host_cpus'] = cpuset.render(host_cpus)
    return facts


def directory() -> str:
    """Where jobs live on every place: on a disk, not in memory."""
    return f'/var/tmp/hpcvirt-{getpass.getuser()}'  # noqa: S108


def default_data() -> str:
    """The directory where results are kept, by the XDG rule."""
    home = os.environ.get('XDG_DATA_HOME') or os.path.expanduser(
        '~/.local/share')
    return os.path.join(home, 'hpcvirt')


def store_url(url: str | None, data: str) -> str:
    """The database of results: the given one, or a file beside the outputs.

    :param url: of SQLAlchemy
    :param data: the directory of raw outputs
    """
    return url or 'sqlite:///' + os.path.join(os.path.abspath(data),
                                              'bench.sqlite')

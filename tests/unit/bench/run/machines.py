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

"""Machines made of a few figures, for tests of plans."""

from hpcvirt.bench.execute import executor
from hpcvirt.bench.run import target


class Machine:
    """A place of some CPUs and 1 GiB for each, which has every program."""

    def __init__(self, name, cpus=4):
        self.name = name
        self._cpus = cpus

    def run(self, argv):
        stdout = (f'cpus {self._cpus}\ncells 1\n'
                  f'memory_kib {self._cpus * 1048576}\n')
        if list(argv) == ['uname', '-n']:
            stdout = f'{self.name}-kernel\n'
        return executor.Completed(0, stdout.encode(), b'')

    def close(self):
        pass


def guest(name='vm', cpus=4, host_cpus=frozenset(range(4)), **known):
    return target.Target(Machine(name, cpus), name, f'{name}.net',
                         host_cpus=host_cpus, **known)


def native(name='host'):
    return target.Target(Machine(name, 64), name, f'{name}.net')

# SPDX-License-Identifier: Apache-2.0

"""Places that answer what a plan asks, and run nothing."""

from hpcvirt.bench.execute import executor


class Machine:
    """A place with 1 GiB for each CPU, which has every program.

    :ivar commands: what it was to run, each with its standard input
    """

    def __init__(self, name, cpus=1, status=0, stderr=b''):
        self.name = name
        self.commands = []
        self._cpus = cpus
        self._status = status
        self._stderr = stderr

    def run(self, argv, stdin=b'', *_limits):
        self.commands.append((list(argv), stdin))
        stdout = (f'cpus {self._cpus}\ncells 1\ngpus 0\n'
                  f'memory_kib {self._cpus * 1048576}\n')
        if list(argv) == ['uname', '-n']:
            stdout = f'{self.name}-kernel\n'
        return executor.Completed(self._status, stdout.encode(), self._stderr)

    def close(self):
        pass

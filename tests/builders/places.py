# SPDX-License-Identifier: Apache-2.0

"""Places that answer what a plan asks, and run nothing."""

from hpcvirt.bench.execute import executor
from hpcvirt.bench.execute import machine_facts


def print_files(files):
    """Print what a machine prints of files, from their names and contents."""
    return ''.join(f'{name}={line}\n' for name, text in files.items()
                   for line in text.split('\n')).encode()


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
        stdout = b'' if machine_facts.READ not in argv else print_files({
            machine_facts.STATUS: f'Cpus_allowed_list:\t0-{self._cpus - 1}',
            machine_facts.MEMORY: f'MemTotal: {self._cpus * 1048576} kB',
            machine_facts.HOSTNAME: f'{self.name}-kernel'})
        return executor.Completed(self._status, stdout, self._stderr)

    def close(self):
        pass

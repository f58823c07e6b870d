# SPDX-License-Identifier: Apache-2.0

"""What makes two runs measurements of the same."""

import testtools

from hpcvirt.bench.execute import environment
from hpcvirt.bench.execute import executor
from hpcvirt.bench.execute import machine_facts
from hpcvirt.bench.model import record
from hpcvirt.bench.run import identity
from hpcvirt.bench.run import plan
from hpcvirt.bench.run import run_request
from hpcvirt.bench.run import sides
from hpcvirt.bench.run import target
from tests.builders import places

FILES = {
    'proc/cpuinfo': 'model name\t: EPYC 7763',
    'proc/sys/kernel/osrelease': '6.1', machine_facts.BOOT_ID: '5d1c',
    machine_facts.HOSTNAME: 'vm1', machine_facts.STATUS:
    'Cpus_allowed_list:\t0-3', machine_facts.MEMORY: 'MemTotal: 263720000 kB'}
SERVER = {'server.id': '71f0', 'server.host_cpus': '0-3',
          'server.image': 'bench'}


class Machine(places.Machine):
    """A machine with some files; its size is that of any other."""

    def __init__(self, name, files):
        super().__init__(name, 4)
        self._files = files

    def run(self, argv, stdin=b'', *limits):
        if 'proc/cpuinfo:^' in argv:
            return executor.Completed(0, places.print_files(self._files), b'')
        return super().run(argv, stdin, *limits)


class IdentityTest(testtools.TestCase):
    def identify(self, name='', value=''):
        """Identify a run whose guest has another file, or another fact."""
        files, server = dict(FILES), dict(SERVER)
        if name:
            (server if name in server else files)[name] = value
        guest = target.Target(Machine('vm', files), 'vm', host='n17',
                              flavor='hpc.4c', facts=server)
        native = target.Target(places.Machine('n17', 4), 'n17')
        wanted = run_request.find(['stream'], run_request.read_settings(
            ['source=/opt/stream.c'], '--set'), None)
        planned, = plan.make(wanted, sides.pair([guest], [native]),
                             record.Purpose.COMPARE, 10).runs
        found = identity.identify(planned, {'stream': 'd1'},
                                  environment.Environments())
        return found, identity.subject(planned, found)

    def test_another_boot_or_instance_is_the_same_subject(self):
        usual = self.identify()
        for name, value in ((machine_facts.BOOT_ID, '77aa'),
                            (machine_facts.HOSTNAME, 'vm2'),
                            ('server.id', '99'),
                            ('server.host_cpus', '4-7')):
            self.assertEqual(usual, self.identify(name, value))

    def test_another_machine_kernel_or_image_is_another_subject(self):
        usual, subject = self.identify()
        for name, value in (
                ('proc/cpuinfo', 'model name\t: EPYC 9654'),
                ('proc/sys/kernel/osrelease', '6.12'),
                ('server.image', 'other'),
                (machine_facts.MEMORY, 'MemTotal: 131860000 kB')):
            found, other = self.identify(name, value)
            self.assertEqual(1, len(identity.changes(usual, found)))
            self.assertNotEqual(subject, other)

    def test_a_few_pages_of_memory_change_nothing(self):
        self.assertEqual(self.identify(), self.identify(
            machine_facts.MEMORY, 'MemTotal: 263719000 kB'))

# SPDX-License-Identifier: Apache-2.0

"""What makes two runs measurements of the same."""

import testtools

from hpcvirt.bench.execute import environment
from hpcvirt.bench.execute import executor
from hpcvirt.bench.model import record
from hpcvirt.bench.run import identity
from hpcvirt.bench.run import plan
from hpcvirt.bench.run import run_request
from hpcvirt.bench.run import sides
from hpcvirt.bench.run import target
from tests.builders import places

FACTS = {'cpu.model': 'EPYC 7763', 'kernel': '6.1', 'boot_id': '5d1c',
         'host': 'vm1', 'memory.total_kib': '263720000'}
SERVER = {'server.id': '71f0', 'server.host_cpus': '0-3',
          'server.image': 'bench'}


class Machine(places.Machine):
    """A machine with some facts."""

    def __init__(self, name, facts):
        super().__init__(name, 4)
        self._facts = facts

    def run(self, argv, stdin=b'', *limits):
        if environment.FACTS in argv:
            printed = ''.join(f'{name}={value}\n'
                              for name, value in self._facts.items())
            return executor.Completed(0, printed.encode(), b'')
        return super().run(argv, stdin, *limits)


class IdentityTest(testtools.TestCase):
    def identify(self, name='', value=''):
        """Identify a run whose guest has another value of a fact."""
        facts, server = dict(FACTS), dict(SERVER)
        if name:
            (server if name in server else facts)[name] = value
        guest = target.Target(Machine('vm', facts), 'vm', host='n17',
                              flavor='hpc.4c', facts=server)
        native = target.Target(places.Machine('n17', 4), 'n17')
        wanted = run_request.find(['stream'], run_request.read_settings(
            ['source=/opt/stream.c'], '--set'), None)
        planned, = plan.make(wanted, sides.pair([guest], [native]),
                             record.Purpose.COMPARE, 10).runs
        found = identity.identify(planned, {'stream': 'd1'})
        return found, identity.subject(planned, found)

    def test_another_boot_or_instance_is_the_same_subject(self):
        usual = self.identify()
        for name, value in (('boot_id', '77aa'), ('host', 'vm2'),
                            ('server.id', '99'),
                            ('server.host_cpus', '4-7')):
            self.assertEqual(usual, self.identify(name, value))

    def test_another_machine_kernel_or_image_is_another_subject(self):
        usual, subject = self.identify()
        for name, value in (('cpu.model', 'EPYC 9654'), ('kernel', '6.12'),
                            ('server.image', 'other'),
                            ('memory.total_kib', '131860000')):
            found, other = self.identify(name, value)
            self.assertEqual(1, len(identity.changes(usual, found)))
            self.assertNotEqual(subject, other)

    def test_a_few_pages_of_memory_change_nothing(self):
        self.assertEqual(self.identify(), self.identify(
            'memory.total_kib', '263719000'))

# SPDX-License-Identifier: Apache-2.0

import testtools

from hpcvirt import exception
from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.catalogue import definition
from hpcvirt.bench.catalogue import sizing
from tests.builders import defined


class TestUse(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.spin = catalogue.read(defined.GOOD, 'x')
        self.machine = sizing.Machine(cpus=8, memory_mib=16384)

    def values(self, **overrides):
        return definition.compute_sizes(self.spin, self.spin.variant(),
                                        self.machine, overrides)

    def test_everything_is_worked_out_from_the_machine(self):
        self.assertEqual({'ranks': '8', 'threads': '1', 'cpus': '8',
                          'nodes': '1', 'N': '32720'}, self.values())

    def test_the_user_may_fix_a_value(self):
        self.assertEqual('1000', self.values(N='1000')['N'])
        self.assertEqual('2', self.values(ranks='2')['cpus'])
        exc = self.assertRaises(exception.InvalidInput, self.values, M='1')
        self.assertIn('the sizes are N', str(exc))
        for bad in ('0', '-1', 'x', '9' * 30, ''):
            self.assertRaises(exception.InvalidInput, self.values, ranks=bad)

    def test_a_command_is_filled_and_hosts_go_in_whole(self):
        values = {**self.values(), 'data': '/d'}
        self.assertEqual(
            ('mpirun', '-np', '8', '--host', 'a:8', 'spin', '32720', '/d/x'),
            definition.arguments(self.spin.variants[0].command, values,
                                 ('--host', 'a:8')))
        self.assertRaises(exception.InvalidInput, definition.fill, '{data}',
                          self.values())

    def test_expectations_join_what_is_asked_and_what_the_name_says(self):
        self.assertEqual({'version': '1', 'N': '32720'},
                         definition.expectations(self.spin, self.values()))

    def test_a_variant_is_found_by_name(self):
        self.assertEqual('mpi', self.spin.variant('mpi').name)
        exc = self.assertRaises(exception.InvalidInput, self.spin.variant,
                                'cuda')
        self.assertIn('the variants are mpi', str(exc))

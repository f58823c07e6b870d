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

"""What the plugin makes of its options and of the API's answers."""

import unittest

from hpcvirt import exception
from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.execute import executor
from hpcvirt.bench.execute import mpi_hosts
from hpcvirt.bench.model import record
from hpcvirt.tempest_plugin import benchmarking
from hpcvirt.tempest_plugin import contract
from tests.unit.bench import runs


class Machine:
    """A place of one CPU and 1 GiB that notes what it is asked."""

    def __init__(self, name, status=0, stderr=b''):
        self.name = name
        self.asked = []
        self._status = status
        self._stderr = stderr

    def run(self, argv, stdin=b'', *_limits):
        self.asked.append((list(argv), stdin))
        told = b'cpus 1\nmemory_kib 1048576\ncells 1\n'
        if list(argv) == ['uname', '-n']:
            told = b'first\n'
        return executor.Completed(self._status, told, self._stderr)

    def close(self):
        pass


def guest(place, host='n17', cpu=3):
    return benchmarking.Guest(place, place.name, 'id', 'hpc.1c', host, (
        contract.Node(0, 1024, 2048, frozenset([0]), {0: cpu}),))


class AskedTest(unittest.TestCase):

    def test_variant_settings_and_limit(self):
        one, two = benchmarking.asked(
            ['npb-cg/openmp', 'HPCC'],
            ['hpcc:N=300', 'hpcc:ranks=1', 'netpipe:max_size=64'], 60)
        self.assertEqual(('npb-cg', 'openmp', {}, 60), (
            one.made.name, one.variant, one.settings, one.made.time_limit_s))
        self.assertEqual(('hpcc', None, {'N': '300', 'ranks': '1'}),
                         (two.made.name, two.variant, two.settings))

    def test_without_a_limit_the_definition_has_its_own(self):
        (one,) = benchmarking.asked(['hpcc'], [], None)
        self.assertEqual(14400, one.made.time_limit_s)

    def test_what_is_not_understood_is_bad_input(self):
        for names, settings in ((['linpack'], []), (['hpcc/openmp'], []),
                                (['hpcc'], ['N=300']),
                                (['hpcc'], ['hpcc:N']),
                                (['hpcc'], ['linpack:N=300'])):
            with self.subTest(names=names, settings=settings):
                self.assertRaises(exception.InvalidInput, benchmarking.asked,
                                  names, settings, None)


class NativeTest(unittest.TestCase):

    def test_host_of_the_guest_is_put_into_the_place(self):
        found = benchmarking.native('ssh://hpc@{host}:2222', 'n17',
                                    ['n17', 'n18'])
        self.assertEqual('ssh://hpc@n17:2222', found.name)

    def test_one_place_is_enough_for_one_host(self):
        self.assertEqual('local',
                         benchmarking.native('local', 'n17', ['n17']).name)

    def test_one_place_is_not_the_host_of_every_guest(self):
        with self.assertRaisesRegex(exception.InvalidInput, 'n17, n18'):
            benchmarking.native('ssh://n17', 'n17', ['n18', 'n17'])

    def test_what_is_no_place_is_bad_input(self):
        self.assertRaises(exception.InvalidInput, benchmarking.native,
                          'telnet://{host}', 'n17', ['n17'])


class PlanTest(unittest.TestCase):

    def test_native_runs_are_tied_to_the_cpus_of_the_guest(self):
        native, there = Machine('native'), Machine('guest')
        asked = benchmarking.asked(['hpcc'], ['hpcc:N=300'], None)
        (planned,) = benchmarking.compared(guest(there), native, asked, 7)
        (part,) = planned.parts[record.Arm.NATIVE]
        self.assertEqual(('numactl', '--physcpubind=3', '--localalloc',
                          'mpirun'), part.command[:4])
        (own,) = planned.parts[record.Arm.GUEST]
        self.assertEqual('mpirun', own.command[0])
        self.assertEqual(part.task, own.task)
        self.assertEqual(
            {'server.id': 'id', 'server.flavor': 'hpc.1c', 'pages': 'large',
             'server.host_cpus': '3'}, own.seat.facts)
        self.assertEqual((7, 1, record.Purpose.COMPARE, 'n17', 'hpc.1c'),
                         (planned.pairs, planned.warm_ups, planned.purpose,
                          planned.host, planned.shape))

    def test_setting_that_a_benchmark_has_not_is_bad_input(self):
        asked = benchmarking.asked(['stream'], ['stream:N=300'], None)
        self.assertRaises(exception.InvalidInput, benchmarking.compared,
                          guest(Machine('guest')), Machine('native'), asked,
                          5)

    def test_mpi_puts_a_rank_into_each_guest(self):
        (asked,) = benchmarking.asked(['netpipe'], ['netpipe:max_size=64'], 60)
        first, second = Machine('one'), Machine('two')
        (planned,) = benchmarking.spanning(
            [guest(first), guest(second, 'n18')], ['10.0.0.5'], asked)
        (part,) = planned.parts[record.Arm.GUEST]
        words = ' '.join(part.command)
        self.assertIn('--host first:1,10.0.0.5:1', words)
        self.assertIn('mpi_yield_when_idle 1', words)
        self.assertIn('NPopenmpi -u 64', words)
        self.assertEqual([first, second],
                         [seat.place for seat in part.seats])
        self.assertEqual(record.Purpose.UNPAIRED, planned.purpose)
        self.assertEqual('n17, n18', planned.host)

    def test_mpi_needs_a_benchmark_that_spans(self):
        (asked,) = benchmarking.asked(['stream'], [], None)
        self.assertRaises(exception.InvalidInput, benchmarking.spanning,
                          [guest(Machine('one')), guest(Machine('two'))],
                          ['10.0.0.5'], asked)


class BeyondTest(unittest.TestCase):

    def test_command_goes_through_the_first_guest(self):
        first = Machine('ssh://one')
        place = benchmarking.Beyond(first, '10.0.0.5')
        done = place.run(['sh', '-c', 'cat > "$1"', 'put', 'a b'], b'x')
        self.assertEqual(0, done.status)
        ((argv, stdin),) = first.asked
        self.assertEqual([*mpi_hosts.SSH, '10.0.0.5',
                          "sh -c 'cat > \"$1\"' put 'a b'"], argv)
        self.assertEqual(b'x', stdin)

    def test_guest_that_is_not_reached_is_told(self):
        place = benchmarking.Beyond(Machine('one', 255, b'no route\n'), 'two')
        with self.assertRaisesRegex(exception.Unreachable, 'no route'):
            place.run(['true'])


class ToldTest(unittest.TestCase):

    def told(self, measured):
        result = record.Result((measured,), verdict.judge((measured,)))
        return benchmarking.told('hpc.1c', 'e17', '/data', result)

    def test_failure_shows_the_figures(self):
        text = self.told(runs.run([100] * 5, [10, 11, 10, 9, 10]))
        self.assertTrue(text.startswith('FAIL: hpc.1c\n'), text)
        for part in ('mops_total', '>= 0.950', '0.1',
                     'result e17, outputs in /data'):
            self.assertIn(part, text)

    def test_figures_of_guests_alone_are_shown_and_not_judged(self):
        text = self.told(runs.run([], [100, 101], planned_pairs=2,
                                  purpose=record.Purpose.UNPAIRED))
        self.assertTrue(text.startswith('unpaired: hpc.1c\n'), text)
        self.assertIn('mops_total', text)
        self.assertNotIn('INCONCLUSIVE', text)

    def test_invalid_samples_are_listed(self):
        text = self.told(runs.run([100] * 5, [100] * 3 + [
            runs.bad('no end marker'), runs.bad('killed')]))
        self.assertIn('INVALID: hpc.1c', text)
        self.assertIn('guest pair 4: no end marker', text)
        self.assertIn('guest pair 5: killed', text)

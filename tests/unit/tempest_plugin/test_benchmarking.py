# SPDX-License-Identifier: Apache-2.0

"""From the options and the answers of the API to a plan and its summary."""

import dataclasses
import unittest
from unittest import mock

from hpcvirt import exception
from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.execute import mpi_hosts
from hpcvirt.bench.model import outcome as bench_outcome
from hpcvirt.bench.model import record
from hpcvirt.flavors import plan_document
from hpcvirt.tempest_plugin import benchmarking
from hpcvirt.tempest_plugin import contract
from tests.builders import places
from tests.builders import runs


def guest(place, host='n17', cpu=3, address='', rebooter=None):
    return benchmarking.guest(
        place, {'name': place.name, 'id': 'id'}, 'hpc.1c', host,
        (contract.ServerTopologyNode(0, 1024, 2048, frozenset([0]),
                                     {0: cpu}),), address,
        rebooter)


class RequestsTest(unittest.TestCase):
    def test_each_run_has_the_limit_of_the_option_or_of_its_definition(self):
        for limit_s, expected in ((60, 60), (None, 14400)):
            _, hpcc = benchmarking.requests(
                ['npb-cg/openmp', 'HPCC'],
                ['hpcc:N=300', 'netpipe:max_size=64'], limit_s)
            self.assertEqual(({'N': '300'}, expected), (
                hpcc.settings, hpcc.definition.time_limit_s))

    def test_the_benchmark_of_a_setting_is_named(self):
        self.assertRaises(exception.InvalidInput, benchmarking.requests,
                          ['hpcc'], ['N=300'], None)


class CheckTest(unittest.TestCase):
    """What no guest can pass is refused before one is started."""

    def check(self, benchmark, pairs):
        flavors = [plan_document.FlavorSummary(
            name=name, vcpus=2, ram_mib=512, extra_specs={}, per_host={})
            for name in ('hpc.1c', 'hpc.2c')]
        benchmarking.check(
            benchmarking.requests([benchmark], [], None), flavors, pairs)

    def test_the_option_is_named(self):
        for benchmark, pairs, said in (
                ('hpcc', 7, 'set [hpcvirt]benchmark_pairs to 11'),
                ('fio', 16, 'remove it from [hpcvirt]benchmarks')):
            with self.assertRaises(exception.InvalidInput) as caught:
                self.check(benchmark, pairs)
            self.assertIn(said, str(caught.exception))
        self.check('hpcc', 11)


class NativeTest(unittest.TestCase):
    def test_host_of_the_guest_is_put_into_the_place(self):
        place = benchmarking.native('ssh://hpc@{host}:2222', 'n17',
                                    ['n17', 'n18'])
        self.assertEqual('ssh://hpc@n17:2222', place.name)

    def test_one_place_is_enough_for_one_host(self):
        self.assertEqual('local',
                         benchmarking.native('local', 'n17', ['n17']).name)

    def test_one_place_is_not_the_host_of_every_guest(self):
        with self.assertRaisesRegex(exception.InvalidInput, 'n17, n18'):
            benchmarking.native('ssh://n17', 'n17', ['n18', 'n17'])

    def test_an_unknown_kind_of_place_is_bad_input(self):
        self.assertRaises(exception.InvalidInput, benchmarking.native,
                          'telnet://{host}', 'n17', ['n17'])


class PlanTest(unittest.TestCase):
    def test_native_runs_are_confined_to_the_cpus_of_the_guest(self):
        native, there = places.Machine('native'), places.Machine('guest')
        requests = benchmarking.requests(['hpcc'], ['hpcc:N=300'], None)
        (planned,) = benchmarking.compare(guest(there), native, requests,
                                          7).runs
        (of_native,) = planned.jobs[record.Side.NATIVE]
        self.assertEqual(('numactl', '--physcpubind=3', '--localalloc',
                          'env', 'mpirun'), of_native.command[:5])
        (of_guest,) = planned.jobs[record.Side.GUEST]
        self.assertEqual('mpirun', of_guest.command[0])
        self.assertEqual(of_native.run, of_guest.run)
        self.assertEqual(
            {'server.id': 'id', 'server.flavor': 'hpc.1c', 'pages': 'large',
             'server.host_cpus': '3'}, of_guest.target.facts)
        self.assertEqual({}, of_native.target.facts)
        self.assertEqual(
            (7, 1, record.Purpose.COMPARE, 'n17', 'hpc.1c',
             record.Launch.WARM, False),
            (planned.run.planned_pairs, planned.run.planned_warm_ups,
             planned.run.purpose, planned.run.host, planned.run.shape,
             planned.run.launch, planned.run.relaunched))

    def test_a_guest_that_can_be_rebooted_is_compared_in_several_boots(self):
        requests = benchmarking.requests(['hpcc'], ['hpcc:N=300'], None)
        rebooter = mock.Mock()
        (planned,) = benchmarking.compare(
            guest(places.Machine('guest'), rebooter=rebooter),
            places.Machine('native'), requests, 10).runs
        self.assertTrue(planned.run.relaunched)
        (job,) = planned.guest_jobs
        self.assertIs(rebooter, job.target.rebooter)

    def test_unknown_setting_of_a_benchmark_is_bad_input(self):
        requests = benchmarking.requests(['stream'], ['stream:N=300'], None)
        self.assertRaises(exception.InvalidInput, benchmarking.compare,
                          guest(places.Machine('guest')),
                          places.Machine('native'), requests, 5)

    def test_mpi_puts_a_rank_into_each_guest(self):
        (request,) = benchmarking.requests(['netpipe'],
                                           ['netpipe:max_size=64'], 60)
        first, second = places.Machine('one'), places.Machine('two')
        (planned,) = benchmarking.span(
            [guest(first), guest(second, 'n18', address='10.0.0.5')],
            request).runs
        (job,) = planned.jobs[record.Side.GUEST]
        words = ' '.join(job.command)
        self.assertIn('--host one-kernel:1,10.0.0.5:1', words)
        self.assertIn('mpi_yield_when_idle 1', words)
        self.assertIn('NPopenmpi -u 64', words)
        self.assertEqual([first, second],
                         [target.place for target in job.targets])
        self.assertEqual(record.Purpose.UNPAIRED, planned.run.purpose)
        self.assertEqual('n17, n18', planned.run.host)
        self.assertEqual((2, 0, '2 guests of hpc.1c', None),
                         (planned.run.planned_pairs,
                          planned.run.planned_warm_ups,
                          planned.run.shape, planned.run.launch))

    def test_mpi_over_two_hosts_has_the_bounds_for_several_nodes(self):
        (request,) = benchmarking.requests(
            ['osu-latency'], ['osu-latency:osu=/opt/osu'], 60)
        for hosts, kind in ((('n17', 'n18'), 'measured'),
                            (('n17', 'n17'), 'transferred')):
            (planned,) = benchmarking.span(
                [guest(places.Machine(name), host, address=name)
                 for name, host in zip('ab', hosts, strict=True)],
                request).runs
            measured = dataclasses.replace(
                runs.run([], [1.5, 1.6], metric='latency_us[8]', bounds={},
                         benchmark='osu-latency', purpose=planned.run.purpose),
                host=planned.run.host, shape=planned.run.shape)
            judged = verdict.judge_result(record.Result((measured,)))
            self.assertEqual(kind, judged.runs[0].bounds['latency_us[8]'].kind)

    def test_mpi_needs_a_benchmark_that_spans(self):
        (request,) = benchmarking.requests(['stream'], [], None)
        self.assertRaises(exception.InvalidInput, benchmarking.span,
                          [guest(places.Machine(name))
                           for name in ('one', 'two')],
                          request)


class RelayedExecutorTest(unittest.TestCase):
    def test_command_goes_through_the_first_guest(self):
        first = places.Machine('ssh://one')
        place = benchmarking.RelayedExecutor(first, '10.0.0.5')
        done = place.run(['sh', '-c', 'cat > "$1"', 'put', 'a b'], b'x')
        self.assertEqual(0, done.status)
        ((argv, stdin),) = first.commands
        self.assertEqual([*mpi_hosts.SSH, '10.0.0.5',
                          "sh -c 'cat > \"$1\"' put 'a b'"], argv)
        self.assertEqual(b'x', stdin)

    def test_the_error_of_ssh_means_that_the_connection_is_lost(self):
        place = benchmarking.RelayedExecutor(
            places.Machine('one', status=255, stderr=b'no route\n'), 'two')
        with self.assertRaisesRegex(exception.ConnectionLost, 'no route'):
            place.run(['true'])


class SummaryTest(unittest.TestCase):
    def summary(self, measured):
        result = record.Result((measured,), verdict.judge((measured,)))
        return benchmarking.summary('hpc.1c', 'e17', '/data', result)

    def test_failure_shows_the_figures(self):
        text = self.summary(runs.run([100] * 5, [10, 11, 10, 9, 10]))
        self.assertTrue(text.startswith('FAIL: hpc.1c\n'), text)
        for part in ('mops_total', '>= 0.950', '0.1',
                     'result e17, outputs in /data'):
            self.assertIn(part, text)

    def test_figures_of_guests_alone_are_shown_and_not_judged(self):
        text = self.summary(runs.run([], [100, 101], planned_pairs=2,
                                     purpose=record.Purpose.UNPAIRED))
        self.assertTrue(text.startswith('unpaired: hpc.1c\n'), text)
        self.assertIn('mops_total', text)
        self.assertNotIn('INCONCLUSIVE', text)

    def test_invalid_samples_are_listed(self):
        text = self.summary(runs.run([100] * 5, [100] * 3 + [
            runs.bad('no end marker'), runs.bad('killed')]))
        self.assertIn('INVALID: hpc.1c', text)
        self.assertIn('guest pair 4: no end marker', text)
        self.assertIn('guest pair 5: killed', text)


Result = benchmarking.TestOutcome
NATIVE = [100, 101, 99, 100.2, 102, 100.7, 99.4, 101.5, 98.8, 100.4]
ALIKE = [99.9, 101.2, 98.9, 100.1, 101.9, 100.9, 99.2, 101.3, 98.7, 100.6]
SLOW = [10, 11, 10.2, 9, 10.4, 10.1, 10.9, 9.8, 10.3, 9.7]
NOISY = [60, 140, 99, 75, 130, 65, 122, 82, 111, 93]


def judged(*measured):
    return record.Result(measured, verdict.judge(measured))


class OutcomeTest(unittest.TestCase):
    """From a verdict to the outcome of a test."""

    def outcomes(self, *measured):
        result = judged(*measured)
        return tuple(benchmarking.make_outcome(result, inconclusive)
                     for inconclusive in ('fail', 'skip'))

    def test_a_verdict_decides_and_inconclusive_follows_the_option(self):
        passed, failed = (Result.PASS,) * 2, (Result.FAIL,) * 2
        undecided = (Result.FAIL, Result.SKIP)
        for expected, measured in (
                (passed, [runs.run(NATIVE, ALIKE)]),
                (failed, [runs.run(NATIVE, SLOW)]),
                (undecided, [runs.run(NATIVE, NOISY)]),
                (undecided, [runs.run(NATIVE, ALIKE[:4])]),
                # Figures without a bound prove nothing.
                (undecided, [runs.run(NATIVE, ALIKE, bounds={})]),
                # Ranks of five pairs cannot decide two figures.
                (undecided, [runs.run(NATIVE[:5], ALIKE[:5]), runs.run(
                    NATIVE[:5], SLOW[:5], id='s', benchmark='npb-ep')]),
                (failed, [runs.run(NATIVE, ALIKE), runs.run(
                    NATIVE, SLOW, id='s', benchmark='npb-ep')])):
            self.assertEqual(expected, self.outcomes(*measured))

    def test_one_corrupted_output_fails_whatever_the_option_says(self):
        guest = [*ALIKE[:4], runs.bad('HPL: residual 1e3 failed')]
        measured = runs.run(NATIVE, guest)
        self.assertEqual((Result.FAIL, Result.FAIL),
                         self.outcomes(measured))
        self.assertEqual(
            ['npb-cg mpi, guest pair 5: HPL: residual 1e3 failed'],
            benchmarking.faults(judged(measured)))

    def test_a_result_without_a_verdict_fails(self):
        self.assertEqual(Result.FAIL,
                         benchmarking.make_outcome(record.Result(()), 'skip'))

    def test_the_worst_flavor_decides_and_the_table_is_shown(self):
        good, skipped, bad = Result
        for outcomes, error in (((good, skipped, bad), self.failureException),
                                ((), self.failureException),
                                ((good, skipped), unittest.SkipTest)):
            with (self.subTest(outcomes=outcomes),
                  self.assertRaises(error) as caught):
                benchmarking.conclude(self, outcomes, 'the table')
            self.assertIn('the table', str(caught.exception))
        benchmarking.conclude(self, (good, good), 'the table')

    def test_valid_samples_have_no_fault(self):
        good = bench_outcome.Outcome(True, None)
        self.assertEqual(
            [], benchmarking.faults(judged(runs.run([good], [good]))))

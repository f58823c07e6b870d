# SPDX-License-Identifier: Apache-2.0

import dataclasses
import itertools
import unittest

import testtools

from hpcvirt import exception
from hpcvirt.bench.analysis import boots
from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.catalogue import sizing
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record
from hpcvirt.bench.run import plan
from hpcvirt.bench.run import run_request
from hpcvirt.bench.run import run_spec
from hpcvirt.bench.run import schedule
from hpcvirt.bench.run import sides
from hpcvirt.bench.run import target
from tests.builders import places
from tests.builders import runs


def guest(name='vm', cpus=4, host_cpus=frozenset(range(4)), **known):
    return target.Target(places.Machine(name, cpus), name, f'{name}.net',
                         host_cpus=host_cpus, **known)


def native(name='host'):
    return target.Target(places.Machine(name, 64), name, f'{name}.net')


COMPARE = record.Purpose.COMPARE


class Rebooter:
    def reboot(self):
        raise AssertionError('a plan reboots nothing')


def plan_guest(**known):
    return guest(host='n17', flavor='hpc.4c', rebooter=Rebooter(), **known)


def make(names=('stream',), guests=None, natives=None, settings=(), **more):
    more.setdefault('purpose', COMPARE)
    more.setdefault('pair_count', 10)
    pairs = sides.pair(guests or [plan_guest()], natives or [native()])
    wanted = run_request.find(names, run_request.read_settings(
        ['source=/opt/stream.c', *settings], '--set'), record.Launch.WARM)
    return plan.make(wanted, pairs, **more)


class MakeTest(unittest.TestCase):
    def test_a_run_for_each_benchmark_and_each_state_in_this_order(self):
        runs = make(['stream', 'netpipe'], launch='both').runs
        self.assertEqual(
            [('stream', 'warm'), ('stream', 'cold'),
             ('netpipe', 'warm'), ('netpipe', 'cold')],
            [(each.run.benchmark, each.run.launch) for each in runs])

    def test_native_jobs_come_first(self):
        (run,) = make().runs
        self.assertEqual(['host', 'vm'],
                         [job.target.place.name for job in run.all_jobs])

    def test_hosts_are_counted_once_in_the_order_of_the_guests(self):
        guests = [guest(name, host=host) for name, host in
                  (('a', 'n18'), ('b', 'n17'), ('c', 'n18'))]
        (run,) = make(guests=guests, natives=[native()] * 3).runs
        self.assertEqual('n18, n17', run.run.host)

    def test_the_shape_is_the_flavor_of_one_guest_or_the_count_of_many(self):
        self.assertEqual('hpc.4c', make().runs[0].run.shape)
        two = make(guests=[plan_guest(), plan_guest()], natives=[native()] * 2)
        self.assertEqual('2x4', two.runs[0].run.shape)
        self.assertEqual('4x8', make(shape='4x8').runs[0].run.shape)

    def test_a_case_of_a_study_is_counted_as_the_study_counts(self):
        (wanted,) = run_request.find(['netpipe'], [])
        pairs = sides.pair([plan_guest()])
        (planned,) = plan.make(
            [dataclasses.replace(wanted, study='S4', case='1x4')], pairs,
            record.Purpose.UNPAIRED, 5).runs
        run = planned.run
        self.assertEqual(('1x4', 'S4', '1x4', None),
                         (run.shape, run.study, run.case, run.launch))


class PairCountTest(unittest.TestCase):
    def count(self, names, **more):
        found = make(names, pair_count=None, settings=['osu=/opt/osu'],
                     **more).runs
        self.assertEqual(1, len({each.run.planned_pairs for each in found}))
        return found[0].run

    def test_10_pairs_are_usual_and_decide_a_few_figures(self):
        self.assertEqual(10, self.count(['stream']).planned_pairs)
        self.assertEqual(10, self.count(['stream'] * 5).planned_pairs)

    def test_many_figures_get_as_many_boots_as_can_decide(self):
        run = self.count(['osu-latency'])
        self.assertEqual(22, run.planned_figures)
        self.assertEqual(10, len(boots.sizes(run)))
        self.assertEqual(13, run.planned_pairs)
        self.assertEqual(5, run.planned_controls)

    def test_without_boots_as_many_pairs(self):
        run = self.count(['osu-latency'] * 2, guests=[guest(host='n17')])
        self.assertEqual(11, run.planned_pairs)

    def test_the_figures_of_all_runs_are_judged_together(self):
        for pairs, names in ((11, ['stream'] * 6), (10, ['stream'] * 5)):
            self.assertEqual(pairs, self.count(names).planned_pairs)

    def test_smaller_messages_are_fewer_figures(self):
        (planned,) = make(['osu-latency'], settings=[
            'osu=/opt/osu', 'max_size=64']).runs
        self.assertEqual(7, planned.run.planned_figures)


class LaunchesTest(unittest.TestCase):
    def test_native_against_native_has_no_state(self):
        self.assertIsNone(make(purpose=record.Purpose.AA).runs[0].run.launch)
        with self.assertRaisesRegex(exception.InvalidInput,
                                    '--launch cold.*the guest itself'):
            make(purpose=record.Purpose.AA, launch='cold')

    def test_a_cold_guest_must_be_one_that_can_be_rebooted(self):
        machine = guest('ssh://vm')
        for launch in ('cold', 'both'):
            with self.assertRaisesRegex(exception.InvalidInput,
                                        'ssh://vm cannot be rebooted'):
                make(guests=[machine], launch=launch)
        self.assertEqual('warm', make(guests=[machine]).runs[0].run.launch)


class FingerprintTest(unittest.TestCase):
    def test_the_same_plan_has_the_same_identity(self):
        self.assertEqual(make().fingerprint, make().fingerprint)

    def test_whatever_changes_the_figures_changes_the_identity(self):
        others = [
            make(['stream', 'stream']), make(['npb-ep/serial'],
                                             settings=['npb_ser=/opt']),
            make(settings=['threads=2']), make(pair_count=11),
            make(warm_ups=2), make(launch='cold'), make(shape='4x8'),
            make(purpose=record.Purpose.AA),
            make(bounds={'triad_mb_s': judgement.Bound(0.5)}),
            make(guests=[plan_guest(cpus=8)]),
            make(guests=[plan_guest(host_cpus=frozenset({7}))]),
            make(guests=[guest('vm2', host='n17', flavor='hpc.4c')]),
            make(natives=[native('other')])]
        prints = [other.fingerprint for other in others]
        self.assertEqual(len(prints), len(set(prints)))
        self.assertNotIn(make().fingerprint, prints)


def run(durations, pause_after=None, **more):
    """A run of 2 pairs and a warm-up, as far as it has samples.

    :param durations: seconds of a native sample and of one of the guest
    """
    empty = record.Run('r', 'b', 'v', (), planned_pairs=2, **more)
    clock = 0
    samples = []
    for due in schedule.list_missing(empty):
        seconds = durations[due.side is record.Side.GUEST]
        samples.append(runs.sample(
            due.side, due.pair, runs.good(1), warm_up=due.warm_up,
            started_at=f'2026-11-20T10:{clock // 60:02d}:{clock % 60:02d}',
            elapsed_s=seconds - 1.0))
        samples[-1] = dataclasses.replace(samples[-1], position=due.position)
        clock += seconds + (1000 if due.position == pause_after else 0)
    return dataclasses.replace(empty, samples=tuple(samples))


def begun(whole, count):
    return dataclasses.replace(whole, samples=whole.samples[:count])


class TestRemaining(testtools.TestCase):
    def test_without_a_sample_it_is_unknown(self):
        empty = begun(run((10, 30)), 0)
        self.assertIsNone(schedule.estimate_seconds(empty))
        self.assertEqual('', schedule.format_remaining(empty))

    def test_each_arm_takes_its_time(self):
        whole = run((10, 30))
        # Of the last sample, only the time of its program is known yet.
        self.assertIn(schedule.estimate_seconds(begun(whole, 2)), (
            2 * 10 + 2 * 29, 2 * 9 + 2 * 30))
        self.assertEqual(0, schedule.estimate_seconds(whole))
        self.assertEqual('', schedule.format_remaining(whole))

    def test_until_there_is_one_of_the_other_side_it_takes_as_long(self):
        self.assertEqual(
            5 * 9, schedule.estimate_seconds(begun(run((10, 30)), 1)))

    def test_an_interruption_does_not_count(self):
        whole = run((10, 10), pause_after=2, planned_warm_ups=3)
        for count in (6, 7, 8):
            self.assertEqual(10 * (10 - count),
                             schedule.estimate_seconds(begun(whole, count)))

    def test_reboots_of_the_guest_count(self):
        whole = run((10, 10), relaunched=True)
        waits = [due.relaunch for due in schedule.list_missing(
            begun(whole, 0))]
        self.assertEqual(2, sum(waits))
        seconds, clock = [], 0
        for number, sample in enumerate(whole.samples):
            clock += 10 + 60 * waits[number]
            seconds.append(dataclasses.replace(
                sample, started_at=f'2026-11-20T10:{clock // 60:02d}:'
                f'{clock % 60:02d}', elapsed_s=10, environment={
                    boots.RELAUNCH_S: '60'} if waits[number] else {}))
        whole = dataclasses.replace(whole, samples=tuple(seconds))
        first = waits.index(True)
        self.assertIn(' left besides 2 reboots',
                      schedule.format_remaining(begun(whole, first)))
        for count in range(first + 1, len(waits)):
            self.assertEqual(
                10 * (len(waits) - count) + 60 * sum(waits[count:]),
                schedule.estimate_seconds(begun(whole, count)))
            self.assertNotIn('besides',
                             schedule.format_remaining(begun(whole, count)))

    def test_it_is_told_in_suitable_units(self):
        for seconds, text in ((10, 'about 45 s left'),
                              (61, 'about 5 min left'),
                              (3661, 'about 5 h 5 min left')):
            self.assertEqual(
                text, schedule.format_remaining(begun(run((seconds,
                                                           seconds + 1)), 1)))
        self.assertIn('at most', schedule.format_remaining(
            begun(run((10, 10), interim_analyses=(6, 9)), 1)))


SET = '--set'


class ReadSettingsTest(unittest.TestCase):
    def test_a_value_may_hold_any_character(self):
        self.assertEqual(
            (run_request.Setting('npb_mpi', '/opt/a:b=c'),),
            run_request.read_settings(['npb_mpi=/opt/a:b=c'], SET))

    def test_a_setting_of_a_benchmark_has_its_proper_name(self):
        self.assertEqual(
            (run_request.Setting('script', '/a:b', 'hs06'),),
            run_request.read_settings(['HS06:script=/a:b'], SET,
                                      of_benchmarks=True))

    def test_another_form_is_refused_and_named(self):
        for word in ('N', 'N=', '=3', ''):
            with self.assertRaisesRegex(exception.InvalidInput,
                                        f'--set {word}: not KEY=VALUE'):
                run_request.read_settings([word], SET)
        for word in ('N=3', 'hpcc:N', 'hpcc:=3', 'hpcc:N=', 'linpack:N=3'):
            with self.assertRaises(exception.InvalidInput):
                run_request.read_settings([word], SET, of_benchmarks=True)


class SettingsOfTest(unittest.TestCase):
    def settings(self, *words, **more):
        return run_request.settings_of(
            catalogue.get('hpcc'),
            run_request.read_settings(words, SET, **more))

    def test_a_benchmark_takes_its_sizes_and_the_counts(self):
        self.assertEqual({'N': '300', 'ranks': '2'}, self.settings(
            'N=300', 'class=S', 'ranks=2', 'npb_mpi=/opt'))

    def test_the_last_setting_of_a_key_counts(self):
        self.assertEqual({'N': '400'}, self.settings('N=300', 'N=400'))

    def test_a_setting_of_another_benchmark_is_left_to_it(self):
        # An unknown key is kept: sizing refuses it with what there is.
        self.assertEqual({'M': '1'}, self.settings(
            'hpcc:M=1', 'netpipe:max_size=64', of_benchmarks=True))

    def test_a_setting_for_no_benchmark_is_refused(self):
        settings = run_request.read_settings(['N=300', 'class=S'], SET)
        definitions = [catalogue.get('hpcc'), catalogue.get('npb-cg')]
        run_request.check_used(definitions, settings, SET)
        with self.assertRaisesRegex(exception.InvalidInput, '--set class'):
            run_request.check_used(definitions[:1], settings, SET)

    def test_a_bound_is_for_a_metric_of_a_benchmark(self):
        definitions = [catalogue.get(name) for name in ('stream',
                                                        'osu-latency')]
        known = {figure.name for each in definitions
                 for figure in each.metrics}
        run_request.check_bounds(definitions, {
            *known, 'latency_us[8]'})
        with self.assertRaisesRegex(exception.InvalidInput,
                                    '--bound triads: .* triad_mb_s'):
            run_request.check_bounds(definitions, ['triads'])


class FindTest(unittest.TestCase):
    def test_each_benchmark_gets_its_own_settings(self):
        cg, hpcc = run_request.find(
            ['npb-cg/openmp', 'HPCC'],
            run_request.read_settings(['class=S', 'N=300', 'threads=2'], SET),
            record.Launch.WARM)
        self.assertEqual(
            ('npb-cg', 'openmp', {'class': 'S', 'threads': '2'}, 'warm'),
            (cg.definition.name, cg.variant, cg.settings, cg.launch))
        self.assertEqual(
            ('hpcc', None, {'N': '300', 'threads': '2'}),
            (hpcc.definition.name, hpcc.variant, hpcc.settings))

    def test_only_mpi_spans_machines(self):
        netpipe, stream = run_request.find(['netpipe', 'stream'], [])
        self.assertTrue(netpipe.spans)
        self.assertFalse(stream.spans)


MACHINE = sizing.Machine(4, 8192)


def run_spec_make(name, variant=None, hosts=(), **settings):
    return run_spec.make(catalogue.get(name), variant, MACHINE, settings,
                         hosts)


class RunSpecTest(unittest.TestCase):
    def test_no_placeholder_is_left(self):
        paths = {'npb_mpi': '/opt/npb', 'npb_ser': '/opt/npb',
                 'npb_omp': '/opt/npb', 'source': '/opt/stream.c'}
        for name in ('hpcc', 'stream', 'npb-cg', 'netpipe'):
            spec = run_spec_make(name, **{path.name: paths[path.name] for path
                                 in catalogue.get(name).paths})
            words = [*spec.command, *spec.environment.values(),
                     *spec.products, *spec.expect.values()]
            self.assertEqual([], [word for word in words if '{' in word])

    def test_settings_override_the_rule_and_reach_the_input_file(self):
        spec = run_spec_make('hpcc', N='300')
        self.assertEqual('300', spec.values['N'])
        self.assertEqual('300', spec.parameters['N'])
        self.assertRegex(spec.inputs['hpccinf.txt'], rb'(?m)^300 +Ns')

    def test_hosts_stand_where_the_command_names_them(self):
        words = ' '.join(run_spec_make('hpcc',
                                       hosts=('--host', 'a:2,b:2')).command)
        self.assertIn('-np 4 --host a:2,b:2', words)

    def test_a_path_is_needed_only_by_the_variants_that_use_it(self):
        run_spec_make('npb-cg', 'serial', npb_ser='/opt/npb')
        with self.assertRaisesRegex(exception.InvalidInput,
                                    '--set npb_mpi=PATH'):
            run_spec_make('npb-cg', 'mpi', npb_ser='/opt/npb')

    def test_an_unknown_setting_is_refused(self):
        with self.assertRaisesRegex(exception.InvalidInput, 'klass'):
            run_spec_make('hpcc', klass='S')


class JobSpecTest(unittest.TestCase):
    def job(self, name, **confined):
        machine = target.Target(places.Machine('host'), 'vm', **confined)
        return run_spec.JobSpec(run_spec_make(name), machine)

    def test_ranks_bind_themselves_where_mpirun_is_confined(self):
        job = self.job('hpcc', prefix=('taskset', '-c', '2-5'),
                       cpus=frozenset({2, 3, 4, 5}))
        self.assertEqual(('taskset', '-c', '2-5', 'mpirun'), job.command[:4])
        self.assertIn('--bind-to none sh ./bind', ' '.join(job.command))

    def test_mpirun_binds_ranks_where_it_has_the_whole_machine(self):
        job = self.job('hpcc')
        self.assertFalse(job.binds_ranks)
        self.assertIn('--bind-to core', ' '.join(job.command))


def letters(samples):
    return ''.join(each.side[0] for each in samples)


class ScheduleTest(unittest.TestCase):
    def test_which_arm_of_a_pair_leads_is_drawn_by_lot(self):
        leading = [letters(schedule.order(1000, 0, lot=lot))[::2]
                   for lot in ('one', 'two')]
        for letter in 'ng':
            self.assertGreater(leading[0].count(letter), 400)
        self.assertNotEqual(*leading)
        self.assertEqual(leading[0], letters(
            schedule.order(1000, 0, lot='one'))[::2])
        # The order of one pair says nothing about the next.
        changes = sum(before != after for before, after
                      in itertools.pairwise(leading[0]))
        self.assertTrue(400 < changes < 600)

    def test_warm_ups_come_first_and_shift_nothing(self):
        samples = schedule.order(2, 1)
        self.assertEqual('ng' + letters(schedule.order(2, 0)),
                         letters(samples))
        self.assertEqual([True, True, False, False, False, False],
                         [each.warm_up for each in samples])
        self.assertEqual([0, 0, 0, 0, 1, 1], [each.pair for each in samples])

    def test_every_pair_has_one_sample_in_each_arm(self):
        for pairs in range(1, 8):
            samples = schedule.order(pairs, 2)
            seen = {(each.warm_up, each.pair, each.side) for each in samples}
            self.assertEqual(2 * (pairs + 2), len(seen))
            self.assertEqual(list(range(len(samples))),
                             [each.position for each in samples])

    def test_a_guest_that_is_rebooted_is_not_warmed_up(self):
        cold = schedule.order(2, 1, launch=record.Launch.COLD)
        self.assertEqual('n' + letters(schedule.order(2, 0)), letters(cold))
        self.assertEqual([True, False, False, False, False],
                         [each.warm_up for each in cold])
        self.assertEqual(list(range(5)), [each.position for each in cold])
        alone = schedule.order(2, 1, record.Purpose.UNPAIRED,
                              record.Launch.COLD)
        self.assertEqual('gg', letters(alone))

    def test_a_guest_is_relaunched_and_warmed_up_for_each_boot(self):
        samples = schedule.order(5, 1, of_boots=(2, 2, 1), lot='any')
        self.assertEqual(list(range(14)), [each.position for each in samples])
        words = ''.join(
            ('R' if each.relaunch else '') + (
                each.side[0].upper() if each.warm_up else 'p')
            for each in samples)
        self.assertEqual('NRGppppRGppppRGpp', words)
        self.assertEqual([0, 0, 1, 2], [each.pair for each in samples
                                        if each.warm_up])
        # The lots are the same as without boots.
        self.assertEqual(
            letters(schedule.order(5, 0, lot='any')),
            letters([each for each in samples if not each.warm_up]))

    def test_without_warm_ups_the_first_run_of_the_guest_follows(self):
        samples = schedule.order(4, 0, of_boots=(2, 2), lot='any')
        self.assertEqual(
            [[True, False], [True, False]],
            [[each.relaunch for each in samples[first:first + 4]
              if each.side is record.Side.GUEST] for first in (0, 4)])
        self.assertFalse(any(each.relaunch for each in samples
                             if each.side is record.Side.NATIVE))

    def test_a_cold_guest_is_relaunched_before_each_of_its_samples(self):
        samples = schedule.order(3, 1, launch=record.Launch.COLD)
        self.assertEqual([each.side is record.Side.GUEST for each in samples],
                         [each.relaunch for each in samples])

    def test_a_control_is_next_to_the_native_sample_of_its_pair(self):
        samples = schedule.order(6, 1, lot='any', controls=5)
        self.assertEqual(list(range(19)), [each.position for each in samples])
        both = set()
        for pair in range(5):
            found = [each for each in samples
                     if each.pair == pair and not each.warm_up]
            words = ''.join('c' if each.control else each.side[0]
                            for each in found)
            both.add(words)
            self.assertEqual('native', found[1].side)
        self.assertEqual({'cng', 'gnc'}, both)
        # The lots are the same as without controls.
        self.assertEqual(
            letters(schedule.order(6, 1, lot='any')),
            letters([each for each in samples if not each.control]))

    def test_a_continued_run_lacks_the_samples_that_it_does_not_have(self):
        done = outcome.Outcome(False, 'any')
        run = record.Run('r', 'hpcc', 'mpi', planned_pairs=2,
                         planned_warm_ups=0, samples=(
                             record.Sample(record.Side.NATIVE, 0, 0, done),
                             record.Sample(record.Side.GUEST, 1, 2, done)))
        self.assertEqual([1, 3], [each.position
                                  for each in schedule.list_missing(run)])


def jobs(pairs, name, *settings):
    (wanted,) = run_request.find([name], run_request.read_settings(
        ['source=/opt/stream.c', *settings], '--set'))
    return sides.jobs(pairs, wanted)


def numactl(cpus):
    return ('numactl', f'--physcpubind={cpus}', '--localalloc', 'env')


class PairTest(unittest.TestCase):
    def test_guests_of_one_name_are_numbered(self):
        pairs = sides.pair([guest('vm'), guest('vm')])
        self.assertEqual(['vm-1', 'vm-2'],
                         [pair.guest.label for pair in pairs])

    def test_cpus_are_those_of_the_pins_unless_they_are_given(self):
        guests = [guest('a', host_cpus=frozenset({2, 3})),
                  guest('b', host_cpus=None)]
        self.assertEqual([{2, 3}, None],
                         [pair.cpus for pair in sides.pair(guests)])
        pairs = sides.pair(guests, cpus=[frozenset({0}), frozenset({1})])
        self.assertEqual([{0}, {1}], [pair.cpus for pair in pairs])

    def test_sizes_add_up(self):
        pairs = sides.pair([guest('a', 4), guest('b', 4)])
        self.assertEqual(sizing.Machine(8, 8192, 2), sides.whole(pairs))
        self.assertEqual('2x4', sides.instances(pairs))

    def test_guests_that_differ_have_no_common_shape(self):
        self.assertEqual('', sides.instances(sides.pair(
            [guest('a', 4), guest('b', 8)])))

    def test_a_host_without_a_name_in_the_cloud_names_itself(self):
        known, unknown = sides.pair(
            [guest('a', host='n17'), guest('b')], [native(), native()])
        self.assertEqual('n17', known.host)
        self.assertEqual('host-kernel', unknown.host)


class JobsInStepTest(unittest.TestCase):
    def test_without_a_native_target_there_is_one_arm(self):
        found = jobs(sides.pair([guest()]), 'stream')
        self.assertEqual([record.Side.GUEST], list(found))

    def test_each_guest_has_a_native_copy_of_its_size_on_its_cpus(self):
        pairs = sides.pair(
            [guest('a', 2, frozenset({0, 1})),
             guest('b', 4, frozenset({4, 5, 6, 7}))],
            [native(), native()])
        found = jobs(pairs, 'stream')
        guests, natives = (found[record.Side.GUEST], found[record.Side.NATIVE])
        self.assertEqual(['2', '4'],
                         [job.run.values['threads'] for job in guests])
        self.assertEqual([job.run for job in guests],
                         [job.run for job in natives])
        self.assertEqual([numactl('0-1'), numactl('4-7')],
                         [job.command[:4] for job in natives])
        self.assertEqual(['a', 'b'], [job.label for job in natives])
        self.assertNotIn('numactl', guests[0].command)

    def test_without_known_cpus_the_native_copy_is_not_confined(self):
        found = jobs(sides.pair([guest(host_cpus=None)], [native()]), 'stream')
        (job,) = found[record.Side.NATIVE]
        self.assertEqual((), job.target.prefix)


class JobsThatSpanTest(unittest.TestCase):
    def pairs(self, natives):
        return sides.pair(
            [guest('a', 4, frozenset(range(4))),
             guest('b', 8, frozenset(range(8, 16)))], natives)

    def test_one_job_has_the_ranks_of_all_guests(self):
        found = jobs(self.pairs([]), 'npb-ep/mpi', 'npb_mpi=/opt', 'ranks=6')
        (job,) = found[record.Side.GUEST]
        self.assertIn('--host a-kernel:2,b.net:4', ' '.join(job.command))
        self.assertEqual(['a', 'b'], [target.label for target in job.targets])

    def test_one_host_has_all_ranks_on_the_cpus_of_all_guests(self):
        found = jobs(self.pairs([native(), native()]),
                     'npb-ep/mpi', 'npb_mpi=/opt')
        (job,) = found[record.Side.NATIVE]
        self.assertEqual((), job.others)
        self.assertNotIn('--host', job.command)
        self.assertEqual(numactl('0-3,8-15'), job.command[:4])
        self.assertTrue(job.binds_ranks)
        self.assertFalse(found[record.Side.GUEST][0].binds_ranks)

    def test_two_hosts_are_spanned_as_the_guests_are(self):
        found = jobs(self.pairs([native('x'), native('y')]),
                     'npb-ep/mpi', 'npb_mpi=/opt', 'ranks=6')
        (job,) = found[record.Side.NATIVE]
        self.assertIn('--host x-kernel:2,y.net:4', ' '.join(job.command))
        self.assertEqual([frozenset(range(4)), frozenset(range(8, 16))],
                         [target.cpus for target in job.targets])

    def test_cpus_of_one_guest_that_are_unknown_confine_none(self):
        pairs = sides.pair(
            [guest('a'), guest('b', host_cpus=None)], [native(), native()])
        (job,) = jobs(pairs, 'npb-ep/mpi', 'npb_mpi=/opt')[record.Side.NATIVE]
        self.assertEqual(frozenset(), job.target.cpus)
        self.assertFalse(job.binds_ranks)

    def test_fewer_ranks_than_guests_are_refused(self):
        with self.assertRaisesRegex(exception.InvalidInput, 'span 2'):
            jobs(self.pairs([]), 'npb-ep/mpi', 'npb_mpi=/opt', 'ranks=1')

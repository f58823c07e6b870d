# SPDX-License-Identifier: Apache-2.0

import dataclasses
import unittest

from hpcvirt import exception
from hpcvirt.bench.analysis import boots
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import record
from hpcvirt.bench.run import plan
from hpcvirt.bench.run import run_request
from hpcvirt.bench.run import sides
from tests.builders import targets

COMPARE = record.Purpose.COMPARE


class Rebooter:
    def reboot(self):
        raise AssertionError('a plan reboots nothing')


def plan_guest(**known):
    return targets.guest(host='n17', flavor='hpc.4c', rebooter=Rebooter(),
                         **known)


def make(names=('stream',), guests=None, natives=None, settings=(), **more):
    more.setdefault('purpose', COMPARE)
    more.setdefault('pair_count', 10)
    pairs = sides.pair(guests or [plan_guest()], natives or [targets.native()])
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

    def test_the_machines_of_both_sides_are_listed_once(self):
        two = make(['stream', 'netpipe'], guests=[
            plan_guest(), targets.guest('vm2')],
            natives=[targets.native()] * 2)
        self.assertEqual(['host', 'vm', 'vm2'],
                         [target.place.name for target in two.targets])

    def test_native_jobs_come_first(self):
        (run,) = make().runs
        self.assertEqual(['host', 'vm'],
                         [job.target.place.name for job in run.all_jobs])

    def test_hosts_are_counted_once_in_the_order_of_the_guests(self):
        guests = [targets.guest(name, host=host) for name, host in
                  (('a', 'n18'), ('b', 'n17'), ('c', 'n18'))]
        (run,) = make(guests=guests, natives=[targets.native()] * 3).runs
        self.assertEqual('n18, n17', run.run.host)

    def test_the_shape_is_the_flavor_of_one_guest_or_the_count_of_many(self):
        self.assertEqual('hpc.4c', make().runs[0].run.shape)
        two = make(guests=[plan_guest(), plan_guest()],
                   natives=[targets.native()] * 2)
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
        more.setdefault('settings', ['osu=/opt/osu'])
        found = make(names, pair_count=None, **more).runs
        self.assertEqual(1, len({each.run.planned_pairs for each in found}))
        return found[0].run

    def test_10_pairs_are_usual_and_decide_a_few_figures(self):
        self.assertEqual(10, self.count(['stream']).planned_pairs)
        self.assertEqual(10, self.count(['stream'] * 5).planned_pairs)

    def test_many_figures_get_as_many_boots_as_can_decide(self):
        run = self.count(['osu-latency'])
        self.assertEqual(22, run.planned_figures)
        self.assertEqual(13, len(boots.sizes(run)))
        self.assertEqual(16, run.planned_pairs)
        self.assertEqual(5, run.planned_controls)

    def test_a_bound_of_a_study_gets_16_pairs(self):
        for guests in ([targets.guest(host='n17')], None):
            more = {'guests': guests} if guests else {}
            self.assertEqual(16, self.count(['hpl'], settings=[
                'hpl=/opt/hpl'], **more).planned_pairs)

    def test_a_nearer_bound_gets_more_pairs(self):
        for ratio, pairs in ((0.95, 10), (0.99, 18), (0.98, 10)):
            self.assertEqual(pairs, self.count(['stream'], bounds={
                'triad_mb_s': judgement.Bound(ratio)}).planned_pairs)

    def test_a_bound_that_needs_too_many_is_refused(self):
        for ratio, text in ((0.995, 'need 72 pairs; ask for 72 pairs'),
                            (1.0, 'not even 200 pairs')):
            with self.assertRaisesRegex(exception.InvalidInput, text):
                self.count(['stream'], bounds={
                    'triad_mb_s': judgement.Bound(ratio)})

    def test_the_figures_of_all_runs_are_judged_together(self):
        for pairs, names in ((11, ['stream'] * 6), (10, ['stream'] * 5)):
            self.assertEqual(pairs, self.count(names).planned_pairs)

    def test_figures_of_further_plans_need_more_boots(self):
        (run,) = (each.run for each in make(figures=4).runs)
        self.assertEqual((4, 7), (run.planned_figures, len(boots.sizes(run))))

    def test_bounds_of_other_benchmarks_are_no_figures(self):
        runs = make(['stream', 'netpipe'], bounds={
            'triad_mb_s': judgement.Bound(0.9),
            'latency_us[1]': judgement.Bound(1.1)}).runs
        self.assertEqual(make(['stream', 'netpipe']).runs[0].run
                         .planned_figures, runs[0].run.planned_figures)

    def test_smaller_messages_are_fewer_figures(self):
        (planned,) = make(['osu-latency'], settings=[
            'osu=/opt/osu', 'max_size=64']).runs
        self.assertEqual(7, planned.run.planned_figures)


class LaunchesTest(unittest.TestCase):
    def test_native_against_native_has_no_state(self):
        self.assertIsNone(make(purpose=record.Purpose.AA).runs[0].run.launch)
        with self.assertRaisesRegex(exception.InvalidInput,
                                    'launch cold.*the guest itself'):
            make(purpose=record.Purpose.AA, launch='cold')

    def test_a_cold_guest_must_be_one_that_can_be_rebooted(self):
        machine = targets.guest('ssh://vm')
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
            make(guests=[targets.guest('vm2', host='n17', flavor='hpc.4c')]),
            make(natives=[targets.native('other')])]
        prints = [other.fingerprint for other in others]
        self.assertEqual(len(prints), len(set(prints)))
        self.assertNotIn(make().fingerprint, prints)

# SPDX-License-Identifier: Apache-2.0

import dataclasses
import unittest

from hpcvirt import exception
from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import record
from hpcvirt.bench.run import decidable
from hpcvirt.bench.run import plan
from hpcvirt.bench.run import run_request
from hpcvirt.bench.run import sides
from tests.builders import targets

COMPARE = record.Purpose.COMPARE
ADVICE = decidable.Advice('give {} pairs', 'give a bound')


class Rebooter:
    def reboot(self):
        raise AssertionError('a plan reboots nothing')


def plan_guest(**known):
    return targets.guest(host='n17', flavor='hpc.4c', rebooter=Rebooter(),
                         **known)


def ask(names, settings=()):
    return run_request.find(names, run_request.read_settings(
        ['source=/opt/stream.c', 'hpl=/opt/hpl', 'osu=/opt/osu', *settings],
        '--set'), record.Launch.WARM)


def make(names=('stream',), guests=None, **more):
    more.setdefault('purpose', COMPARE)
    pairs = sides.pair(guests or [plan_guest()], [targets.native()] * len(
        guests or '1'))
    return [planned.run
            for planned in plan.make(ask(names), pairs, **more).runs]


class CheckTest(unittest.TestCase):
    """A plan that no guest can pass is refused before it begins."""

    def check(self, **more):
        decidable.check(make(**more), ADVICE)

    def refused(self, said, **more):
        with self.assertRaisesRegex(exception.InvalidInput, said):
            self.check(**more)

    def test_a_usual_plan_begins(self):
        self.check(pair_count=10)
        self.check(pair_count=1, purpose=record.Purpose.AA)

    def test_too_few_pairs_are_refused(self):
        for pairs in (1, 9):
            self.refused(f'{pairs} pairs pass no guest; give 10 pairs',
                         pair_count=pairs)

    def test_fewer_samples_than_a_class_needs_are_refused(self):
        unpaired = {'purpose': record.Purpose.UNPAIRED, 'relaunch': True}
        self.refused('4 samples pass no host; give 5 pairs', pair_count=4,
                     **unpaired)
        self.check(pair_count=5, **unpaired)

    def test_boots_count_and_not_pairs(self):
        self.refused('15 pairs pass no guest; give 16', pair_count=15,
                     names=['hpl'])
        self.check(pair_count=16, names=['hpl'])
        self.check(pair_count=10, names=['hpl'], of_launch=True)

    def test_a_case_without_a_launch_mode_is_measured_in_several_boots(self):
        (wanted,) = ask(['stream'])
        made = plan.make(
            [dataclasses.replace(wanted, launch=None)],
            sides.pair([plan_guest()], [targets.native()]), COMPARE, 10)
        self.assertTrue(made.runs[0].run.relaunched)
        decidable.check([made.runs[0].run], ADVICE)

    def test_one_boot_says_nothing_unless_it_is_asked_about(self):
        machine = [targets.guest('ssh://vm')]
        self.refused('cannot be rebooted.*--this-launch', pair_count=10,
                     guests=machine)
        self.check(pair_count=10, guests=machine, of_launch=True)

    def test_a_figure_without_a_bound_is_refused(self):
        other = {'triad_mb_s': judgement.Bound(0.9)}
        for bounds in ({}, other):
            self.refused('osu-alltoall: no figure has a bound; give a bound',
                         names=['stream', 'osu-alltoall'], pair_count=10,
                         bounds=bounds)
        self.check(names=['osu-alltoall'], pair_count=10,
                   bounds={'latency_us[8]': judgement.Bound(1.1)})


class ForeseeTest(unittest.TestCase):
    """Before instances exist, what decides is as in the plan for them."""

    def test_what_decides_is_as_in_the_plan(self):
        for names, launch in (
                (['stream'], 'warm'), (['stream', 'netpipe'], 'cold'),
                (['hpl', 'osu-latency', 'hpcc'], 'warm'),
                (['osu-allreduce'], 'warm')):
            for count in (1, 2):
                guests = [plan_guest() for _ in range(count)]
                bounds = {'triad_mb_s': judgement.Bound(0.9)}
                made = make(names, guests, pair_count=12, launch=launch,
                            bounds=bounds)
                foreseen = decidable.foresee(
                    [dataclasses.replace(wanted, launch=record.Launch(launch))
                     for wanted in ask(names)],
                    [decidable.Instances('hpc.4c', 4, ['n17'] * count)],
                    COMPARE, 12, bounds)
                for one, other in zip(made, foreseen, strict=True):
                    self.assertEqual(plan.find_goals(one),
                                     plan.find_goals(other))
                    for name in ('label', 'host', 'planned_pairs',
                                 'planned_figures', 'relaunched'):
                        self.assertEqual(getattr(one, name),
                                         getattr(other, name), name)

    def test_smaller_messages_are_fewer_figures(self):
        for settings, figures in (((), 22), (['max_size=64'], 7)):
            (run,) = decidable.foresee(
                ask(['osu-latency'], settings),
                [decidable.Instances('f', 4, ['n17'])], COMPARE, 16)
            self.assertEqual(figures, run.planned_figures)

    def test_what_is_judged_together_counts_together(self):
        runs = decidable.foresee(
            ask(['hpcc']), [decidable.Instances(name, 4, ['n17'])
                            for name in ('a', 'b', 'c', 'd')], COMPARE, 16)
        self.assertEqual([12] * 4, [run.planned_figures for run in runs])


class UnboundedTest(unittest.TestCase):
    def test_benchmarks_without_a_bound_are_found(self):
        found = {name for name in catalogue.names()
                 if decidable.find_unbounded([catalogue.get(name)], ())}
        self.assertLessEqual({'fio', 'ior', 'hpcg', 'site-script'}, found)
        self.assertNotIn('hpcc', found)
        definitions = [catalogue.get('ior'), catalogue.get('osu-alltoall')]
        self.assertEqual(['osu-alltoall'], decidable.find_unbounded(
            definitions, ['read_mib_s']))
        self.assertEqual([], decidable.find_unbounded(
            definitions, ['read_mib_s', 'latency_us[8]']))

    def test_each_is_named_once(self):
        decidable.check_bounded([], ADVICE)
        with self.assertRaisesRegex(exception.InvalidInput,
                                    '^ior: no figure has a bound; give'):
            decidable.check_bounded(['ior', 'ior'], ADVICE)

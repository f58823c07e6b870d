# SPDX-License-Identifier: Apache-2.0

import dataclasses
import math
import random

import testtools

from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import record
from hpcvirt.bench.report import next_step
from hpcvirt.bench.report import text
from tests.builders import runs

#: Ten values that vary by about 1 %.
NATIVE = (100, 101, 99, 100.5, 99.5, 100.2, 99.8, 101.2, 98.8, 100.1)
WOBBLE = (1, 1.004, 0.996, 1.002, 0.998)


def guest(ratio):
    return [value * ratio * WOBBLE[number % 5]
            for number, value in enumerate(NATIVE)]


def steps(*some):
    return next_step.find_steps(record.Result(some, verdict.judge(some)))


class TestNextStep(testtools.TestCase):
    """The next step for each kind of figure that is not decided."""

    def only(self, *some):
        (step, figures), = steps(*some).items()
        self.assertEqual(['mops_total'], [figure.metric for figure in figures])
        return step

    def test_a_decision_needs_none(self):
        for ratio in (0.98, 0.90):
            self.assertEqual({}, steps(runs.run(NATIVE, guest(ratio))))
        self.assertEqual({}, next_step.find_steps(record.Result(())))

    def test_an_open_interval_needs_more_pairs(self):
        self.assertRegex(
            self.only(runs.run(NATIVE, guest(0.958))),
            r'^More pairs: about \d+ decide .*"hpcvirt bench run npb-cg/mpi '
            r'--where TARGET --native TARGET --pairs \d+"')
        step, = steps(runs.run(NATIVE, guest(0.958), study='S2',
                               case='numa-socket'))
        self.assertRegex(step, 'run" with the document of S2/numa-socket '
                         'and "pairs: [0-9]+"')

    def test_a_known_subject_needs_pairs_besides_those_it_has(self):
        self.assertRegex(self.only(runs.run(
            NATIVE, guest(0.958), subject='s',
            targets=('ssh://node7', 'server:a b'))),
            r"about (\d+) more decide .* --where 'server:a b' --native "
            r'ssh://node7 --pairs \1", .* adds them')

    def test_a_guest_that_was_judged_as_it_runs_is_judged_so_again(self):
        self.assertIn('--native TARGET --this-launch --pairs',
                      self.only(runs.run(NATIVE, guest(0.958),
                                         of_launch=True)))

    def test_a_guest_at_its_bound_needs_less_noise(self):
        step = self.only(runs.run(NATIVE, guest(0.95)))
        self.assertIn('Less noise', step)

    def test_a_better_guest_with_noise_needs_less_of_it(self):
        noise = (-3, -1, 0.2, 0.9, 3, -2.5, 2.7, -0.4, 1.2, 0.1)
        step = self.only(runs.run(
            NATIVE, [1.03 * value * math.exp(each)
                     for value, each in zip(NATIVE, noise, strict=True)],
            0.847))
        self.assertIn('200 pairs would hardly decide with this noise', step)

    def test_a_guest_that_is_near_its_bound_needs_another_one(self):
        step = self.only(runs.run(NATIVE, guest(0.9532), 0.95))
        self.assertIn('200 pairs would hardly decide so near to this one',
                      step)
        self.assertIn('--bound METRIC=RATIO', step)

    def test_a_straggler_needs_a_cause_and_not_less_noise(self):
        run = runs.run(NATIVE, guest(0.95))
        found = verdict.judge([run])
        (judged,) = found.judgements
        judged = dataclasses.replace(judged, tail=judgement.Tail(
            judgement.VerdictResult.INCONCLUSIVE, 0, 1, 0.5))
        (step,) = next_step.find_steps(record.Result(
            (run,), dataclasses.replace(found, judgements=(judged,))))
        self.assertIn('The slow runs: find out what made 1 run of the guest',
                      step)

    def test_too_few_pairs_are_too_few(self):
        self.assertIn('without --pairs', self.only(
            runs.run(NATIVE[:3], guest(1)[:3])))
        self.assertIn('continues', self.only(
            runs.run(NATIVE[:8], guest(1)[:8], planned_pairs=10)))

    def test_one_launch_needs_more(self):
        run = runs.run(NATIVE, guest(0.98))
        run = dataclasses.replace(run, samples=tuple(
            dataclasses.replace(sample, launch_id='a')
            for sample in run.samples))
        self.assertIn('--where server:NAME', self.only(run))
        for more in ({'relaunched': True}, {'launch': record.Launch.COLD}):
            step, = steps(dataclasses.replace(run, **more))
            self.assertIn('", with the same settings as before, adds', step)

    def test_a_coarse_clock_needs_longer_runs(self):
        ticks = [0.20, 0.21] * 5
        self.assertIn('--set class=...', self.only(runs.run(
            ticks, [0.21, 0.20, 0.20, 0.21, 0.22] * 2, 1.05,
            direction=runs.DOWN)))

    def test_first_losses_that_differ_need_more_warm_ups(self):
        dice = random.Random(2)
        losses = [0.09, 0.07, 0.05, *[0.0] * 17]
        native, slow = ([100 * math.exp(dice.gauss(0, 0.004) - turn * loss)
                         for loss in losses] for turn in (0, 1))
        self.assertIn('--warm-ups 5", with the same settings', self.only(
            runs.run(native, slow, planned_warm_ups=2)))

    def test_a_noisy_machine_needs_quiet(self):
        noisy = [100, 140, 70, 120, 80, 130, 75, 110, 90, 100]
        machine = runs.run(noisy, noisy[::-1], id='m',
                           purpose=record.Purpose.AA)
        for some in ((runs.run(NATIVE, guest(0.98)), machine),
                     (machine, runs.run(NATIVE, guest(0.98)))):
            self.assertIn('quieter machine', self.only(*some))

    def test_an_implausible_gain_needs_a_baseline(self):
        self.assertIn('--native-cpus', self.only(runs.run(NATIVE, guest(1.5))))

    def test_a_failed_sample_is_looked_at(self):
        run = runs.run(NATIVE, [*guest(1)[:9], runs.bad()])
        self.assertIn('the outputs of run r,', self.only(run))
        raw = record.RawOutput('stdout', 'r/0019/stdout', '', 1)
        run = dataclasses.replace(run, samples=tuple(
            dataclasses.replace(sample, outputs=(raw,))
            for sample in run.samples))
        self.assertIn('look at r/0019,', self.only(run))

    def test_copies_are_measured_again(self):
        self.assertIn('Measure again', self.only(runs.run(NATIVE, NATIVE)))

    def test_every_undecided_word_has_one(self):
        for word in (judgement.VerdictResult.INCONCLUSIVE,
                     judgement.VerdictResult.INVALID,
                     judgement.VerdictResult.COMPARED):
            for remedy in judgement.Remedy:
                run = runs.run(NATIVE, guest(0.98))
                judged, = verdict.judge([run]).judgements
                result = record.Result((run,), judgement.Verdict(
                    word, '', (dataclasses.replace(
                        judged, result=word, remedy=remedy),), ''))
                self.assertEqual(1, len(next_step.find_steps(result)))

    def test_the_table_names_it(self):
        run = runs.run(NATIVE[:3], guest(1)[:3])
        self.assertIn(
            'Next, for npb-cg mpi mops_total: More pairs: "hpcvirt bench run '
            'npb-cg/mpi --where TARGET --native TARGET" without --pairs.',
            ' '.join(text.table(record.Result(
                (run,), verdict.judge([run]))).split()))

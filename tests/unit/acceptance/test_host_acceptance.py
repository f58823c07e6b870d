# SPDX-License-Identifier: Apache-2.0

"""The acceptance of a host in a world that stands in for a cloud."""

import unittest

import fixtures
import testtools

from hpcvirt import exception
from hpcvirt.acceptance import acceptance
from hpcvirt.acceptance import class_document
from hpcvirt.acceptance import class_verdict
from hpcvirt.acceptance import host_acceptance
from hpcvirt.acceptance import measurement
from hpcvirt.acceptance import records
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import record
from hpcvirt.model import quarantine
from tests.builders import accepted

Word = judgement.VerdictResult


class FiguresTest(unittest.TestCase):
    def test_what_operators_check_is_judged(self):
        self.assertEqual({
            'StarSTREAM_Triad', 'StarDGEMM_Gflops', 'HPL_Tflops',
            'StarRandomAccess_GUPs', 'RandomlyOrderedRingLatency_usec',
            'write_mb_s', 'read_latency_us'}, {
                name for benchmark in class_document.GATE_BENCHMARKS
                for name in class_verdict.list_figures(benchmark)})

    def test_the_matrix_fits_and_is_equal_in_a_class(self):
        for gib in (2, 4, 8, 16, 48, 64, 96, 128, 160, 192, 256, 320, 384, 512,
                    768, 1024, 1536, 2048, 4096):
            # What is reserved for the kernel and the firmware varies.
            orders = {host_acceptance.find_order(int(1024 * gib * part))
                      for part in (0.955, 0.965, 0.975, 0.985)}
            self.assertEqual(1, len(orders), gib)
            order = orders.pop()
            self.assertEqual(0, order % 80)
            part = order ** 2 * 8 / (0.97 * gib * 2 ** 30)
            self.assertTrue(0.0145 < part < 0.065, (gib, part))
        self.assertEqual(80, host_acceptance.find_order(1))


class AcceptanceCase(testtools.TestCase):
    """An acceptance in a world of its own."""

    def setUp(self):
        super().setUp()
        # No test loses its machine.
        self.useFixture(fixtures.MonkeyPatch('os.fsync', lambda _: None))
        self.begin()

    def begin(self):
        """Begin with a host that nobody knows."""
        self.world = accepted.World(self.useFixture(fixtures.TempDir()).path)
        self.lines = []
        for name, new in (
                ('saved_document.save', self.world.write),
                ('acceptance.measurement.execute', self.world.execute),
                ('bench.run.sampler.read_clock', self.world.read_clock)):
            self.useFixture(fixtures.MonkeyPatch(f'hpcvirt.{name}', new))

    def accept(self, asked=None, **more):
        """Start a process that accepts the host."""
        self.world.actions = []
        asked = asked or accepted.make_acceptance()
        return accepted.make_process(self.world, asked, self.lines.append,
                                     **more).accept(asked)

    def ended(self, result, asked=None, **more):
        """Accept the host; check the result and that nothing is left."""
        found = self.accept(asked, **more)
        self.assertIs(result, found.result, found.reason)
        self.assertEqual([], self.world.left())
        self.assertEqual([], self.lines)
        self.assertEqual(found, self.records().read()[-1])
        return found

    def records(self):
        return records.Records(self.world.data)

    def own_traits(self):
        return self.world.traits & set(acceptance.TRAITS)

    def assert_held(self, reason):
        """Check that the host stays in quarantine, and why."""
        why, since = self.world.holds[quarantine.ACCEPT]
        self.assertIn(reason, why)
        self.assertEqual(self.records().read()[-1].ended_at, since)


class HostAcceptanceTest(AcceptanceCase):
    def test_a_host_that_passes_gets_its_traits_and_is_released(self):
        found = self.ended(Word.PASS)
        self.assertEqual(set(acceptance.TRAITS), self.own_traits())
        self.assertEqual(self.own_traits(), set(found.traits))
        self.assertIn('HW_CPU_X86_VMX', self.world.traits)
        self.assertEqual({}, self.world.holds)
        self.assertEqual(['hpc.8c'], self.world.measured)

    def test_the_host_is_held_before_anything_is_started(self):
        self.ended(Word.PASS)
        steps = [step for step in self.world.actions
                 if step not in ('write', 'boot')]
        self.assertEqual(['hold', 'check'], steps[:2])
        self.assertEqual(['clear', 'traits', 'release'], steps[-3:])

    def test_a_host_that_fails_loses_the_traits_of_an_earlier_acceptance(self):
        self.ended(Word.PASS)
        self.world.speed = 0.5
        found = self.ended(Word.FAIL, accepted.make_acceptance(
            repaired='the DIMM in slot 3'))
        self.assertEqual((), found.traits)
        self.assertEqual({'HW_CPU_X86_VMX'}, self.world.traits)
        self.assert_held('acceptance: FAIL, ')

    def test_a_host_that_is_not_decided_keeps_its_traits_and_is_held(self):
        self.world.traits.add(acceptance.AUDITED)
        found = self.ended(Word.INCONCLUSIVE,
                           accepted.make_acceptance(native=''))
        self.assertIn('0 peer hosts are known', found.reason)
        self.assertEqual({acceptance.AUDITED}, self.own_traits())
        self.assert_held(f'acceptance: INCONCLUSIVE, {found.reason}')

    def test_what_others_hold_stays_held(self):
        self.world.holds['operator'] = ('new', 'now')
        self.ended(Word.PASS)
        self.assertEqual({'operator'}, set(self.world.holds))

    def test_a_host_is_compared_with_its_class_without_native(self):
        asked = accepted.make_acceptance(native='')
        self.world.add_class('hpc.8c', record.Launch.WARM)
        self.ended(Word.PASS, asked)
        self.assertEqual({acceptance.AUDITED}, self.own_traits())
        self.world.own_speed = 0.8
        self.ended(Word.FAIL, asked)
        self.assertEqual(set(), self.own_traits())

    def test_hosts_that_failed_are_no_part_of_a_class(self):
        self.world.add_class('hpc.8c', record.Launch.WARM)
        self.records().write(accepted.make_acceptance(
            host='peer0', began_at='2026-11-01T00:00:00+00:00', ended_at='x',
            result=Word.FAIL))
        found = self.ended(Word.INCONCLUSIVE,
                           accepted.make_acceptance(native=''))
        self.assertIn('4 peer hosts are known', found.reason)

    def test_measurements_before_a_repair_do_not_count(self):
        self.world.speed = 0.5
        self.ended(Word.FAIL)
        self.world.speed = 1.0
        found = self.ended(Word.INCONCLUSIVE)
        self.assertEqual(20, found.verdict.judgements[0].pairs)
        self.assertEqual(set(), self.own_traits())
        repaired = accepted.make_acceptance(repaired='the DIMM in slot 3')
        found = self.ended(Word.PASS, repaired)
        self.assertEqual(10, found.verdict.judgements[0].pairs)
        found = self.ended(Word.PASS, repaired)
        self.assertEqual(20, found.verdict.judgements[0].pairs)

    def test_attempts_that_are_too_old_to_be_known_end_with_a_repair(self):
        self.world.store.omitted = 6
        repaired = accepted.make_acceptance(repaired='the DIMM in slot 3')
        for asked, expected in (
                (accepted.make_acceptance(), 'eighth attempt'),
                (repaired, 'second attempt')):
            self.ended(Word.PASS, asked)
            found = self.ended(Word.PASS, asked)
            remark, = found.verdict.judgements[0].remarks
            self.assertTrue(remark.startswith(expected), remark)

    def test_each_flavor_has_the_host_for_itself(self):
        found = self.ended(Word.PASS, accepted.make_acceptance(
            ('hpc.8c', 'hpc.16c')))
        self.assertEqual(['hpc.8c', 'hpc.16c'], self.world.measured)
        self.assertEqual(2, len(found.verdict.judgements))
        self.assertEqual(2, len({part.result for part in found.parts}))
        # The instances of a flavor go as soon as it is measured.
        self.assertEqual(2, self.world.actions.count('stop'))
        self.assertNotIn('delete', self.world.actions)

    def test_a_host_that_is_in_use_is_left_alone(self):
        self.world.foreign = 1
        self.assertRaisesRegex(exception.InvalidInput, '1 instance of others',
                               self.accept)
        self.assertEqual(['write', 'hold', 'check'], self.world.actions)
        self.assertEqual([], self.world.measured)
        self.world.foreign = 0
        self.ended(Word.PASS)

    def test_instances_that_do_not_start_decide_nothing(self):
        self.world.fails = (self.count_steps_to('boot') + 1,
                            accepted.NotStartedError('no huge pages'))
        self.begin_again()
        found = self.ended(Word.INCONCLUSIVE)
        self.assertEqual('no huge pages', found.reason)
        self.assertEqual([], self.world.measured)

    def count_steps_to(self, name):
        """Count the steps before the first one of a name."""
        self.ended(Word.PASS)
        return self.world.actions.index(name)

    def begin_again(self):
        """Begin again in a new world that fails as this one should."""
        fails = self.world.fails
        self.begin()
        self.world.fails = fails

    def test_the_time_is_limited(self):
        found = self.ended(Word.INCONCLUSIVE, time_limit_min=0)
        self.assertEqual('the time limit of 0 minutes was reached while '
                         'hpc.8c was measured', found.reason)
        self.assert_held('the time limit of 0 minutes')

    def test_what_was_measured_before_the_time_limit_is_judged(self):
        def stop():
            raise measurement.TimeUp('the time limit was reached')
        self.world.speed, self.world.interrupt = 0.5, stop
        found = self.ended(Word.INCONCLUSIVE)
        self.assertEqual(1, len(found.verdict.judgements))
        self.assertIn('the time limit of 60 minutes', found.reason)

    def test_what_cannot_be_removed_is_said_and_the_key_is_kept(self):
        steps = self.count_steps_to('traits') - 1
        self.begin()
        self.world.fails = (steps, exception.Unreachable('no Nova'))
        self.world.speed = 0.5
        self.assertIs(Word.FAIL, self.accept().result)
        line, = self.lines
        self.assertEqual('hpcvirt: not everything was removed: no Nova; '
                         'repeat the command to remove it', line)
        self.assertIn('n1.key', self.world.left())
        self.lines.clear()
        self.ended(Word.FAIL)


class ResumptionTest(AcceptanceCase):
    ASKED = accepted.make_acceptance(('hpc.8c', 'hpc.16c'))

    def accept(self, asked=None, **more):
        return super().accept(asked or self.ASKED, gate=True, **more)

    def begin(self):
        super().begin()
        self.world.add_class('host', None)
        self.world.traits.add(acceptance.OVERHEAD[10])

    def outcome(self):
        """What is known and left after an acceptance."""
        found = self.records().read()[-1]
        return (found.result, found.reason, found.traits, found.gate.result,
                found.machine,
                self.world.traits, set(self.world.holds), self.world.left())

    def expect_measured(self, whole):
        """What will have been measured if the acceptance is repeated now.

        Only what ended and was not recorded is measured again.

        :param whole: what is measured without an interruption
        """
        before = list(self.world.measured)
        is_lost = 'measured' in self.world.actions[-2:] and (
            self.world.actions[-1] != 'write')
        return before + whole[len(before) - is_lost:]

    def test_a_process_killed_at_any_step_is_continued(self):
        self.assert_continued(2)

    def test_periodic_of_any_result_it_is_continued_from_any_step(self):
        self.assert_continued(1)

    def assert_continued(self, step):
        """Kill a process at every step-th step, by turns with the result."""
        for first, speed, result in ((0, 1.0, Word.PASS),
                                     (step - 1, 0.5, Word.FAIL)):
            self.begin()
            self.world.speed = speed
            self.ended(result)
            whole, steps = self.outcome(), len(self.world.actions)
            measured = self.world.measured
            self.assertGreater(steps, 20)
            for killed_at in range(first, steps, step):
                self.begin()
                self.world.speed = speed
                self.world.fails = (killed_at, accepted.KilledError())
                self.assertRaises(accepted.KilledError, self.accept)
                self.world.fails = None
                expected = self.expect_measured(measured)
                self.ended(result)
                self.assertEqual(whole, self.outcome(), killed_at)
                self.assertEqual(expected, self.world.measured, killed_at)
                self.assertEqual(1, len(self.records().read()))

    def test_an_outage_at_a_step_loses_nothing(self):
        self.assert_nothing_is_lost(3)

    def test_periodic_an_outage_at_any_step_loses_nothing(self):
        self.assert_nothing_is_lost(1)

    def assert_nothing_is_lost(self, step):
        self.ended(Word.PASS)
        whole, steps = self.outcome(), len(self.world.actions)
        measured = self.world.measured
        for fails_at in range(0, steps, step):
            self.begin()
            self.world.fails = (fails_at, exception.Unreachable('no Nova'))
            try:
                self.accept()
            except exception.Unreachable as exc:
                self.assertEqual('no Nova', str(exc))
            else:
                # Only what cannot be removed does not end the command.
                self.assertEqual(1, len(self.lines))
                continue
            if fails_at:
                self.assertEqual('', self.records().read()[-1].ended_at)
            expected = self.expect_measured(measured)
            self.ended(Word.PASS)
            self.assertEqual(whole, self.outcome(), fails_at)
            self.assertEqual(expected, self.world.measured, fails_at)

    def test_a_user_who_interrupts_leaves_nothing(self):
        for step in ('measured', 'boot', 'fill'):
            self.begin()
            self.ended(Word.PASS)
            # The step of the last flavor.
            steps = len(self.world.actions) - 1 - (
                self.world.actions[::-1].index(step))
            self.begin()
            self.world.fails = (steps, KeyboardInterrupt())
            self.assertRaises(KeyboardInterrupt, self.accept)
            self.assertEqual([], self.world.left(), step)
            self.assertEqual('is being accepted',
                             self.world.holds[quarantine.ACCEPT][0])

    def test_another_request_does_not_continue(self):
        self.world.fails = (20, accepted.KilledError())
        self.assertRaises(accepted.KilledError, self.accept)
        self.world.fails = None
        self.ended(Word.PASS, accepted.make_acceptance())
        self.assertEqual(['gate', 'hpc.8c', 'gate', 'hpc.8c'],
                         self.world.measured)


class GateTest(AcceptanceCase):
    def setUp(self):
        super().setUp()
        self.world.add_class('host', None)

    def test_a_gate_that_passes_is_followed_by_the_instances(self):
        found = self.ended(Word.PASS, gate=True)
        self.assertEqual(['gate', 'hpc.8c'], self.world.measured)
        self.assertIs(Word.PASS, found.gate.result)
        self.assertEqual({'PCIe links': '1 x class 02 16 GT/s x16'},
                         found.machine)

    def test_a_gate_that_fails_ends_the_acceptance(self):
        self.world.traits.update(acceptance.TRAITS)
        self.world.own_speed = 0.7
        found = self.ended(Word.FAIL, gate=True)
        self.assertEqual(['gate'], self.world.measured)
        self.assertEqual(set(), self.own_traits())
        self.assert_held('acceptance: FAIL, stream openmp host triad_mb_s: '
                         'the host is slower than its class')
        self.assertIsNone(found.verdict)

    def test_a_link_that_is_narrow_fails_the_gate(self):
        self.world.files[accepted.WIDTH] = '8'
        found = self.ended(Word.FAIL, gate=True)
        self.assertIn('PCIe links: ', found.reason)
        self.assertEqual(['gate'], self.world.measured)

    def test_a_gate_of_an_unknown_class_does_not_end_the_acceptance(self):
        self.begin()
        found = self.ended(Word.PASS, gate=True)
        self.assertIs(Word.INCONCLUSIVE, found.gate.result)

    def test_guests_on_the_host_end_the_gate(self):
        self.world.instances['i0'] = 'hpc.8c'
        self.useFixture(fixtures.MonkeyPatch(
            'tests.builders.accepted.World.stop', lambda _: None))
        self.assertRaisesRegex(exception.InvalidInput,
                               'runs 1 guests; the gate needs the whole host',
                               self.accept, gate=True)

    def test_what_cannot_be_measured_is_named(self):
        def execute(*_):
            raise exception.NotInstalled('no gcc')
        self.useFixture(fixtures.MonkeyPatch(
            'hpcvirt.acceptance.measurement.execute', execute))
        found = self.ended(Word.PASS, gate=True)
        self.assertEqual(('stream: no gcc',), found.gate.unable)
        self.assertEqual('stream: no gcc', found.gate.reason)

    def test_only_the_gate_is_taken_without_a_cloud(self):
        for speed, result in ((1.0, Word.PASS), (0.7, Word.FAIL)):
            self.world.own_speed = speed
            asked = accepted.make_acceptance((), native='')
            found = accepted.make_gate(self.world).accept(asked)
            self.assertIs(result, found.result)
            self.assertEqual((), found.traits)
        self.assertEqual({}, self.world.holds)
        self.assertEqual(frozenset({'n1'}), self.records().refused())

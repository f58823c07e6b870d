# SPDX-License-Identifier: Apache-2.0

"""What a host gets from its verdict, and what a plan says that fills it."""

import dataclasses
import shlex

import testtools

from hpcvirt import exception
from hpcvirt.acceptance import acceptance
from hpcvirt.acceptance import report
from hpcvirt.audit import finding
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import outcome
from hpcvirt.flavors import plan_document
from hpcvirt.flavors import profile

Word = judgement.VerdictResult
UP, DOWN = outcome.Direction.UP, outcome.Direction.DOWN
BEGUN = acceptance.Acceptance(
    host='n1', request='r', began_at='2026-11-22T20:00:00+00:00',
    command='hpcvirt bench run a.yaml n1', native='ssh://n1',
    benchmarks=('hpcc',),
    parts=(acceptance.AcceptancePart('hpc.8c', 4, 'abc'),))

GOOD = acceptance.GateCheck('clock', True, '8 good', 'fast')
UNKNOWN = acceptance.GateCheck('disk errors', None, 'not reported', 'none')
BAD = acceptance.GateCheck('PCIe links', False, 'x8', 'x16')

PLAN = plan_document.PlanDocument(flavors=tuple(
    plan_document.FlavorSummary(
        name=name, vcpus=1, ram_mib=1, extra_specs={}, per_host=per_host)
    for name, per_host in (('a', {'n1': 4, 'n2': 0}),
                           ('b', {'n1': 1, 'n2': 1}))))


def figure(low, high, direction=UP, result=Word.PASS):
    return judgement.Judgement(
        'hpcc mpi 4x8', 'HPL_Tflops', 'Tflop/s', direction, result, None, 0.9,
        judgement.Interval((low + high) / 2, low, high), 10)


def verdict(*figures, result=Word.PASS, reason=None):
    return judgement.Verdict(result, reason, figures, 'by pairs')


def decided(*figures, begun=BEGUN, **more):
    return acceptance.decide(begun, verdict(*figures, **more), '', 'later')


def fault(severity):
    return finding.Finding('ksm', severity, 'KSM runs', 'no KSM', 'why',
                           ('Linux-Ksm',))


class DecisionTest(testtools.TestCase):
    def test_the_worse_end_of_the_worst_figure_is_the_overhead(self):
        cases = ((0.98, 1.01, UP, 1 / 0.98 - 1), (0.99, 1.04, DOWN, 0.04),
                 (1.01, 1.02, UP, 0.0))
        for low, high, direction, overhead in cases:
            self.assertAlmostEqual(overhead, decided(
                figure(low, high, direction)).overhead)
        self.assertAlmostEqual(0.04, decided(
            figure(0.99, 1.01), figure(0.99, 1.04, DOWN)).overhead)

    def test_a_host_has_every_trait_that_holds(self):
        names = list(acceptance.OVERHEAD.values())
        for high, count in ((1.02, 3), (1.03, 3), (1.031, 2), (1.05, 2),
                            (1.0501, 1), (1.1, 1), (1.101, 0)):
            self.assertEqual(tuple(names[3 - count:]), decided(
                figure(0.99, high, DOWN)).traits, high)

    def test_only_a_pass_gives_traits(self):
        sound = dataclasses.replace(BEGUN, audit=())
        for word in (Word.FAIL, Word.INCONCLUSIVE, Word.INVALID):
            found = decided(figure(0.99, 1.01), begun=sound, result=word,
                            reason='because')
            self.assertEqual((), found.traits)
            self.assertEqual('because', found.reason)
        self.assertIs(Word.INCONCLUSIVE, found.result)

    def test_a_host_is_audited_if_there_is_no_fault(self):
        for audit, expected in (
                (None, False), ((), True),
                ((fault(finding.Severity.NOTE),), True),
                *(((fault(severity),), False)
                  for severity in finding.FAULTS)):
            found = decided(figure(0.99, 1.01), begun=dataclasses.replace(
                BEGUN, audit=audit))
            self.assertEqual(expected, acceptance.AUDITED in found.traits)

    def test_a_class_shows_no_overhead(self):
        found = decided(figure(0.99, 1.01), begun=dataclasses.replace(
            BEGUN, native='', audit=()))
        self.assertEqual((None, (acceptance.AUDITED,)),
                         (found.overhead, found.traits))

    def test_a_figure_without_an_interval_gives_no_overhead(self):
        blank = dataclasses.replace(figure(1, 1), interval=None)
        self.assertIsNone(decided(figure(0.99, 1.01), blank).overhead)
        self.assertIsNone(decided().overhead)

    def test_what_was_not_measured_is_inconclusive(self):
        found = acceptance.decide(BEGUN, None, 'Nova started 0', 'later')
        self.assertEqual((Word.INCONCLUSIVE, 'Nova started 0', ()),
                         (found.result, found.reason, found.traits))

    def test_a_host_that_was_measured_in_part_does_not_pass(self):
        for word, expected, reason in (
                (Word.PASS, Word.INCONCLUSIVE, 'the time is over'),
                (Word.INVALID, Word.INCONCLUSIVE, 'the time is over'),
                (Word.FAIL, Word.FAIL, 'slow')):
            found = acceptance.decide(BEGUN, verdict(
                figure(0.99, 1.01), result=word, reason='slow'),
                'the time is over', 'later')
            self.assertEqual((expected, reason, ()),
                             (found.result, found.reason, found.traits))

    def test_flavors_of_a_profile_require_a_trait(self):
        specs = {f'trait:{name}': 'required' for name in acceptance.TRAITS}
        found = profile.build({'extra_specs': specs}, 'profile')
        self.assertEqual(specs, dict(found.extra_specs))


def gated(checks, word, *unable):
    found = None if word is None else verdict(
        result=word, reason=None if word is Word.PASS else 'because')
    return acceptance.decide_gate('ssh://n1', checks, found, ['r1'], unable)


class GateTest(testtools.TestCase):
    def test_the_word_is_that_of_the_worst(self):
        for checks, word, expected in (
                ([GOOD, UNKNOWN], Word.PASS, Word.PASS),
                ([GOOD], Word.FAIL, Word.FAIL),
                ([GOOD], Word.INCONCLUSIVE, Word.INCONCLUSIVE),
                ([GOOD], Word.INVALID, Word.INCONCLUSIVE),
                ([GOOD], None, Word.INCONCLUSIVE),
                ([GOOD, BAD], Word.PASS, Word.FAIL),
                ([BAD], None, Word.FAIL)):
            found = gated(checks, word)
            self.assertIs(expected, found.result)
            self.assertEqual(tuple(checks), found.checks)
        self.assertEqual('PCIe links: x8; expected x16', found.reason)

    def test_what_is_missing_is_inconclusive_unless_the_rest_fails(self):
        for word, expected, reason in (
                (Word.PASS, Word.INCONCLUSIVE, 'fio: no such program'),
                (None, Word.INCONCLUSIVE, 'fio: no such program'),
                (Word.FAIL, Word.FAIL, 'because')):
            found = gated([GOOD], word, 'fio: no such program')
            self.assertEqual((expected, reason), (found.result, found.reason))


class ReportTest(testtools.TestCase):
    def test_a_vendor_finds_what_it_needs(self):
        found = dataclasses.replace(
            decided(dataclasses.replace(
                figure(0.80, 0.84, result=Word.FAIL), native=1.25, guest=1.02,
                limit=0.9, reason='the loss is beyond the bound'),
                result=Word.FAIL, reason='HPL_Tflops: beyond'),
            machine={'vendor': 'Dell Inc.', 'firmware': '2.19.1'},
            audit=(fault(finding.Severity.WARNING),),
            repaired='the DIMM in slot 3')
        text = report.render(found, '/data')
        for words in ('FAIL: host n1 against ssh://n1', 'vendor: Dell Inc.',
                      'firmware: 2.19.1', '4 x hpc.8c', 'result abc', '1.25',
                      '0.820 [0.800, 0.840]', '>= 0.900', 'warning ksm',
                      'hpcvirt bench run a.yaml n1', 'below /data',
                      'the DIMM in slot 3'):
            self.assertIn(words, text)
        self.assertTrue(all(len(line) < 100 for line in text.splitlines()))

    def test_of_several_hosts_it_counts_the_words_that_may_be_false(self):
        self.assertNotIn('hosts', report.render(decided(), '/data', 1))
        for hosts, words in ((2, '0.1'), (40, '2'), (200, '10')):
            self.assertIn(
                f'one of {hosts} hosts that were judged, each by itself. If '
                f'all of them were exactly at their bounds, up to {words} '
                'would pass, and up to as many fail, by chance.', ' '.join(
                    report.render(decided(), '/data', hosts).split()))

    def test_what_is_unknown_is_said(self):
        text = report.render(acceptance.decide(
            BEGUN, None, 'Nova started 0', 'later'), '/data')
        for words in ('Reason: Nova started 0', 'not read', 'none was given'):
            self.assertIn(words, text)

    def test_a_shell_takes_the_command(self):
        words = ['hpcvirt', 'host', 'accept', 'n1', '--repaired',
                 'a DIMM, and the "riser"', *(f'--set=x{n}={"y" * 20}'
                                              for n in range(9))]
        text = report.render(dataclasses.replace(
            decided(), command=shlex.join(words)), '/data')
        shown = text.partition('To repeat it')[2].partition('All out')[0]
        self.assertGreater(shown.count('\\\n'), 2)
        self.assertTrue(all(len(line) < 79 for line in shown.splitlines()))
        self.assertEqual(words, shlex.split(shown.replace('\\\n', '')))

    def test_no_text_reaches_the_terminal_as_a_command(self):
        text = report.render(dataclasses.replace(
            decided(), machine={'vendor': '\x1b[31mEvil'}), '/data')
        self.assertNotIn('\x1b', text)


class FillingTest(testtools.TestCase):
    def test_a_plan_says_what_fills_a_host(self):
        self.assertEqual(
            (acceptance.AcceptancePart('b', 1),
             acceptance.AcceptancePart('a', 4)),
            acceptance.find_parts(PLAN, 'n1', ['b', 'a', 'b'], 'plan.json'))

    def test_what_cannot_be_used_is_named(self):
        for plan, host, names, words in (
                (PLAN, 'n1', ['c'], "has no flavor 'c'"),
                (PLAN, 'n3', ['a'], 'not for the host n3'),
                (PLAN, 'n2', ['a'], 'has no room for an instance of a')):
            error = self.assertRaises(exception.InvalidInput,
                                      acceptance.find_parts,
                                      plan, host, names, 'plan.json')
            self.assertIn(words, str(error))
            self.assertNotIn('\n', str(error))

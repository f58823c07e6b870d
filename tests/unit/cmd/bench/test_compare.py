# SPDX-License-Identifier: Apache-2.0

import io
import json
import random
import re
import shutil
import sys
import textwrap
from unittest import mock

import hypothesis
import testtools
from hypothesis import strategies

from hpcvirt.bench.model import record
from hpcvirt.bench.results import json_format
from tests import pages
from tests.builders import commands
from tests.builders import folders
from tests.builders import runs
from tests.unit.bench.analysis import test_verdict
from tests.unit.bench.parsers import base
from tests.unit.bench.parsers import test_npb

HPCC = str(base.DATA / 'native_np1' / 'hpccoutf.txt')
CG = base.data('native_np1/npb_cg.S.out')


def call(*words, stdin=b''):
    """Run the command; its status, standard output and standard error."""
    with mock.patch.object(sys, 'stdin',
                           io.TextIOWrapper(io.BytesIO(stdin))):
        return commands.run('bench', *words)


class CommandTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = folders.make(self)

    def assert_unusable(self, what, *words):
        commands.check_refused(self, what, call(*words))

    def answer(self, *words, stdin=b''):
        status, out, err = call(*words, '--format', 'json', stdin=stdin)
        self.assertEqual('', err)

        def refuse(name):
            raise AssertionError(f'{name} is no JSON')
        return status, json.loads(out, parse_constant=refuse)


class TestDocumentation(CommandTestCase):
    """The examples of the user guide against what the command prints."""

    def test_an_output_is_checked_as_the_page_shows(self):
        output = base.DATA / 'native_np1' / 'npb_cg.S.out'
        page = pages.read('user/compare')
        good = call('parse', 'npb-cg', output, '--expect', 'class=S').out
        head, _, table = good.partition('\n')
        shown = re.search(r'   (npb-cg: valid \(.*) \.\.\.\)\n', page)
        self.assertTrue(head.startswith(shown[1]), head)
        self.assertIn(textwrap.indent(table, '   '), page)
        bad = call('parse', 'npb-cg', output, '--expect', 'np=8')
        self.assertEqual(1, bad.status)
        self.assertIn(f'   {bad.out}', page)

    def test_outputs_are_compared_as_the_page_shows(self):
        dice = random.Random(5)
        for side, mean in ('native', 2430), ('guest', 2404), ('native2', 2430):
            (self.folder / side).mkdir()
            for number in range(10):
                (self.folder / side / f'{number}.out').write_text(
                    test_npb.block('CG', mops=format(
                        mean * (1 + dice.gauss(0, 0.004)), '.2f')))
        found = call('compare', self.folder / 'native', self.folder / 'guest',
                     '--benchmark', 'npb-cg', '--in-turn', '--aa',
                     self.folder / 'native2')
        self.assertEqual(0, found.status, found.err)
        table, _, notes = found.out.partition('npb-cg mops_total: ')
        page = pages.read('user/compare')
        self.assertIn(textwrap.indent(table, '   '), page)
        for line in f'npb-cg mops_total: {notes}'.splitlines():
            self.assertRegex(page, r'(?m)^   ' + re.escape(line[:14]))


class TestReframe(CommandTestCase):
    """Run reports of ReFrame, with other figures in each report."""

    def reports(self, side, slowdown=1.0, count=10, change=None):
        dice = random.Random(side)
        report = json.loads(base.data('reframe/4.10.4.json'))
        folder = self.folder / side
        folder.mkdir()
        for number in range(count):
            report['session_info']['uuid'] = f'{side}-{number}'
            for case in report['runs'][0]['testcases']:
                for values in case['perfvalues'].values():
                    faster = values[4] == 's'
                    values[0] = (100 * slowdown ** (1 if faster else -1)
                                 * (1 + dice.gauss(0, 0.004)))
            if change is not None:
                change(report)
            (folder / f'run-report-{number}.json').write_text(
                json.dumps(report))
        # ReFrame makes this link.
        (folder / 'latest.json').symlink_to(f'run-report-{count - 1}.json')
        return folder

    def test_a_loss_within_the_overhead_passes(self):
        found = call('compare', self.reports('native'),
                     self.reports('guest', 1.02), '--overhead', '5',
                     '--in-turn')
        self.assertEqual(0, found.status, found.err)
        self.assertIn('reframe:MemoryCopy %block=1M builtin', found.out)
        self.assertIn('it speaks of the launches of the guest; 10 were '
                      'measured', found.out)
        self.assertIn('size (B) is left out', found.out)

    def test_a_loss_beyond_the_bound_of_a_metric_fails(self):
        status, found = self.answer(
            'compare', self.reports('native'), self.reports('guest', 1.2),
            '--bound', 'rate=0.95', '--in-turn')
        self.assertEqual((1, 'FAIL'), (status, found['verdict']))
        for figure in found['judgements']:
            self.assertAlmostEqual(1 / 1.2, figure['interval']['ratio'], 1)
            self.assertEqual(10, figure['launches'])

    def test_few_launches_decide_nothing(self):
        def repeat(report):
            for number in range(9):
                again = json.loads(json.dumps(report['runs'][0]))
                for case in again['testcases']:
                    for values in case['perfvalues'].values():
                        values[0] *= 1 + number / 1000
                report['runs'].append(again)
        status, found = self.answer(
            'compare', self.reports('native', count=1, change=repeat),
            self.reports('guest', 1.01, 1, repeat), '--overhead', '5',
            '--in-turn')
        self.assertEqual((1, 'INCONCLUSIVE'), (status, found['verdict']))
        self.assertIn('of one launch', found['reason'])

    def test_a_test_that_failed_makes_the_verdict_invalid(self):
        def fail(report):
            report['runs'][0]['testcases'][0].update(
                result='fail', fail_phase='sanity', fail_reason='no copy')
        status, found = self.answer(
            'compare', self.reports('native'),
            self.reports('guest', change=fail), '--overhead', '5')
        self.assertEqual((1, 'INVALID'), (status, found['verdict']))
        self.assertIn('no copy', found['reason'])

    def test_what_cannot_be_compared_is_one_line(self):
        native = self.reports('native')
        self.assert_unusable('--bound METRIC=RATIO or --overhead', 'compare',
                             native, native)

        def move(report):
            report['runs'][0]['testcases'][0]['partition'] = random.choice(
                'ab') + report['session_info']['uuid'][-1]
        self.assert_unusable('ran on generic:', 'compare', native,
                             self.reports('moved', change=move),
                             '--overhead', '5')
        (native / 'run-report-3.json').write_text('{}')
        self.assert_unusable('not a run report', 'compare', native,
                             self.reports('guest'), '--overhead', '5')


class TestParse(CommandTestCase):
    def test_a_good_output_is_answered_in_json(self):
        status, found = self.answer('parse', 'hpcc', HPCC,
                                    '--expect', 'N=1000')
        self.assertEqual(0, status)
        self.assertEqual(('hpcc', True, None), (
            found['benchmark'], found['valid'], found['reason']))
        self.assertEqual(
            {'value': 0.424332, 'unit': 'GUP/s', 'direction': 'up'},
            found['metrics']['StarRandomAccess_GUPs'])

    def test_a_bad_output_is_answered_with_status_1(self):
        status, found = self.answer('parse', 'hpcc', HPCC,
                                    '--expect', 'N=2000')
        self.assertEqual((1, False, {}), (
            status, found['valid'], found['metrics']))
        self.assertIn('N=2000 was requested', found['reason'])

    def test_a_table_is_for_people(self):
        status, out, _ = call('parse', 'hpcc', HPCC)
        self.assertEqual(0, status)
        self.assertIn('StarRandomAccess_GUPs', out)
        self.assertIn('Note: one rank', out)
        status, out, _ = call('parse', 'npb-ep', HPCC)
        self.assertEqual(1, status)
        self.assertIn('npb-ep: INVALID: ', out)

    def test_standard_input_is_read_for_a_hyphen(self):
        status, found = self.answer('parse', 'NPB', '-', stdin=CG)
        self.assertEqual((0, 2428.81), (
            status, found['metrics']['mops_total']['value']))

    def test_the_name_of_ausurf112_expects_its_exit_status(self):
        path = str(base.DATA / 'qe' / 'au_maxstep2.out')
        # A single atom of gold, which has another energy.
        energy = ('--expect', 'first_energy=-102.021')
        self.assertEqual(0, call('parse', 'ausurf112', path, *energy)[0])
        self.assertEqual(1, call('parse', 'ausurf112', path)[0])
        self.assertEqual(1, call('parse', 'qe', path)[0])
        self.assertEqual(0, call('parse', 'qe', path, '--expect', 'rc=2')[0])
        self.assertEqual(1, call('parse', 'ausurf112', path, *energy,
                                 '--exit-status', '0')[0])

    def test_unusable_input_is_one_line_and_status_2(self):
        self.assert_unusable('no such benchmark', 'parse', 'x', HPCC)
        self.assert_unusable('No such file', 'parse', 'hpcc', '/nobody')
        self.assert_unusable('is a directory', 'parse', 'hpcc', '/')
        self.assert_unusable('parameters are N, NB', 'parse', 'hpcc', HPCC,
                             '--expect', 'M=1')
        for word in ('N', '=1', 'N=', ''):
            self.assert_unusable('KEY=VALUE', 'parse', 'hpcc', HPCC,
                                 '--expect', word)
        self.assert_unusable('whole number', 'parse', 'hpcc', HPCC,
                             '--expect', 'N=x')
        self.assert_unusable('FILE', 'parse', 'hpcc')
        self.assert_unusable('exit-status', 'parse', 'hpcc', HPCC,
                             '--exit-status', 'x')

    @hypothesis.settings(max_examples=60, deadline=None)
    @hypothesis.given(strategies.text(max_size=20),
                      strategies.text(max_size=20))
    def test_no_expectation_causes_a_traceback(self, key, value):
        status, _, err = call('parse', 'hpcc', HPCC, f'--expect={key}={value}')
        self.assertIn(status, (0, 1, 2))
        self.assertLessEqual(err.count('\n'), 1)


class TestListAndDescribe(CommandTestCase):
    def test_the_list_names_every_benchmark_once(self):
        status, found = self.answer('list')
        names = [one['name'] for one in found]
        self.assertEqual(0, status)
        self.assertEqual(len(set(names)), len(names))
        self.assertIn('hpcc', names)
        self.assertIn('hpcc', call('list')[1])

    def test_a_description_is_complete(self):
        status, out, _ = call('list', 'hpcc', '--vcpus', '4',
                              '--memory-mib', '8192')
        self.assertEqual(0, status)
        for text in ('libopenblas0-serial', 'N=', 'Default bounds',
                     'at least 0.962 (pages large)', 'within 3%', 'Ns'):
            self.assertIn(text, out)

    def test_every_description_comes_in_both_forms(self):
        for one in self.answer('list')[1]:
            words = ('list', one['name'], '--vcpus', '8', '--memory-mib',
                     '32768')
            self.assertEqual(0, call(*words)[0])
            status, found = self.answer(*words)
            self.assertEqual((0, one['name']), (status, found['name']))
            self.assertTrue(found['example']['command'])

    def test_a_machine_that_is_too_small_is_one_line(self):
        self.assert_unusable('not enough', 'list', 'npb-bt', '--vcpus',
                             '64', '--memory-mib', '1')
        self.assert_unusable('no variant', 'list', 'hpcc', '--variant',
                             'cuda')
        self.assert_unusable('qe-small', 'list', 'qe')
        self.assert_unusable('cpus', 'list', 'hpcc', '--vcpus', '0')


class TestCompare(CommandTestCase):
    def side(self, name, values):
        folder = self.folder / name
        folder.mkdir()
        for number, value in enumerate(values):
            (folder / f'{number}.out').write_bytes(
                CG.replace(b'2428.81', f'{value:.2f}'.encode()))
        return str(folder)

    def sides(self, ratio, count=10):
        native = test_verdict.NATIVE[:count]
        return (self.side('native', native),
                self.side('guest', test_verdict.scaled(ratio, native)),
                '--benchmark', 'npb', '--in-turn')

    def test_outputs_that_were_not_measured_in_turn_are_compared(self):
        for ratio in (0.99, 0.5):
            *sides, _ = self.sides(ratio)
            status, found = self.answer('compare', *sides)
            self.assertEqual((1, 'COMPARED'), (status, found['verdict']))
            self.assertIn('not measured in turn', found['reason'])
            for side in sides[:2]:
                shutil.rmtree(side)

    def test_a_pass_is_status_0(self):
        status, found = self.answer('compare', *self.sides(0.99))
        self.assertEqual((0, 'PASS'), (status, found['verdict']))
        one, = found['judgements']
        self.assertAlmostEqual(0.99, one['interval']['ratio'], places=2)
        self.assertAlmostEqual(0.97 / 1.03, one['limit'])

    def test_a_bound_that_no_study_measured_says_so(self):
        sides = self.sides(0.99)
        _, out, _ = call('compare', *sides)
        self.assertIn('bound 0.971 within 3%, transferred, [LBNL-'
                      'Partitioning]',
                      ' '.join(out.split()))
        _, found = self.answer('compare', *sides)
        (of_run,) = found['bounds'].values()
        self.assertEqual('transferred', of_run['mops_total']['kind'])
        _, out, _ = call('compare', *sides, '--overhead', '10')
        self.assertNotIn('bound 0.9', out)

    def test_a_fail_is_status_1(self):
        status, out, _ = call('compare', *self.sides(0.5))
        self.assertEqual(1, status)
        self.assertIn('FAIL', out)

    def test_too_few_pairs_are_inconclusive_with_status_1(self):
        status, found = self.answer('compare', *self.sides(0.99, 3))
        self.assertEqual((1, 'INCONCLUSIVE'), (status, found['verdict']))
        self.assertIn('3 pairs', found['reason'])

    def test_a_corrupted_output_is_invalid_with_status_1(self):
        sides = self.sides(0.99)
        (self.folder / 'guest' / '3.out').write_bytes(CG[:500])
        status, found = self.answer('compare', *sides)
        self.assertEqual((1, 'INVALID'), (status, found['verdict']))
        self.assertIn('guest pair 3', found['reason'])

    def test_another_class_in_the_guest_is_invalid(self):
        sides = self.sides(0.99)
        for path in (self.folder / 'guest').iterdir():
            path.write_bytes(path.read_bytes().replace(
                b'   S\n Size', b'   W\n Size'))
        self.assertEqual('INVALID', self.answer('compare', *sides)[1][
            'verdict'])

    def test_the_users_bounds_replace_the_default(self):
        sides = self.sides(0.96)
        self.assertEqual(1, call('compare', *sides)[0])
        self.assertEqual(0, call('compare', *sides, '--bound',
                                 'mops_total=0.9')[0])
        self.assertEqual(0, call('compare', *sides, '--overhead', '10%')[0])
        self.assertEqual(1, call('compare', *sides, '--overhead', '1')[0])

    def test_warm_ups_are_dropped_in_both_arms(self):
        native = self.side('native', [99.9, *test_verdict.NATIVE])
        guest = self.side('guest', [1, *test_verdict.scaled(1.0)])
        words = ('compare', native, guest, '--benchmark', 'npb', '--in-turn')
        self.assertEqual(1, call(*words)[0])
        self.assertEqual(0, call(*words, '--warm-up', '1')[0])

    def test_a_noisy_machine_cannot_decide(self):
        again = self.side('again', [
            value * (0.8 if number % 2 else 1.25)
            for number, value in enumerate(test_verdict.NATIVE)])
        status, found = self.answer('compare', *self.sides(0.99), '--aa',
                                    again)
        self.assertEqual((1, 'INCONCLUSIVE'), (status, found['verdict']))
        self.assertIn('cannot decide', found['reason'])

    def test_a_result_stands_alone(self):
        result = record.Result((runs.run(test_verdict.NATIVE,
                                         test_verdict.scaled(0.99)),))
        path = self.folder / 'result.json'
        path.write_text(json_format.dumps(result))
        status, found = self.answer('compare', str(path))
        self.assertEqual((0, 'PASS'), (status, found['verdict']))

    def test_figures_of_any_size_are_compared(self):
        for low, high in ((1e-300, 1e300), (1e300, 1e-300)):
            result = record.Result((runs.run([low] * 2, [high, low]),))
            path = self.folder / 'result.json'
            path.write_text(json_format.dumps(result))
            status, found = self.answer('compare', str(path))
            self.assertEqual((1, 'INCONCLUSIVE'), (status, found['verdict']))

    def test_figures_and_bounds_of_0_are_refused(self):
        result = record.Result((runs.run(test_verdict.NATIVE,
                                         test_verdict.scaled(0.99)),))
        path = self.folder / 'result.json'
        text = json_format.dumps(result)
        first = test_verdict.NATIVE[0]
        self.assertIn(f'"value": {first},', text)
        path.write_text(text.replace(f'"value": {first},', '"value": 0,'))
        self.assert_unusable('value: must be a number from 1e-300',
                             'compare', str(path))
        path.write_text(text)
        name = next(iter(result.runs[0].samples[0].outcome.metrics))
        for bound in ('0', '-1', 'nan', 'inf', '1e-320', '1e7'):
            self.assert_unusable('is out of range', 'compare', str(path),
                                 '--bound', f'{name}={bound}')

    def test_every_metric_of_hpcc_is_shown_by_all(self):
        for side in ('native', 'guest'):
            (self.folder / side).mkdir()
            for number in range(5):
                (self.folder / side / f'{number}.txt').write_bytes(
                    base.data('native_np1/hpccoutf.txt'))
        words = (str(self.folder / 'native'), str(self.folder / 'guest'),
                 '--benchmark', 'hpcc', '--in-turn')
        status, out, _ = call('compare', *words, '--all')
        self.assertEqual(1, status)
        self.assertTrue(out.endswith('\nINVALID.\n'))
        self.assertIn('5 native figures have only 1 different values: copies',
                      out)
        self.assertIn('PTRANS_GBs', out)
        self.assertNotIn('PTRANS_GBs', call('compare', *words)[1])

    def test_unusable_input_is_one_line_and_status_2(self):
        native, guest, *_ = self.sides(0.99)
        self.assert_unusable('--benchmark', 'compare', native, guest)
        self.assert_unusable('--overhead', 'compare', native, guest,
                             '--benchmark', 'qe', '--expect', 'rc=0')
        self.assert_unusable('METRIC=RATIO', 'compare', native, guest,
                             '--benchmark', 'npb', '--bound', 'x')
        self.assert_unusable('below 0', 'compare', native, guest,
                             '--benchmark', 'npb', '--warm-up', '-1')
        self.assert_unusable('is not valid JSON', 'compare', native + '/0.out')
        self.assert_unusable('No such file', 'compare', '/nobody', guest,
                             '--benchmark', 'npb')

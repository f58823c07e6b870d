# SPDX-License-Identifier: Apache-2.0

import json

import testtools

from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt.bench.model import record
from hpcvirt.bench.results import json_format
from hpcvirt.bench.results import output_files
from tests.builders import folders
from tests.builders import refusals
from tests.builders import runs
from tests.unit.bench.parsers import base

CG = base.data('native_np1/npb_cg.S.out')
NATIVE = record.Side.NATIVE
GUEST = record.Side.GUEST


class TestCollect(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = folders.make(self)

    def write(self, name, content):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            content = content.encode()
        path.write_bytes(content)
        return str(path)

    def collect(self, path, benchmark='npb', side=NATIVE, **expect):
        return output_files.collect(str(path), side, benchmark, expect)

    def figures(self, sets):
        outputs, = sets
        return [outcome.metrics['mops_total'].value
                for outcome in outputs.outcomes]

    def test_files_of_a_directory_come_in_natural_order(self):
        for number in (1, 2, 10):
            self.write(f'run{number}.out',
                       CG.replace(b'2428.81', f'{number}.00'.encode()))
        self.write('.hidden', 'x')
        self.assertEqual([1.0, 2.0, 10.0],
                         self.figures(self.collect(self.folder)))

    def test_a_pattern_and_a_single_file_do_as_well(self):
        self.write('a.out', CG)
        self.write('b.txt', CG)
        self.assertEqual([2428.81], self.figures(
            self.collect(self.folder / '*.out')))
        self.assertEqual([2428.81], self.figures(
            self.collect(self.folder / 'b.txt')))

    def test_a_directory_per_sample_holds_the_output_that_is_parsed(self):
        for number in range(3):
            self.write(f'{number}/hpccoutf.txt',
                       base.data('native_np1/hpccoutf.txt'))
            self.write(f'{number}/stdout', '')
        outputs, = self.collect(self.folder, 'hpcc')
        self.assertEqual([True] * 3, [out.valid for out in outputs.outcomes])

    def test_what_the_name_promises_is_expected(self):
        path = self.write('x.out', CG)
        outputs, = self.collect(path, 'npb-ep')
        self.assertIn('benchmark=EP was requested', outputs.outcomes[0].reason)

    def test_answers_of_parse_are_read_as_list_and_line_by_line(self):
        answer = serialization.dump(
            output_files.make_output('npb-cg', runs.good(5.0)))
        for text in (json.dumps([answer, answer]),
                     f'{json.dumps(answer)}\n{json.dumps(answer)}\n'):
            outputs, = self.collect(self.write('x.json', text), None)
            self.assertEqual(('npb-cg', 2),
                             (outputs.benchmark, len(outputs.outcomes)))

    def test_a_raw_output_may_be_json(self):
        path = self.write('fio.json', base.data('fio/fio-3.33.json'))
        outputs, = self.collect(path, 'fio')
        self.assertEqual(('fio', [True]), (outputs.benchmark, [
            found.valid for found in outputs.outcomes]))
        self.refused('name their benchmark', path, None)

    def test_an_answer_with_a_bad_figure_is_refused(self):
        answer = serialization.dump(
            output_files.make_output('npb-cg', runs.good(5.0)))
        for value in (0, -1, True, '5', None):
            answer['metrics']['mops_total']['value'] = value
            self.refused("[0].metrics['mops_total'].value: must be",
                         self.write('x.json', json.dumps([answer])), None)

    def test_a_result_gives_its_arm_in_the_order_of_pairs(self):
        result = record.Result((runs.run([1.0, 2.0], [3.0, 4.0]),))
        path = self.write('r.json', json_format.dumps(result))
        self.assertEqual([3.0, 4.0],
                         self.figures(self.collect(path, None, GUEST)))

    def refused(self, what, *args, **more):
        self.assertIn(what,
                      refusals.message(self, self.collect, *args, **more))

    def test_what_cannot_be_used_is_refused(self):
        self.refused('No such file', self.folder / 'nobody')
        self.refused('has no outputs', self.folder)
        self.refused('has no outputs', self.folder / '*.out')
        self.refused('name their benchmark', self.write('x.out', CG), None)
        self.refused('schema_version', self.write(
            'y.json', '{"schema_version": 99}'))
        self.refused('has no outputs', self.write('z.json', '[]'))
        self.refused('embedded null', 'a\0b')

    def test_a_directory_without_the_output_is_refused(self):
        self.write('1/other.txt', 'x')
        self.refused('has no hpccoutf.txt', self.folder, 'hpcc')


class TestRunOf(testtools.TestCase):
    def side(self, *values):
        return output_files.SideOutputs('npb-cg', '',
                                        tuple(map(runs.good, values)))

    def test_pairs_are_made_in_order_with_warm_ups_apart(self):
        run = output_files.run_of(self.side(9, 1, 2), self.side(8, 3, 4),
                                  in_turn=True, warm_ups=1)
        self.assertEqual(2, run.planned_pairs)
        self.assertEqual(
            [(0, True), (0, True), (0, False), (0, False), (1, False),
             (1, False)],
            [(sample.pair, sample.warm_up) for sample in run.samples])

    def test_arms_of_different_length_are_no_pairs(self):
        exc = self.assertRaises(
            exception.InvalidInput, output_files.run_of, self.side(1, 2),
            self.side(1), in_turn=True, warm_ups=0)
        self.assertIn('leave out --in-turn', str(exc))
        run = output_files.run_of(self.side(1, 2), self.side(1),
                                  in_turn=False, warm_ups=0)
        self.assertEqual(record.Purpose.UNPAIRED, run.purpose)

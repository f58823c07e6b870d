# SPDX-License-Identifier: Apache-2.0

"""What holds for every parser, whatever it is given."""

import dataclasses
import importlib
import re
import time
from unittest import mock

import hypothesis
import testtools
from hypothesis import strategies

from hpcvirt.bench.model import metric_definition
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import output_format
from hpcvirt.bench.parsers import parser
from hpcvirt.bench.parsers import text
from tests.builders import packages
from tests.builders import refusals
from tests.unit.bench.parsers import base

#: Parser, a good output of it, and what is expected of it: ``GOOD_OUTPUTS`` of
#: the module that tests the parser.
GOOD = tuple(
    (name, raw, expect) for name in sorted(parser.PARSERS)
    for raw, expect in importlib.import_module(
        f'tests.unit.bench.parsers.test_{name}').GOOD_OUTPUTS)

#: Parsers of outputs whose units are read.
PRINT_UNITS = {'cyclictest', 'hpl', 'ior', 'mpi4py_pingpong', 'nccl',
               'nvbandwidth', 'osu', 'stream'}

SETTINGS = hypothesis.settings(
    max_examples=150, deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow])

#: Pieces that outputs are made of, put together at random.
FRAGMENTS = strategies.sampled_from([
    line + b'\n' for _, raw, _ in GOOD for line in raw.splitlines()])


SITE_PARSER = """
from hpcvirt.bench.parsers import expectation
from hpcvirt.bench.parsers import reading

KEYS = (expectation.whole('ranks', 'ranks'),)


def read(text, expect):
    if 'crash' in text:
        return 1 / 0
    if 'nothing' in text:
        return None
    if 'refuse' in text:
        raise reading.InvalidOutput('not good')
    word, ranks, name, unit, *_ = *text.split(), 'x', 's'
    value = eval(word, {'inf': float('inf')})
    return reading.Reading(dict.fromkeys(name.split(','), value),
                           {'ranks': ranks}, units={'x': unit})
"""
#: A definition that has it.
SITE = output_format.OutputFormat(
    'spin', 'site', (metric_definition.MetricDefinition(
        'x', 's', outcome.Direction.DOWN, 'time'),))


class TestParsersOfPackages(testtools.TestCase):
    def setUp(self):
        super().setUp()
        packages.install(
            self, SITE_PARSER + 'EMPTY = object()\nclass KeyLess:\n'
            '    KEYS = ()\n', '[hpcvirt.bench.parsers]\nsite = site_hpc\n'
            'osu = site_hpc\nempty = site_hpc:EMPTY\n'
            'keyless = site_hpc:KeyLess\n')

    def test_it_reads_as_those_of_hpcvirt_do(self):
        found = parser.parse(SITE, b'2.5 4\n', {'ranks': '4'})
        self.assertTrue(found.valid, found.reason)
        self.assertEqual(outcome.Metric(2.5, 's', outcome.Direction.DOWN),
                         found.metrics['x'])
        found = parser.parse(SITE, b'2.5 4\n', {'ranks': '8'})
        self.assertIn('ranks=8 was requested', found.reason)

    def test_whatever_it_does_is_an_outcome(self):
        for raw, what in (
                (b'crash', 'the parser site failed (ZeroDivisionError'),
                (b'nothing', 'the parser site returned no Reading'),
                (b'refuse', 'not good'), (b'0 4', 'x is 0'),
                (b'-1 4', 'x is -1'), (b'inf 4', 'x is inf'),
                (b"'1' 4", 'the parser site failed (TypeError'),
                (b'1 many', "ranks is 'many', which is not a whole"),
                (b'2.5 4 y s', 'the parser site found y, which the '),
                (b'2.5 4 x[8] s', 'found x[8], which the definition of spin '),
                (b'2.5 4 x ms', 'x is in ms, but in s in the definition')):
            found = parser.parse(SITE, raw, {})
            self.assertFalse(found.valid)
            self.assertIn(what, found.reason)

    def test_a_definition_may_have_a_part_of_the_figures(self):
        (usual,) = SITE.figures
        form = dataclasses.replace(SITE, figures=(
            usual, dataclasses.replace(usual, name='y')))
        for raw in (b'2.5 4 x s', b'2.5 4 x,z s'):
            found = parser.parse(form, raw, {})
            self.assertEqual({'x'}, {*found.metrics}, found.reason)

    def test_the_parsers_of_hpcvirt_take_precedence(self):
        self.assertEqual(parser.PARSERS['osu'], parser.get('osu'))

    def test_what_is_no_parser_is_refused(self):
        for name, what in (('empty', 'has no KEYS'),
                           ('keyless', 'has no function read'),
                           ('oso', 'no such parser, neither of hpcvirt')):
            self.assertIn(what, refusals.message(self, parser.get, name))


class TestEveryParser(testtools.TestCase):
    def parse(self, name, raw, expect=None):
        found = parser.parse(base.form(name), raw, expect or {})
        self.assertEqual(found.valid, found.reason is None)
        if found.valid:
            self.assertTrue(found.metrics)
        else:
            self.assertEqual({}, found.metrics)
            self.assertNotIn('\n', found.reason)
        return found

    def test_the_good_outputs_are_good(self):
        for name, raw, expect in GOOD:
            found = self.parse(name, raw, expect)
            self.assertTrue(found.valid, f'{name}: {found.reason}')
            # No figure is lost that a parser of hpcvirt finds.
            with mock.patch.object(
                    parser, '_define', lambda read, _: read.metrics):
                self.assertEqual({*self.parse(name, raw, expect).metrics},
                                 {*found.metrics})

    def test_a_definition_in_another_unit_than_the_output_is_refused(self):
        for name, raw, expect in GOOD:
            form = base.form(name)
            found = parser.parse(dataclasses.replace(form, figures=tuple(
                dataclasses.replace(figure, unit='furlongs')
                for figure in form.figures)), raw, expect)
            if name in PRINT_UNITS:
                self.assertIn(f'but in furlongs in the definition of {name}',
                              found.reason)
            else:
                self.assertEqual({'furlongs'}, {
                    metric.unit for metric in found.metrics.values()})

    def test_the_modules_of_the_programs_are_the_parsers(self):
        self.assertLessEqual(
            {'gromacs', 'hepscore', 'hpcc', 'hs06', 'lammps',
             'mpi4py_pingpong', 'namd', 'netpipe', 'npb', 'osu', 'qe',
             'stream', 'wrf'}, {name for name, _, _ in GOOD})

    def test_line_ends_colours_and_tags_change_nothing(self):
        for name, raw, expect in GOOD:
            plain = self.parse(name, raw, expect)
            lines = raw.splitlines()
            for changed in (
                    b'\r\n'.join(lines) + b'\r\n',
                    b''.join(b'\x1b[32m' + line + b'\x1b[0m\n'
                             for line in lines),
                    b''.join(b'[1,0]<stdout>:' + line + b'\n'
                             for line in lines),
                    b''.join(b'0: ' + line + b'\n' for line in lines)):
                self.assertEqual(plain, self.parse(name, changed, expect))

    def test_prefixes_of_loggers_are_named_as_the_reason(self):
        for prefix in ('2026-11-29 10:00:{:02d},123 INFO ',
                       '[2026-11-29T10:00:{:02d}Z] ', '10:00:{:02d} | ',
                       'Nov 29 10:00:{:02d} n1 bench[123]: ', 'n1: '):
            for name, raw, expect in GOOD:
                lines = [line for line in raw.splitlines() if line.strip()]
                if len(lines) < 3:
                    continue
                found = self.parse(name, b''.join(
                    prefix.format(number % 60).encode() + line + b'\n'
                    for number, line in enumerate(lines)), expect)
                if found.valid:
                    self.assertEqual(self.parse(name, raw, expect).metrics,
                                     found.metrics)
                else:
                    self.assertIn('each line has a prefix such as',
                                  found.reason, f'{name} {prefix}')

    def test_an_indented_output_is_read_or_named_as_that(self):
        for name, raw, expect in GOOD:
            lines = raw.splitlines()
            if len(lines) < 3:
                continue
            found = self.parse(
                name, b''.join(b'    ' + line + b'\n' for line in lines),
                expect)
            if not found.valid:
                self.assertIn('each line is indented', found.reason, name)

    def test_nothing_and_near_nothing_are_refused(self):
        for name in parser.PARSERS:
            for raw in (b'', b' \n\t\n', b'\x00' * 100, b'{', b'{}', b'[]',
                        b'null', b'\xff\xfe\x00', b'\x1b[', b'0\n',
                        bytes(range(256)) * 50, b'9' * 10000,
                        b'9' * 5000 + b' ' + b'9' * 5000 + b'\n'):
                self.assertFalse(self.parse(name, raw).valid)

    def test_an_enormous_output_is_refused_without_a_look(self):
        raw = GOOD[0][1] + b'\n' * text.LIMIT_BYTES
        begin = time.process_time()
        found = self.parse('hpcc', raw)
        self.assertIn('larger than 64 MiB', found.reason)
        self.assertLess(time.process_time() - begin, 2)

    def test_outputs_made_to_take_long_do_not(self):
        self.assert_take_no_time(1)

    def test_periodic_many_outputs_made_to_take_long_do_not(self):
        self.assert_take_no_time(20)

    def assert_take_no_time(self, lines_of_each):
        # Lines of good outputs a thousand times, or followed by a desert:
        # what takes more than linear time takes minutes here.
        for name, raw, _ in GOOD:
            lines = sorted(set(raw.splitlines()), key=len)
            begin = time.process_time()
            for line in lines[::max(1, len(lines) // lines_of_each)]:
                self.parse(name, line + b' ' * 50000 + b'x')
                self.parse(name, (line + b' ' * 4000 + b'\n') * 10)
                self.parse(name, (line + b'\n') * 1000)
            self.assertLess(time.process_time() - begin, 5, name)

    @SETTINGS
    @hypothesis.given(strategies.sampled_from(GOOD), strategies.data())
    def test_a_truncated_output_has_no_other_figures(self, good, draw):
        name, raw, expect = good
        whole = self.parse(name, raw, expect)
        length = draw.draw(strategies.integers(0, len(raw)))
        cut = self.parse(name, raw[:length], expect)
        for metric, figure in cut.metrics.items():
            self.assertEqual(whole.metrics[metric], figure)

    @SETTINGS
    @hypothesis.given(strategies.sampled_from(GOOD), strategies.data())
    def test_an_output_without_some_lines_has_no_other_figures(self, good,
                                                               draw):
        name, raw, expect = good
        lines = raw.splitlines(keepends=True)
        begin = draw.draw(strategies.integers(0, len(lines)))
        end = draw.draw(strategies.integers(begin, len(lines)))
        whole = self.parse(name, raw, expect)
        cut = self.parse(name, b''.join(lines[:begin] + lines[end:]), expect)
        for metric, figure in cut.metrics.items():
            # The lines "Benchmark time" of NAMD are not numbered.
            if (name, metric) != ('namd', 'step_time_s'):
                # Without its rate, a run of LAMMPS has that of its loop.
                self.assertAlmostEqual(
                    1, figure.value / whole.metrics[metric].value, delta=1e-4)
        # Some versions of OSU begin with 0 bytes, and others with 1.
        if cut.valid and not cut.remarks and name != 'namd':
            self.assertEqual(whole.metrics.keys() - {'latency_us[0]'},
                             cut.metrics.keys() - {'latency_us[0]'})

    @SETTINGS
    @hypothesis.given(strategies.sampled_from(GOOD), strategies.data())
    def test_a_damaged_output_never_crashes_a_parser(self, good, draw):
        name, raw, expect = good
        begin = draw.draw(strategies.integers(0, len(raw)))
        end = draw.draw(strategies.integers(begin, min(len(raw), begin + 200)))
        damage = draw.draw(strategies.binary(max_size=20))
        self.parse(name, raw[:begin] + damage + raw[end:], expect)

    def test_text_that_could_not_be_stored_is_refused(self):
        documents = [(name, raw, expect) for name, raw, expect in GOOD
                     if raw.lstrip().startswith(b'{')]
        self.assertTrue(documents)
        for name, raw, expect in documents:
            for half in (rb'\ud800', rb'\uDFFF'):
                found = self.parse(name, raw.replace(
                    b'{', b'{"x": "' + half + b'", ', 1), expect)
                self.assertIn('surrogates', found.reason)

    def test_a_number_of_hundreds_of_digits_never_crashes_a_parser(self):
        self.assert_digits_never_crash(5)

    def test_periodic_whichever_number_has_hundreds_of_digits(self):
        self.assert_digits_never_crash(1)

    def assert_digits_never_crash(self, step):
        seen = set()
        for name, raw, expect in GOOD:
            # Long lines are dropped, but not those of a JSON document.
            digits = 5000 if raw.startswith(b'{') else 400
            for number in re.finditer(rb'[0-9]+', raw):
                begin = raw.rfind(b'\n', 0, number.start()) + 1
                place = name, re.sub(rb'[0-9]+', b'0',
                                     raw[begin:number.start()])
                if place in seen:
                    continue
                seen.add(place)
                if len(seen) % step:
                    continue
                self.parse(name, raw[:number.start()] + b'9' * digits
                           + raw[number.end():], expect)

    @SETTINGS
    @hypothesis.given(strategies.sampled_from(sorted(parser.PARSERS)),
                      strategies.lists(FRAGMENTS, max_size=40))
    def test_shuffled_lines_never_crash_a_parser(self, name, lines):
        self.parse(name, b''.join(lines))

    @SETTINGS
    @hypothesis.given(strategies.sampled_from(sorted(parser.PARSERS)),
                      strategies.binary(max_size=500))
    def test_any_bytes_never_crash_a_parser(self, name, raw):
        self.parse(name, raw)

    @SETTINGS
    @hypothesis.given(strategies.sampled_from(GOOD), strategies.data())
    def test_a_figure_that_became_a_sentinel_is_refused(self, good, draw):
        name, raw, expect = good
        whole = self.parse(name, raw, expect)
        words = {word for word in raw.split()
                 if _number(word) in {figure.value for figure
                                      in whole.metrics.values()}}
        hypothesis.assume(words)
        word = draw.draw(strategies.sampled_from(sorted(words)))
        sentinel = draw.draw(strategies.sampled_from(
            (b'-1', b'nan', b'inf', b'6.95e-313', b'0', b'*****')))
        spoiled = self.parse(name, raw.replace(b' ' + word,
                                               b' ' + sentinel), expect)
        for figure in spoiled.metrics.values():
            self.assertGreater(figure.value, 1e-30)


def _number(word):
    try:
        return float(word)
    except ValueError:
        return None

# SPDX-License-Identifier: Apache-2.0

import re
import time

import hypothesis
import testtools
from hypothesis import strategies

from hpcvirt import exception
from hpcvirt.bench.model import line_pattern
from tests.builders import refusals

#: Pattern, a line that it fits, and the group.
GOOD = (
    (r'Performance: +(\S+) steps/s', 'Performance:  12.5 steps/s', '12.5'),
    (r'^Performance:\s+(\S+)$', 'Performance: nan', 'nan'),
    (r'(\d+) steps on \d+ CPUs', '10 steps on 4 CPUs', '10'),
    (r'rate = *([-+.0-9eE]+) GB/s.*', 'rate =1e3 GB/s, x', '1e3'),
    (r'Time \(s\)\t([0-9.]+)', 'Time (s)\t1.5', '1.5'),
    (r'\S+ \S+ rate: ([^%]+)%', '12:00 n1 rate: 97.5%', '97.5'),
    (r'[0-9]{4}-[0-9]{1,2} total: ?(\S+)', '2026-9 total: 3', '3'),
)

#: What could backtrack, alone or with others.
SLOW = ('(a+)+', '(a*)*b', '(a|a)+', r'(\S+)\S', r'.* (\S+)', r'\s*\s*(\S+)',
        r'a?a?a?(\S)', r'(\d+)\d*', r'x(\S+)%', r'(\w+)_x', r'(a{1,9}){9}',
        r'(\S+) *.*', r'(.+)\.')


class TestLinePattern(testtools.TestCase):
    def test_a_pattern_fits_a_line(self):
        for pattern, line, word in GOOD:
            match = line_pattern.compile_pattern(pattern, 'x').fullmatch(line)
            self.assertIsNotNone(match, pattern)
            self.assertEqual(word, match[1])

    def test_repeats_of_what_may_follow_them_are_refused(self):
        for pattern in SLOW:
            self.assertRaises(exception.InvalidInput,
                              line_pattern.compile_pattern, pattern, 'x')
        self.assertIn('.* may match what follows it', refusals.message(
            self, line_pattern.compile_pattern, r'.* GB (\S+)', 'x'))

    def test_other_means_are_refused_with_those_that_there_are(self):
        for pattern, what in (
                (r'(?:a)(\S+)', "cannot have '?:a)("), ('(a)(b)', "'(b)'"),
                (r'(a)\1', r"'\\1'"), (r'(a|b)', "'|b)'"), ('(a)?', "'?'"),
                (r'\b(a)', r"'\\b(a)'"), ('(a', 'no group'),
                ('a', 'no group'), ('()', 'no group'), ('(a*)', 'no group'),
                ('(a+?)', "'?)'"), ('([a)', "'[a)'"), ('([z-a])', 'no class'),
                ('(a{2,})', "'{2,})'"), ('', 'no group'),
                ('x' * 300, 'longer than 200')):
            self.assertIn(what, refusals.message(
                self, line_pattern.compile_pattern, pattern, 'x'), pattern)

    @hypothesis.settings(max_examples=300, deadline=None)
    @hypothesis.given(
        strategies.lists(strategies.sampled_from((
            'a', 'b', ' ', r'\S', r'\s', r'\d', '.', '[ab]', '[^a]', '*', '+',
            '?', '{1,9}', '{3}')), max_size=30),
        strategies.sampled_from(('a', 'ab', ' ', 'a ', '1', '1a')))
    def test_what_is_accepted_never_takes_long(self, parts, unit):
        pattern = ''.join(parts) + '(!)'
        try:
            compiled = line_pattern.compile_pattern(pattern, 'x')
        except exception.InvalidInput:
            return
        line = (unit * line_pattern.MAX_LINE)[:line_pattern.MAX_LINE]
        begin = time.process_time()
        compiled.fullmatch(line)
        self.assertLess(time.process_time() - begin, 0.1, pattern)

    @hypothesis.given(strategies.text(max_size=60))
    def test_any_text_is_compiled_or_refused(self, pattern):
        try:
            compiled = line_pattern.compile_pattern(pattern, 'x')
        except exception.InvalidInput:
            return
        self.assertIsInstance(compiled, re.Pattern)
        self.assertEqual(1, compiled.groups)

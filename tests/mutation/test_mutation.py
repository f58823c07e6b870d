# SPDX-License-Identifier: Apache-2.0

"""Which deliberate faults are made, and what becomes of them."""

import contextlib
import io
import os
import pathlib

import fixtures
import testtools

from tools.mutation import __main__ as mutation
from tools.mutation import mutants

CODE = '''\
"""A host that is judged."""


def judge(host, limit: int | None = None) -> str | None:
    if host.loss > 5:
        host.release(limit)
        return f'{host.name[:64]} fails'
    while host.busy:
        host.busy -= 1
    return None
'''
TESTS = """\
import types
import unittest

from site_x import code


class Host:
    def __init__(self, loss, busy=0):
        self.name, self.loss, self.busy = 'n1', loss, busy

    def release(self, _):
        pass


class JudgeTest(unittest.TestCase):
    def test_a_loss_fails(self):
        print('nobody reads this')
        self.assertEqual('n1 fails', code.judge(Host(6)))
        self.assertIsNone(code.judge(Host(5)))

    def test_busy(self):
        self.assertIsNone(code.judge(Host(0, 1)))

    def test_periodic_is_left_out(self):
        self.fail()
"""


class PlacesTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.addCleanup(os.chdir, pathlib.Path.cwd())
        os.chdir(self.useFixture(fixtures.TempDir()).path)

    def find(self, code):
        path = pathlib.Path('m.py')
        path.write_text(code)
        return mutants.find_places(path)

    def changes(self, code):
        """Return the lines that some mutant has instead of others."""
        lines = code.splitlines()
        return {' '.join(line.split()) for place in self.find(code)
                for line in place.change().splitlines() if line not in lines}

    def test_the_faults_of_a_tired_author(self):
        self.assertEqual({
            'if host.loss >= 5:', 'if host.loss < 5:', 'if host.loss > 6:',
            'if host.loss > 4:', 'if not host.loss > 5:', 'pass',
            'while not host.busy:', 'host.busy -= 2', 'host.busy -= 0',
            }, self.changes(CODE))

    def test_the_value_of_a_limit_is_a_choice(self):
        self.assertEqual(set(), self.changes('MAX_HOSTS = 5\n_MIN_S = 0.5\n'))
        self.assertEqual({'PAIRS = 6', 'PAIRS = 4'},
                         self.changes('MAX_HOSTS = 2 ** 10\nPAIRS = 5\n'))

    def test_a_call_is_left_out_if_nobody_uses_its_result(self):
        for line in ('f(x)', 'a.b(c)', 'a(b)(c)', 'a[b].c()'):
            self.assertEqual({'pass'}, self.changes(f'{line}\n'), line)
        for line in ('y = f(x)', 'f(x)[y]', 'f', 'LOG.info(x)'):
            self.assertEqual(set(), self.changes(f'{line}\n'), line)

    def test_a_handler_catches_nothing(self):
        for caught in ('A', 'a.B', '(A, b.C)', 'A as e', '(*a.B, C)'):
            name = ' as e' if caught.endswith('e') else ''
            self.assertIn(f'except (){name}:', self.changes(
                f'try:\n    f()\nexcept {caught}:\n    x = 1\n'), caught)
        self.assertNotIn('except ():', self.changes(
            'try:\n    f()\nexcept:\n    x = 1\n'))

    def test_each_mutant_is_a_module(self):
        for place in self.find(CODE):
            compile(place.change(), 'm.py', 'exec')

    def test_lines_elsewhere_do_not_change_what_is_drawn(self):
        before = [(place.text, place.fault, place.turn)
                  for place in mutants.draw(self.find(CODE), 99, 'a')]
        more = [(place.text, place.fault, place.turn)
                for place in mutants.draw(self.find(CODE.replace(
                    '    return None', '    host.count *= 2 + 7\n'
                    '    return None')), 99, 'a')]
        self.assertLess(len(before), len(more))
        self.assertEqual(before, [each for each in more if each in before])
        self.assertEqual(3, len(mutants.draw(self.find(CODE), 3, 'a')))
        self.assertNotEqual(mutants.draw(self.find(CODE), 99, 'a'),
                            mutants.draw(self.find(CODE), 99, 'b'))


class MutationTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        root = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        for name, text in (('site_x/__init__.py', ''),
                           ('site_x/code.py', CODE),
                           ('site_tests/__init__.py', ''),
                           ('site_tests/test_code.py', TESTS)):
            path = root / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        self.configuration = root / 'packages.toml'
        self.configure(0)
        self.addCleanup(os.chdir, pathlib.Path.cwd())
        os.chdir(root)
        for name, new in (('CONFIGURATION', self.configuration),
                          ('LOADING_S', 4), ('os.nice', lambda _: None)):
            self.useFixture(fixtures.MonkeyPatch(
                f'tools.mutation.__main__.{name}', new))

    def configure(self, least, sample=99):
        self.configuration.write_text(
            f"seed = 'a'\n[packages.x]\nfolder = 'site_x'\nsample = {sample}\n"
            f"least = {least}\ntests = ['site_tests/test_*.py']\n")

    def run_(self, *words):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            status = mutation.main(*words)
        return status, out.getvalue()

    def test_the_table_says_what_was_noticed(self):
        status, out = self.run_()
        self.assertEqual(0, status)
        self.assertIn('Drawn by the seed', out)
        self.assertEqual(
            ['x', '9', '9', '5', '2', '2', '77', '0'],
            out.splitlines()[-2].split())
        self.assertIn('survived: site_x/code.py:6', out)
        self.assertIn('-        host.release(limit)\n    +        pass', out)

    def test_fewer_than_expected_are_a_fault(self):
        self.configure(77)
        self.assertEqual(0, self.run_()[0])
        self.configure(78)
        status, out = self.run_()
        self.assertEqual(1, status)
        self.assertIn('Fewer mutants are noticed', out)
        # Another sample has another percentage.
        self.assertEqual(0, self.run_('--sample', '9')[0])

    def test_what_was_killed_can_be_named(self):
        _, out = self.run_('--killed', 'x')
        self.assertIn('killed: site_x/code.py:5 site_tests.test_code.JudgeTest'
                      '.test_a_loss_fails', out)

    def test_tests_that_fail_by_themselves_judge_nothing(self):
        path = pathlib.Path('site_tests/test_code.py')
        path.write_text(TESTS.replace("'n1 fails'", "'n2 fails'"))
        error = self.assertRaises(SystemExit, self.run_)
        self.assertIn('test_a_loss_fails', str(error))

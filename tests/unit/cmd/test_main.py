# SPDX-License-Identifier: Apache-2.0

import os
import pathlib
import unittest
from unittest import mock

from hpcvirt.cmd import main
from tests.builders import commands

#: What the options mean whose help is not the same everywhere.
MEANINGS = {
    '--apply': 'do what is otherwise only printed',
    '--bound': 'the worst ratio of a metric that passes',
    '--cold': 'allow cold migrations',
    '--expect': 'how a benchmark was run',
    '--flavor': 'a flavor',
    '--fleet': 'the fleet document',
    '--format': 'the form of the output',
    '--history': 'the file in which refusals are kept',
    '--html': 'write a page',
    '--interval': 'the time between two readings',
    '--profile': 'the choices of the operator',
    '--replace': 'replace what is there and stands in the way',
    '--root': 'the root of the file system of a host',
    '--serve': 'serve metrics at an address',
    '--warm-up': 'what comes first and does not count',
    '-f': 'the form of the output',
}
#: The metavars of those that may be given in more than one way.
FORMS = {'--root': {'DIR', 'DIR|FILE'},
         '--warm-up': {'N', 'X'}}


class OptionsTest(unittest.TestCase):
    """An option means one thing, whichever command has it."""

    def actions(self):
        for name in main.COMMANDS:
            for action in main.build_parser(name)._actions:
                for option in action.option_strings:
                    yield option, action

    def test_another_help_is_another_meaning_unless_it_is_declared(self):
        helps = {}
        for option, action in self.actions():
            helps.setdefault(option, set()).add(
                ' '.join((action.help or '').split()))
        self.assertEqual(sorted(MEANINGS), sorted(
            option for option, texts in helps.items() if len(texts) > 1))

    def test_the_value_of_an_option_has_one_form(self):
        forms = {}
        for option, action in self.actions():
            forms.setdefault(option, set()).add(
                None if action.nargs == 0 else action.metavar)
        self.assertEqual(FORMS, {
            option: found for option, found in forms.items()
            if len(found) > 1})


class SizeTest(unittest.TestCase):
    """What a user must learn stays small."""

    def test_help_fits_on_a_screen(self):
        with mock.patch.dict(os.environ, COLUMNS='80'):
            for name in main.COMMANDS:
                with self.subTest(name):
                    text = main.build_parser(name).format_help()
                    self.assertLessEqual(len(text.splitlines()), 40)

    def test_commands_and_options_are_few(self):
        own = 0
        for name in main.COMMANDS:
            parser = main.build_parser(name)
            shown = {action.dest for group in parser._action_groups
                     for action in group._group_actions
                     if action.option_strings}
            own += len(shown - {'help', 'formatter'})
        self.assertLessEqual(own, 162)
        self.assertLessEqual(len(main.COMMANDS), 29)
        self.assertLessEqual(
            len([name for name in main.GROUPS if ' ' not in name]), 9)


ROOT = pathlib.Path(__file__).parents[3]


def run(*words: str) -> tuple[int, str, str]:
    return commands.run(*words)


class ProgramTest(unittest.TestCase):
    def refuse(self, *words: str) -> str:
        status, out, err = run(*words)
        self.assertEqual((2, '', 1), (status, out, err.count('\n')), words)
        return err

    def test_a_wrong_command_names_the_nearest(self) -> None:
        for words, nearest in ((('hots', 'show'), 'host'),
                               (('bench', 'pars'), None),
                               (('bench', 'compar', 'a'), None),
                               (('host', 'shwo'), 'show'),
                               (('bench', 'study', 'shwo'), 'show'),
                               (('flavor', 'plan', '--profiel', 'x'),
                                '--profile')):
            with self.subTest(words):
                if nearest is not None:
                    self.assertIn(f'(did you mean {nearest}?)',
                                  self.refuse(*words))
                else:
                    self.assertNotIn('not a command', self.refuse(*words))

    def test_a_wrong_name_of_the_catalogue_names_the_nearest(self) -> None:
        for words, nearest in ((('bench', 'list', 'straem'), 'stream'),
                               (('bench', 'run', 'osu-bw/mpl', '--where',
                                 'local'), None),
                               (('bench', 'study', 'show', 'S4', '--case',
                                 '4x8-tune'), '4x8-tuned')):
            err = self.refuse(*words)
            if nearest is not None:
                self.assertIn(f'(did you mean {nearest}?)', err)

    def test_a_missing_command_names_all(self) -> None:
        self.assertIn('host, flavor, fleet', self.refuse())
        self.assertIn('show, group', self.refuse('host'))

    def test_debug_may_stand_anywhere(self) -> None:
        for words in (('--debug', 'host', 'show', '/none'),
                      ('host', '--debug', 'show', '/none'),
                      ('host', 'show', '/none', '--debug')):
            status, _, err = run(*words)
            self.assertEqual(2, status)
            self.assertRegex(err, r'^Traceback \(most recent call last\)')
            self.assertEqual(run('host', 'show', '/none')[2],
                             err.splitlines(True)[-1])
        self.assertNotIn('Traceback', run(
            'host', 'show', '--', '--debug')[2])

    def test_options_of_a_command_may_stand_before_its_noun(self) -> None:
        path = str(ROOT / 'etc/hpcvirt/topologies/hs06-2s-16c.json')
        expected = run('host', 'show', path, '-f', 'json')
        self.assertEqual(0, expected[0])
        for words in (('-f', 'json', 'host', 'show', path),
                      ('--format=json', 'host', 'show', path)):
            self.assertEqual(expected, run(*words))
        self.assertIn('nowhere', self.refuse(
            '--os-cloud', 'nowhere', 'flavor', 'apply', path))
        self.assertIn('--os-cloud', self.refuse(
            '--os-cloud', 'x', 'host', 'show', path))
        self.assertIn('a command is missing', self.refuse('-f', 'json'))

    def test_help_of_a_noun_lists_its_commands(self) -> None:
        status, out, _ = run('host', '--help')
        self.assertEqual(0, status)
        self.assertIn('Group hosts that are alike, and find those that '
                      'differ', out)
        self.assertIn('make-room', run('--help')[1])
        for words in (('bench', '--help'), ('bench', 'study', '--help')):
            self.assertIn('Compare the figures of a study', run(*words)[1])

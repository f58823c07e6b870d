# SPDX-License-Identifier: Apache-2.0

import argparse
import configparser
import io
import os
import pathlib
import unittest
from unittest import mock

import fixtures
import testtools

from hpcvirt import exception
from hpcvirt.cmd import cloud_arguments
from hpcvirt.cmd import command
from hpcvirt.cmd import main
from hpcvirt.cmd import terminal
from hpcvirt.cmd import yaml_file
from tests.builders import commands


class ConnectTest(unittest.TestCase):
    """Which cloud a command acts on."""

    def parsed(self, add, *words):
        parser = argparse.ArgumentParser()
        add(parser)
        for action in parser._actions:
            action.required = False
        return parser.parse_args(words)

    def test_the_session_of_the_program_around_it_is_used(self):
        for name in ('flavor apply', 'flavor lint', 'make-room'):
            parser = main.build_parser(name)
            for action in parser._actions:
                action.required = False
            args = parser.parse_args(
                ['--flavor', 'subject'] if name == 'make-room'
                else ['subject'])
            self.assertIsNone(args.connect)
            args.connect = lambda: 'its client'
            self.assertEqual('its client', cloud_arguments.connect(args))

    def test_placement_is_asked_with_the_session_around_it(self):
        args = self.parsed(cloud_arguments.add)
        args.connect = lambda: 'its client'
        args.connect_placement = mock.Mock(spec=(), return_value='adapter')
        cloud_arguments.connect_quarantine(args)
        args.connect_placement.assert_called_once_with()

    def test_a_cloud_that_is_named_comes_first(self):
        args = self.parsed(cloud_arguments.add, '--os-cloud', 'other')
        args.connect = self.fail
        with mock.patch('hpcvirt.cloud.session.compute',
                        autospec=True) as compute:
            cloud_arguments.connect(args)
        compute.assert_called_once_with('other')


#: What the options mean whose help is not the same everywhere.
MEANINGS = {
    '--apply': 'do what is otherwise only printed',
    '--bound': 'the worst ratio of a metric that passes',
    '--cold': 'allow cold migrations',
    '--expect': 'how a benchmark was run',
    '--flavor': 'a flavor',
    '--fleet': 'the fleet document',
    '--history': 'the file in which refusals are kept',
    '--html': 'write a page',
    '--image': 'an image',
    '--instead': 'a benchmark in place of one of the case',
    '--interval': 'the time between two readings',
    '--moves': 'the most moves',
    '--native': 'the host itself',
    '--network': 'a network on which instances are reached',
    '--os-cloud': 'an entry of clouds.yaml',
    '--pairs': 'the pairs that count',
    '--profile': 'the choices of the operator',
    '--replace': 'replace what is there and stands in the way',
    '--root': 'the root of the file system of a host',
    '--serve': 'serve metrics at an address',
    '--set': 'a setting of a benchmark',
    '--shape': 'instances x cores',
    '--source': 'the format of every PATH',
    '--this-launch': 'judge the launch that was measured',
    '--warm-up': 'what comes first and does not count',
}
#: The metavars of those that may be given in more than one way.
FORMS = {'--flavor': {'NAME', 'NAME|FILE'}, '--root': {'DIR', 'DIR|FILE'},
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


class WidthTest(unittest.TestCase):
    def setUp(self):
        self.enterContext(mock.patch.dict(os.environ))
        os.environ.pop('COLUMNS', None)

    def test_a_pipe_has_no_width(self):
        with mock.patch('sys.stdout', io.StringIO()):
            self.assertIsNone(terminal.width())

    def test_the_variable_has_the_last_word(self):
        os.environ['COLUMNS'] = '72'
        with mock.patch('sys.stdout', io.StringIO()):
            self.assertEqual(72, terminal.width())

    def test_a_terminal_has_its_own_width(self):
        leader, follower = os.openpty()
        self.addCleanup(os.close, leader)
        with open(follower, 'w') as stream, mock.patch('sys.stdout', stream):
            self.assertIsInstance(terminal.width(), int)


class TestRead(testtools.TestCase):
    def setUp(self):
        super().setUp()
        folder = self.useFixture(fixtures.TempDir()).path
        self.path = pathlib.Path(folder, 'p.yaml')

    def read(self, content):
        self.path.write_bytes(content)
        return yaml_file.read(str(self.path), 1000)

    def test_yaml_and_json_are_read(self):
        for content in (b'a: [1, x]\n', b'{"a": [1, "x"]}',
                        b' \n{"a": [1, "x"]}', b'--- {a: [1, x]}'):
            self.assertEqual({'a': [1, 'x']}, self.read(content))
        self.assertIsNone(self.read(b''))

    def refused(self, content, reason):
        exc = self.assertRaises(exception.InvalidInput, self.read, content)
        self.assertTrue(str(exc).startswith(f'{self.path}: '), str(exc))
        self.assertIn(reason, str(exc))

    def test_a_key_that_occurs_twice_is_refused(self):
        self.refused(b'a: 1\nb: 2\na: 3\n', "the key 'a' occurs twice")
        self.refused(b'a: {b: 1, b: 1}\n', "the key 'b' occurs twice")
        self.refused(b'{"a": 1, "a": 1}', "the key 'a' occurs twice")

    def test_what_is_no_yaml_is_refused(self):
        for content, reason in (
                (b'a: [', 'is not YAML'), (b'a: 2026-99-99', 'is not YAML'),
                (b'? [a]\n: 1\n', 'is not YAML'),
                (b'a: \xff', 'is not UTF-8'),
                (b'a: !!python/object:os.system x', 'is not YAML'),
                (b'{"a": NaN}', 'NaN is not JSON')):
            self.refused(content, reason)

    def test_a_file_that_is_too_large_is_refused(self):
        self.refused(b'#' * 1001, 'is larger than')

    def test_deep_nesting_is_refused(self):
        self.path.write_bytes(b'- ' * 50_000)
        exc = self.assertRaises(exception.InvalidInput, yaml_file.read,
                                str(self.path), 200_000)
        self.assertIn('nested too deeply', str(exc))


ROOT = pathlib.Path(__file__).parents[2]


def run(*words: str) -> tuple[int, str, str]:
    return commands.run(*words)


class TableTest(unittest.TestCase):
    def test_openstackclient_has_the_same_commands(self) -> None:
        config = configparser.ConfigParser()
        config.read(ROOT / 'setup.cfg')
        lines = config['entry_points']['openstack.hpc.v1'].split('\n')
        self.assertEqual(
            {f'hpc_{name.replace(" ", "_")} = {value}'
             for name, value in main.COMMANDS.items() if name != 'complete'},
            set(filter(None, lines)))

    def test_every_command_has_a_class_and_a_noun(self) -> None:
        program = main.HpcvirtApp()
        for name, entry in program.command_manager:
            with self.subTest(name):
                self.assertTrue(issubclass(entry.load(), command.Command))
                self.assertNotEqual('', command.get_summary(entry.load()))
                self.assertIn(name.split()[0], main.NOUNS)
                main.build_parser(name)


class ProgramTest(unittest.TestCase):
    def refuse(self, *words: str) -> str:
        status, out, err = run(*words)
        self.assertEqual((2, '', 1), (status, out, err.count('\n')), words)
        return err

    def test_a_wrong_command_names_the_nearest(self) -> None:
        for words, nearest in ((('topologi', 'show'), 'topology'),
                               (('bench', 'pars'), None),
                               (('bench', 'compar', 'a'), None),
                               (('topology', 'shwo'), 'show'),
                               (('topology', 'show', '--sourec', 'x'),
                                '--source')):
            with self.subTest(words):
                if nearest is not None:
                    self.assertIn(f'(did you mean {nearest}?)',
                                  self.refuse(*words))
                else:
                    self.assertNotIn('not a command', self.refuse(*words))

    def test_a_wrong_name_of_the_catalogue_names_the_nearest(self) -> None:
        for words, nearest in ((('bench', 'describe', 'straem'), 'stream'),
                               (('bench', 'run', 'osu-bw/mpl', '--where',
                                 'local'), None),
                               (('study', 'show', 'S4', '--case',
                                 '4x8-tune'), '4x8-tuned')):
            err = self.refuse(*words)
            if nearest is not None:
                self.assertIn(f'(did you mean {nearest}?)', err)

    def test_a_missing_command_names_all(self) -> None:
        self.assertIn('topology, host, flavor', self.refuse())
        self.assertIn('show, group', self.refuse('topology'))

    def test_debug_may_stand_anywhere(self) -> None:
        for words in (('--debug', 'topology', 'show', '/none'),
                      ('topology', '--debug', 'show', '/none'),
                      ('topology', 'show', '/none', '--debug')):
            status, _, err = run(*words)
            self.assertEqual(2, status)
            self.assertRegex(err, r'^Traceback \(most recent call last\)')
            self.assertEqual(run('topology', 'show', '/none')[2],
                             err.splitlines(True)[-1])
        self.assertNotIn('Traceback', run(
            'topology', 'show', '--', '--debug')[2])

    def test_options_of_a_command_may_stand_before_its_noun(self) -> None:
        path = str(ROOT / 'etc/hpcvirt/topologies/hs06-2s-16c.json')
        expected = run('topology', 'show', path, '-f', 'json')
        self.assertEqual(0, expected[0])
        for words in (('-f', 'json', 'topology', 'show', path),
                      ('--format=json', 'topology', 'show', path)):
            self.assertEqual(expected, run(*words))
        self.assertIn('nowhere', self.refuse(
            '--os-cloud', 'nowhere', 'flavor', 'apply', path))
        self.assertIn('--os-cloud', self.refuse(
            '--os-cloud', 'x', 'topology', 'show', path))
        self.assertIn('a command is missing', self.refuse('-f', 'json'))

    def test_help_of_a_noun_lists_its_commands(self) -> None:
        status, out, _ = run('topology', '--help')
        self.assertEqual(0, status)
        self.assertIn('Group hosts that are alike, and find those that '
                      'differ', out)
        self.assertIn('make-room', run('--help')[1])

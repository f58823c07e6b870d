# SPDX-License-Identifier: Apache-2.0

"""What the command does where its output cannot be written, and its errors."""

import contextlib
import importlib.metadata
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Sequence
from unittest import mock

from tests.builders import commands

ROOT = pathlib.Path(__file__).parents[3]
HOST = 'etc/hpcvirt/topologies/hs06-2s-16c.json'
STREAM = 'tests/data/bench/native_np1/hpccoutf.txt'

#: A command of each kind of output.
WRITERS = (
    'host show ' + HOST,
    'host show --format json ' + HOST,
    'flavor plan ' + HOST,
    'flavor plan --format yaml ' + HOST,
    'bench list',
    'bench list stream',
    'bench parse hpcc ' + STREAM,
    'bench study show S3',
    '--version',
    '--help',
    'flavor plan --help',
)
#: What is printed by rows, as a document, as it is, and by argparse.
USUAL = tuple(WRITERS[number] for number in (1, 2, 5, 10))
OTHERS = tuple(writer for writer in WRITERS if writer not in USUAL)


def shell(command: str, **environment: str) -> subprocess.CompletedProcess:
    """Run a command line of the shell in which hpcvirt is the command."""
    script = ('hpcvirt() { "$0" -m hpcvirt.cmd.main "$@"; }\n' + command)
    return subprocess.run(
        ['bash', '-c', script, sys.executable], capture_output=True, text=True,
        check=False, timeout=60, cwd=ROOT, env={**os.environ, **environment})


class OutputTest(unittest.TestCase):
    def assert_one_line(self, reason: str, command: str,
                        **environment: str) -> None:
        done = shell(command, **environment)
        self.assertEqual(2, done.returncode, done.stderr)
        self.assertRegex(done.stderr, f'^hpcvirt[^\n]*: [^\n]*{reason}'
                         '[^\n]*\n$')

    def test_a_full_disk_is_one_line(self) -> None:
        self.fill_the_disk(USUAL)

    def test_periodic_a_full_disk_is_one_line_of_more_commands(self) -> None:
        self.fill_the_disk(OTHERS)

    def fill_the_disk(self, writers: Sequence[str]) -> None:
        for writer in writers:
            with self.subTest(writer):
                self.assert_one_line(
                    'standard output cannot be written .No space left',
                    f'hpcvirt {writer} > /dev/full')

    def test_a_closed_output_is_one_line(self) -> None:
        for writer in WRITERS[:3]:
            with self.subTest(writer):
                self.assert_one_line('standard output is closed',
                                     f'hpcvirt {writer} >&-')

    def test_a_closed_or_full_standard_error_loses_nothing_else(self) -> None:
        expected = shell(f'hpcvirt flavor plan {HOST}').stdout
        for target in ('&-', '/dev/full'):
            with self.subTest(target):
                done = shell(f'hpcvirt flavor plan {HOST} 2>{target}')
                self.assertEqual((0, expected), (done.returncode, done.stdout))
                done = shell(f'hpcvirt flavor plan /nobody 2>{target}')
                self.assertEqual((2, '', ''), (
                    done.returncode, done.stdout, done.stderr))

    def test_a_reader_that_has_ended_is_no_error(self) -> None:
        self.end_the_reader(USUAL)

    def test_periodic_a_reader_of_more_commands_has_ended(self) -> None:
        self.end_the_reader(OTHERS)

    def end_the_reader(self, writers: Sequence[str]) -> None:
        for writer in writers:
            with self.subTest(writer):
                done = shell(f'hpcvirt {writer} | true; '
                             'echo ${PIPESTATUS[0]}')
                self.assertEqual(('0\n', ''), (done.stdout, done.stderr))

    def test_an_encoding_that_lacks_a_character_is_named(self) -> None:
        for encoding, name in (('latin-1', 'Ωmega'), ('ascii', 'Jürg')):
            with self.subTest(encoding):
                self.assert_one_line(
                    f'its encoding {encoding} lacks .*; set PYTHONIOENCODING',
                    f'hpcvirt flavor plan {name}={HOST}',
                    PYTHONIOENCODING=encoding, PYTHONUTF8='1')


class ErrorTest(unittest.TestCase):
    def test_the_version_is_that_of_the_package(self) -> None:
        done = shell('hpcvirt --version')
        self.assertEqual(
            (0, f'hpcvirt {importlib.metadata.version("hpcvirt")}\n', ''),
            (done.returncode, done.stdout, done.stderr))

    def test_a_defect_is_one_line_that_says_so(self) -> None:
        broken = ('import sys; from hpcvirt import topology; '
                  'topology.read = lambda *_: 1 / 0; '
                  'from hpcvirt.cmd import main; sys.exit(main.main())')
        done = subprocess.run(
            [sys.executable, '-c', broken, 'host', 'show'], text=True,
            capture_output=True, check=False, cwd=ROOT, timeout=60)
        self.assertEqual((2, ''), (done.returncode, done.stdout))
        self.assertEqual(
            'hpcvirt: internal error: ZeroDivisionError: division by zero; '
            'please report it with the output of "hpcvirt --debug"\n',
            done.stderr)

    def test_unusual_arguments_are_one_line(self) -> None:
        long = 'x' * 5000
        for command in (
                'flavor plan /:x --profile=--', 'host show --format=--',
                'host show -- -- --', 'host show --for=--',
                f'host show {long}', f'flavor plan {long}/{long}',
                f'flavor plan {HOST} --profile {long}',
                f'flavor lint ./{long}', f'bench parse hpcc {long}',
                f'bench compare {long} {long} --benchmark hpcc',
                f'bench compare {long}/* {long} --benchmark hpcc',
                f'bench report --html {long} --data .',
                'host show a\x1b[31mb', 'host show ""'):
            with (self.subTest(command[:60]), contextlib.chdir(ROOT),
                  tempfile.TemporaryDirectory() as data,
                  mock.patch.dict(os.environ, XDG_DATA_HOME=data)):
                done = commands.run(*shlex.split(command))
                self.assertEqual(2, done.status)
                self.assertRegex(done.err, r'^hpcvirt[^\n]*: [^\n]*\n$')
                self.assertNotIn('\x1b', done.err)
                self.assertNotIn('internal error', done.err)

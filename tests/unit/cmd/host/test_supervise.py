# SPDX-License-Identifier: Apache-2.0

import contextlib
import errno
import io
import os
import unittest

from hpcvirt.cmd import output
from hpcvirt.cmd.host import supervise
from tests.builders import commands
from tests.builders import folders
from tests.builders import supervised


class FullDisk(io.StringIO):
    """Standard output in a file for which there is no space."""

    def write(self, _text):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class SayTest(unittest.TestCase):
    def test_a_line_that_cannot_be_written_changes_no_decision(self):
        with (contextlib.redirect_stdout(output.Output(FullDisk())),
              contextlib.redirect_stderr(io.StringIO()) as errors):
            supervise.say('n1: quarantine is done')
        self.assertIn('No space left on device', errors.getvalue())


class SuperviseTest(unittest.TestCase):
    """The arguments and files of ``hpcvirt host supervise``."""

    def setUp(self):
        self.folder = folders.make(self)
        self.words = supervised.write(self.folder, 'n1', 0.0)

    def refuse(self, said, *words):
        commands.check_refused(self, said, commands.run(*self.words, *words))

    def test_bad_arguments_are_one_line(self):
        self.refuse('not allowed with', '--prometheus=http://x')
        self.refuse('not allowed with', '--gate=local', '--apply')
        self.refuse('--max-share', '--max-share=101')
        self.refuse('--max-per-hour', '--max-per-hour=0')
        self.words = ['host', 'supervise', '--state=x',
                      f'--classes={self.folder}/classes']
        self.refuse('is required')
        for url in ('ftp://x', 'file:///etc/passwd', 'x'):
            self.refuse('is no URL of HTTP', f'--prometheus={url}')

    def test_bad_classes_are_one_line(self):
        for text, said in (
                ('{}', 'has no host'), ('{"a": []}', 'has no host'),
                ('{"a": ["n1"], "b": ["n1"]}', 'is there twice'),
                ('{"a": ["../n1"]}', 'is not the name of a compute host'),
                ('{"a": "n1"}', 'must be a list'),
                ('[1]', 'must be a mapping'),
                ('a: [', 'classes')):
            (self.folder / 'classes').write_text(text)
            before = (self.folder / 'state').read_text()
            self.refuse(said)
            self.assertEqual(before, (self.folder / 'state').read_text())

    def test_a_bad_state_is_one_line(self):
        (self.folder / 'state').write_text('{"schema_version": 7}')
        self.refuse('this version of hpcvirt reads 1')

    def test_a_state_that_cannot_be_written_is_one_line(self):
        self.words[self.words.index('--state') + 1] = '/nowhere/state'
        self.refuse('cannot be written')

    def test_a_prometheus_that_does_not_answer_is_named(self):
        place = self.words.index('--textfiles')
        self.words[place:place + 2] = ['--prometheus', 'http://127.0.0.1:1']
        ended = commands.run(*self.words)
        self.assertEqual(2, ended.status)
        self.assertIn('Prometheus does not answer', ended.out)

# SPDX-License-Identifier: Apache-2.0

"""Standard input, pipes, FIFOs and devices as input of the command."""

import contextlib
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest
from collections.abc import Iterator
from unittest import mock

from hpcvirt.cmd import main
from tests.builders import folders

ROOT = pathlib.Path(__file__).parents[3]
HOST = ROOT / 'etc/hpcvirt/topologies/hs06-2s-16c.json'
STREAM = ROOT / 'tests/data/bench/native_np1/hpccoutf.txt'

#: Every argument that names a file to read.
READERS = (
    ('host', 'show', '{}'),
    ('flavor', 'plan', '{}'),
    ('flavor', 'plan', str(HOST), '--profile', '{}'),
    ('flavor', 'lint', '{}'),
    ('flavor', 'lint', '-', '--host', '{}'),
    ('bench', 'parse', 'hpcc', '{}'),
    ('bench', 'compare', '{}'),
    ('bench', 'compare', '{}', str(STREAM), '--benchmark', 'hpcc'),
    ('bench', 'compare', str(STREAM), '{}', '--benchmark', 'hpcc'),
    ('bench', 'compare', str(STREAM), str(STREAM), '--aa', '{}',
     '--benchmark', 'hpcc'),
    ('bench', 'report', '--html', '{}', '--data', '.'),
)


def hpcvirt(*words: str, **options: object) -> subprocess.CompletedProcess:
    """Run the command, which must not wait for anything."""
    return subprocess.run(
        [sys.executable, '-m', 'hpcvirt.cmd.main', *words], text=True,
        capture_output=True, check=False, timeout=60,
        env={**os.environ, 'PYTHONPATH': str(ROOT)},
        **(options or {'stdin': subprocess.DEVNULL}))


def here(*words: str) -> tuple[int, str, str]:
    """Run the command in this process: its status, output and errors."""
    raw, err = io.BytesIO(), io.StringIO()
    with (io.TextIOWrapper(raw, encoding='utf-8') as out,
          contextlib.redirect_stdout(out), contextlib.redirect_stderr(err)):
        status = main.main(words)
        out.flush()
        return status, raw.getvalue().decode(), err.getvalue()


@contextlib.contextmanager
def piped(content: bytes) -> Iterator[None]:
    """Let the standard input of this process be a pipe with a content."""
    source, sink = os.pipe()
    saved = os.dup(0)
    os.dup2(source, 0)
    os.close(source)

    def write() -> None:
        with open(sink, 'wb') as stream:
            stream.write(content)
    writer = threading.Thread(target=write)
    writer.start()
    try:
        with (open(0, encoding='utf-8', closefd=False) as stdin,
              mock.patch.object(sys, 'stdin', stdin)):
            yield
    finally:
        os.dup2(saved, 0)
        os.close(saved)
        writer.join()


class InputTest(unittest.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.folder = str(folders.make(self))

    def become_standard_input(self, content: str) -> None:
        """Let the file descriptor 0 be a file with a content."""
        saved = os.dup(0)
        self.addCleanup(os.close, saved)
        self.addCleanup(os.dup2, saved, 0)
        with tempfile.TemporaryFile() as stream:
            stream.write(content.encode())
            stream.seek(0)
            os.dup2(stream.fileno(), 0)

    def test_no_argument_waits_for_a_fifo_or_reads_a_device(self) -> None:
        fifo = os.path.join(self.folder, 'fifo')
        os.mkfifo(fifo)
        self.become_standard_input('[]')
        for words in READERS:
            for path, kind in ((fifo, 'a FIFO'),
                               ('/dev/full', 'a character device')):
                with self.subTest(words=words, path=path):
                    os.lseek(0, 0, os.SEEK_SET)
                    with contextlib.chdir(self.folder):
                        answer = here(*(word.format(path) for word in words))
                    self.assertEqual(
                        (2, '', f'hpcvirt: {path}: is {kind}, not a file\n'),
                        answer)

    def test_standard_input_is_read_as_a_file_is(self) -> None:
        profile = os.path.join(self.folder, 'profile.yaml')
        pathlib.Path(profile).write_text('base: dense\n')
        plan = os.path.join(self.folder, 'plan.json')
        pathlib.Path(plan).write_text(here(
            'flavor', 'plan', str(HOST), '--format', 'json')[1])
        for path, words in (
                (str(HOST), ('host', 'show', '{}')),
                (str(HOST), ('flavor', 'plan', '{}')),
                (str(HOST), ('flavor', 'plan', 'n7={}')),
                (profile, ('flavor', 'plan', str(HOST), '--profile', '{}')),
                (plan, ('flavor', 'lint', '{}')),
                (str(STREAM), ('bench', 'parse', 'hpcc', '{}')),
                (str(STREAM), ('bench', 'compare', '{}', str(STREAM),
                               '--benchmark', 'hpcc'))):
            with self.subTest(words=words):
                expected = here(*(word.format(path) for word in words))
                self.assertNotEqual('', expected[1])
                for name in ('-', '/dev/stdin'):
                    with piped(pathlib.Path(path).read_bytes()):
                        self.assertEqual(expected, here(*(
                            word.format(name) for word in words)))

    def test_a_pipe_of_the_shell_is_read(self) -> None:
        command = ('"$0" -m hpcvirt.cmd.main bench compare <(cat "$1") - '
                   '--benchmark hpcc < "$1"')
        done = subprocess.run(
            ['bash', '-c', command, sys.executable, str(STREAM)],
            capture_output=True, text=True, check=False, cwd=ROOT, timeout=60)
        self.assertEqual('', done.stderr)
        self.assertIn('INCONCLUSIVE', done.stdout)

    def test_standard_input_is_read_once(self) -> None:
        done = hpcvirt('flavor', 'plan', '-', 'b=-', input=HOST.read_text())
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertIn('2 hosts: hs06-2s-16c, b\n', done.stdout)

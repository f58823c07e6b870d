# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

import contextlib
import io
import json
import os
import pathlib
import tempfile
import unittest
from unittest import mock

from hpcvirt.cmd import main
from hpcvirt.topology import snapshot
from tests.unit.topology import machines

ROOT = pathlib.Path(__file__).parents[4]
BOX = str(ROOT / 'etc/hpcvirt/topologies/single-1s-8c-smt.json')


class Terminal(io.StringIO):
    """Standard output with an encoding."""

    def __init__(self, encoding: str = 'utf-8') -> None:
        super().__init__()
        self._encoding = encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding


def run(*words: str, encoding: str = 'utf-8') -> tuple[int, str, str]:
    out, err = Terminal(encoding), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main.main(['topology', 'show', *words])
        except SystemExit as exc:
            status = int(exc.code or 0)
    return status, out.getvalue(), err.getvalue()


class ShowTest(unittest.TestCase):
    def test_a_drawing_is_the_default(self) -> None:
        status, out, err = run(BOX)
        self.assertEqual((0, ''), (status, err))
        self.assertIn('package 0 · cell 0', out)

    def test_json_is_the_snapshot(self) -> None:
        status, out, _ = run(BOX, '--format', 'json')
        self.assertEqual(0, status)
        self.assertEqual(json.loads(pathlib.Path(BOX).read_text()),
                         json.loads(out))

    def test_the_drawing_is_as_wide_as_the_terminal(self) -> None:
        path = str(ROOT / 'etc/hpcvirt/topologies/epyc-2s-64c-nps4.json')
        longest = []
        for columns, most in (('20', 60), ('80', 80), ('120', 120),
                              ('1000', 140)):
            with mock.patch.dict(os.environ, COLUMNS=columns):
                _, out, _ = run(path)
            longest.append(max(map(len, out.splitlines())))
            self.assertLessEqual(longest[-1], most)
        self.assertEqual(sorted(longest), longest)
        self.assertLess(longest[0], longest[-1])

    def test_the_drawing_is_ascii_if_the_encoding_is(self) -> None:
        _, out, _ = run(BOX, encoding='ascii')
        self.assertTrue(out.isascii())
        self.assertIn('+= package 0 . cell 0 ==', out)

    def test_json_is_always_ascii(self) -> None:
        with tempfile.TemporaryDirectory() as scratch:
            path = pathlib.Path(scratch, 'x')
            host = machines.of_cells(machines.cell(0, (0,)))
            path.write_text(snapshot.dumps(host).replace('box', 'köln'))
            _, out, _ = run(str(path), '--format', 'json')
        self.assertTrue(out.isascii())
        self.assertEqual('köln', json.loads(out)['name'])


class RefusalTest(unittest.TestCase):
    """Bad input: one line on stderr, nothing on stdout, status 2."""

    def expect_refusal(self, *words: str) -> str:
        status, out, err = run(*words)
        self.assertEqual((2, '', 1), (status, out, err.count('\n')), words)
        self.assertTrue(err.startswith('hpcvirt'), err)
        return err

    def test_one_line_names_the_file(self) -> None:
        with tempfile.TemporaryDirectory() as scratch:
            path = pathlib.Path(scratch, 'bad')
            for data in (b'', b'{', b'<a', b'\0' * 100, b'hello\nworld',
                         b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>',
                         b'{"schema_version": 2}'):
                path.write_bytes(data)
                for source in ('auto', 'snapshot', 'libvirt', 'hwloc',
                               'sysfs'):
                    self.assertIn('bad', self.expect_refusal(
                        str(path), '--source', source))
            self.expect_refusal(scratch)
            self.expect_refusal(scratch, '--source', 'libvirt')
            self.expect_refusal(f'{scratch}/none')

    def test_a_file_over_the_limit_is_refused(self) -> None:
        with tempfile.NamedTemporaryFile() as stream:
            stream.truncate(64 * 1024 * 1024 + 1)
            self.assertIn('is larger than 65536 KiB',
                          self.expect_refusal(stream.name))

    def test_line_breaks_in_names_stay_out_of_the_error(self) -> None:
        self.expect_refusal('a\nb')
        self.expect_refusal('a\x1b[31mb')

    def test_sources_of_files_need_a_path(self) -> None:
        self.expect_refusal('--source', 'hwloc')

    def test_unknown_choices_are_refused(self) -> None:
        self.expect_refusal(BOX, '--source', 'acpi')
        self.expect_refusal(BOX, '--format', 'xml')

# SPDX-License-Identifier: Apache-2.0

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
from tests.builders import commands
from tests.builders import folders
from tests.builders import machines

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


def run(*words: str, encoding: str = 'utf-8', verb: str = 'show',
        ) -> commands.Ended:
    out, err = Terminal(encoding), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main.main(['host', verb, *words])
        except SystemExit as exc:
            status = int(exc.code or 0)
    return commands.Ended(status, out.getvalue(), err.getvalue())


class ShowTest(unittest.TestCase):
    def test_a_drawing_is_the_default(self) -> None:
        status, out, err = run(BOX)
        self.assertEqual((0, ''), (status, err))
        self.assertIn('socket 0 · cell 0', out)

    def test_json_is_the_snapshot(self) -> None:
        self.assertEqual(
            json.loads(pathlib.Path(BOX).read_text()),
            commands.read_document(self, run(BOX, '--format', 'json')))

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
        self.assertIn('+= socket 0 . cell 0 ==', out)

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
        return commands.check_refused(self, 'hpcvirt', run(*words))

    def test_one_line_names_the_file(self) -> None:
        with tempfile.TemporaryDirectory() as scratch:
            path = pathlib.Path(scratch, 'bad')
            for data in (b'', b'{', b'<a', b'\0' * 100, b'hello\nworld',
                         b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>',
                         b'{"schema_version": 2}'):
                path.write_bytes(data)
                self.assertIn('bad', self.expect_refusal(str(path)))
            self.expect_refusal(scratch)
            self.expect_refusal(f'{scratch}/none')

    def test_a_file_over_the_limit_is_refused(self) -> None:
        with tempfile.NamedTemporaryFile() as stream:
            stream.truncate(64 * 1024 * 1024 + 1)
            self.assertIn('is larger than 65536 KiB',
                          self.expect_refusal(stream.name))

    def test_unknown_choices_are_refused(self) -> None:
        self.expect_refusal(BOX, '--format', 'xml')


PATHS = [f'n{number}={BOX}' for number in range(3)]


def run_group(*words: str) -> commands.Ended:
    return run(*words, verb='group')


class GroupTest(unittest.TestCase):
    def write_odd(self) -> str:
        """Write the topology of a host with less memory."""
        plain = json.loads(pathlib.Path(BOX).read_text())
        plain['cells'][0]['memory_mib'] //= 2
        plain['cells'][0]['pages'] = {'4': 1024}
        path = folders.make(self) / 'odd.json'
        path.write_text(json.dumps(plain))
        return f'odd={path}'

    def test_alike_hosts_are_no_finding(self) -> None:
        status, out, err = run_group(*PATHS)
        self.assertEqual((0, ''), (status, err))
        self.assertRegex(out, '(?s)^Class 1: 3 hosts, .*n0, n1, n2')
        self.assertNotIn('Odd', out)

    def test_an_odd_host_is_a_finding(self) -> None:
        status, out, _ = run_group(*PATHS, self.write_odd())
        self.assertEqual(1, status)
        self.assertIn('odd: cell 0 has', out)

    def test_programs_get_a_document(self) -> None:
        (group,) = commands.read_document(self, run_group(
            '--format', 'json', *PATHS, self.write_odd()), status=1)
        self.assertEqual(['n0', 'n1', 'n2'], group['hosts'])
        self.assertEqual('memory',
                         group['odd'][0]['differences'][0]['subject'])

    def test_an_unreadable_host_is_an_error_of_one_line(self) -> None:
        commands.check_refused(self, '', run_group(*PATHS, '/nowhere'))


class RowsTest(unittest.TestCase):
    """What every report of the program has in common."""

    def test_columns_are_chosen_by_any_spelling(self) -> None:
        for name in ('memory_mib', 'Memory Mib', 'MEMORY_MIB'):
            found = commands.read_document(
                self, run(BOX, '-f', 'json', '-c', 'id', '-c', name))
            self.assertEqual([{'Id': 0, 'Memory Mib': 32224}], found)

    def test_rows_are_sorted(self) -> None:
        path = str(ROOT / 'etc/hpcvirt/topologies/hs06-2s-16c.json')
        _, out, _ = run(path, '-f', 'value', '-c', 'id', '--sort-column',
                        'id', '--sort-descending')
        numbers = [int(line) for line in out.split()]
        self.assertEqual(sorted(numbers, reverse=True), numbers)
        self.assertLess(1, len(numbers))

    def test_csv_has_a_heading(self) -> None:
        self.assertEqual('"Id","Socket"\n0,0\n', run(
            BOX, '-f', 'csv', '-c', 'id', '-c', 'socket')[1])

    def test_a_table_of_chosen_columns_is_drawn_as_all_tables(self) -> None:
        self.assertEqual('Id  Socket\n--- ------\n 0       0\n', run(
            BOX, '-c', 'id', '-c', 'socket')[1])

    def test_a_wrong_column_or_format_names_the_nearest(self) -> None:
        for words, nearest in ((('-c', 'memry_mib'), 'Memory Mib'),
                               (('-f', 'jsn'), 'json')):
            status, out, err = run(BOX, *words)
            self.assertEqual((2, ''), (status, out))
            self.assertIn('choose from', err)
            self.assertIn(f'(did you mean {nearest}?)', err)

# SPDX-License-Identifier: Apache-2.0

import json
import os
import stat
import threading
import unittest

from hpcvirt import exception
from hpcvirt import output_file
from tests.builders import folders


class ReplaceTest(unittest.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = folders.make(self)

    def test_a_file_is_replaced_with_its_permissions(self):
        path = self.folder / ('x' * 255)
        for content, mode in ((b'old', 0o644), (b'new', 0o600)):
            output_file.replace(path, content, mode)
            self.assertEqual(content, path.read_bytes())
            self.assertEqual(mode, stat.S_IMODE(path.stat().st_mode))
        self.assertEqual([path.name], os.listdir(self.folder))

    def test_a_failure_leaves_what_was_there_and_no_draft(self):
        path = self.folder / 'taken'
        path.mkdir()
        self.assertRaises(OSError, output_file.replace, path, b'new')
        self.assertEqual(['taken'], os.listdir(self.folder))


def append_line(path, document):
    with output_file.appending(path, 0o644) as stream:
        output_file.append(stream, json.dumps(document).encode() + b'\n')


class LinesTest(unittest.TestCase):
    def setUp(self):
        self.folder = folders.make(self)
        self.path = self.folder / 'verdicts.jsonl'

    def read(self):
        return [json.loads(line)
                for line in self.path.read_text().splitlines()]

    def test_many_writers_lose_nothing(self):
        def append(number):
            for count in range(20):
                append_line(str(self.path), {
                    'host': number, 'n': count, 'text': 'x' * 9000})
        threads = [threading.Thread(target=append, args=(number,))
                   for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = [(each['host'], each['n']) for each in self.read()]
        self.assertEqual([(host, n) for host in range(8) for n in range(20)],
                         sorted(found))

    def test_an_unfinished_line_is_closed(self):
        self.path.write_text('{"host": "n1"}\n{"host": "n')
        append_line(str(self.path), {'host': 'n3'})
        first, cut, last = self.path.read_text().splitlines()
        self.assertEqual(['n1', 'n3'], [
            json.loads(line)['host'] for line in (first, last)])
        self.assertEqual('{"host": "n', cut)

    def test_opening_it_changes_nothing(self):
        for content in ('', '{"host": "n1"}'):
            self.path.write_text(content)
            with output_file.appending(str(self.path), 0o644):
                pass
            self.assertEqual(content, self.path.read_text())

    def test_only_a_file_is_written(self):
        os.mkfifo(self.path)
        other = self.folder / 'link'
        other.symlink_to('/dev/null')
        for path in (self.path, other, self.folder, '/dev/full',
                     self.folder / 'none' / 'x'):
            with self.assertRaises(exception.InvalidInput, msg=path):
                append_line(str(path), {})

# SPDX-License-Identifier: Apache-2.0

import gzip
import io
import os
import socket
import sys
import unittest
from unittest import mock

from hpcvirt import exception
from hpcvirt import input_file
from tests.builders import folders
from tests.builders import refusals


class ContentTest(unittest.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.path = folders.make(self) / 'file'

    def refused(self, pattern: str, path: str | None = None) -> None:
        self.assertRegex(refusals.message(
            self, input_file.content, self.path if path is None else path,
            10), pattern)

    def test_a_whole_file_is_read(self) -> None:
        self.path.write_bytes(b'0123456789')
        self.assertEqual(b'0123456789', input_file.content(self.path, 10))

    def test_a_file_that_is_too_large_is_refused(self) -> None:
        self.path.write_bytes(b'0123456789a')
        self.refused('file: is larger than')

    def test_a_file_of_unknown_size_that_is_too_large_is_refused(self) -> None:
        self.refused('is larger than', '/proc/self/status')

    def test_a_missing_file_is_refused(self) -> None:
        self.refused(r'file: cannot be read \(No such file')

    def test_a_directory_is_refused(self) -> None:
        self.path.mkdir()
        self.refused('file: is a directory, not a file')

    def test_a_fifo_is_refused_without_blocking(self) -> None:
        os.mkfifo(self.path)
        self.refused('file: is a FIFO, not a file')

    def test_a_socket_is_refused(self) -> None:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(self.path))
            self.refused('file: is a socket, not a file')

    def test_a_device_is_refused(self) -> None:
        self.refused('/dev/zero: is a character device', '/dev/zero')

    def test_a_circular_link_is_refused(self) -> None:
        self.path.symlink_to(self.path)
        self.refused('file: cannot be read')

    def test_impossible_paths_are_refused(self) -> None:
        for path in ('', 'a\0b', 'x' * 5000, '/dev/null/x', '/none/\udcff'):
            self.refused('cannot be read', path)

    def test_a_pipe_that_is_open_is_read(self) -> None:
        for folder in ('/dev/fd', '/proc/self/fd', f'/proc/{os.getpid()}/fd'):
            reader, writer = os.pipe()
            self.addCleanup(os.close, reader)
            with os.fdopen(writer, 'wb') as stream:
                stream.write(b'0123456789')
            with self.subTest(folder=folder):
                self.assertEqual(
                    b'01234', input_file.beginning(f'{folder}/{reader}', 5))

    def test_no_more_than_the_beginning_is_read(self) -> None:
        self.path.write_bytes(b'0123456789')
        self.assertEqual(b'012', input_file.beginning(self.path, 3))


    def test_files_of_the_kernel_without_end_are_refused(self) -> None:
        if not os.geteuid():
            self.refused('has no end|cannot be read|is larger', '/proc/kmsg')
        self.refused('is larger than', '/proc/self/pagemap')

    def test_a_file_that_takes_too_long_is_refused(self) -> None:
        self.path.write_bytes(b'0')
        with self.assertRaisesRegex(exception.InvalidInput, 'longer than 0 s'):
            input_file.content(self.path, 10, seconds=0)

    def test_a_file_of_another_user_may_be_refused(self) -> None:
        self.path.write_bytes(b'0')
        user = os.geteuid()
        self.assertEqual(b'0', input_file.content(
            self.path, 10, owners={user}))
        with self.assertRaisesRegex(exception.InvalidInput, 'another user'):
            input_file.content(self.path, 10, owners={user + 1})

    def test_what_is_missing_can_be_told_from_what_is_wrong(self) -> None:
        self.assertIsNone(input_file.find_content(self.path, 10))
        self.path.mkdir()
        self.assertIsNone(input_file.find_content(self.path / 'a' / 'b', 10))
        self.assertRaises(exception.InvalidInput, input_file.find_content,
                          self.path, 10)

    def test_a_link_is_followed_only_if_it_may_be(self) -> None:
        target = self.path.with_name('target')
        target.write_bytes(b'0')
        self.path.symlink_to(target)
        with input_file.open_file(self.path, 'x') as stream:
            self.assertEqual(b'0', input_file.read_whole(stream, 1, 'x'))
        with self.assertRaisesRegex(exception.InvalidInput,
                                    'x: is a symbolic link'), \
                input_file.open_file(self.path, 'x', follow=False):
            pass


class LinesTest(unittest.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.path = folders.make(self) / 'file'

    def test_the_number_of_lines_has_a_limit(self) -> None:
        for data in (b'a\n' * 3, gzip.compress(b'a\n' * 3)):
            self.path.write_bytes(data)
            self.assertEqual([b'a\n'] * 3,
                             list(input_file.lines(self.path, 9, 3)))
            found = input_file.lines(self.path, 9, 2)
            self.assertEqual([b'a\n'] * 2, [next(found), next(found)])
            with self.assertRaisesRegex(exception.InvalidInput,
                                        'more than 2 lines'):
                next(found)

    def read_part(self, what: str) -> list[bytes]:
        """Read the lines that can be read, and say why not all."""
        found: list[bytes] = []
        with self.assertRaisesRegex(input_file.Damaged, what):
            # The lines that precede the error stay in the list.
            found.extend(input_file.lines(self.path, 9))
        return found

    def test_what_gzip_expands_has_a_number_of_lines(self) -> None:
        with mock.patch.object(input_file, 'MAX_EXPANDED_LINES', 10):
            self.path.write_bytes(gzip.compress(b'a\n' * 10))
            self.assertEqual(10, len(list(input_file.lines(self.path, 9))))
            self.path.write_bytes(gzip.compress(b'a\n' * 11))
            self.assertEqual([b'a\n'] * 10,
                             self.read_part('more than 10 lines; expand it'))
            # One that is not compressed is read.
            self.path.write_bytes(b'a\n' * 11)
            self.assertEqual(11, len(list(input_file.lines(self.path, 9))))

    def test_what_gzip_expands_has_a_size(self) -> None:
        with mock.patch.object(input_file, 'MAX_EXPANDED_BYTES', 3 << 20):
            self.path.write_bytes(gzip.compress(b'12345678' * (3 << 17)))
            self.assertEqual(
                3 << 20, sum(map(len, input_file.lines(self.path, 9))))
            self.path.write_bytes(gzip.compress(b'12345678' * (4 << 17)))
            found = self.read_part('more than 3 MiB; expand it')
            self.assertLessEqual(sum(map(len, found)), 3 << 20)

    def test_what_gzip_expands_has_a_time(self) -> None:
        self.path.write_bytes(gzip.compress(b'a\n' * (2 << 20)))
        with mock.patch.object(input_file, 'MAX_SECONDS', 0.0):
            self.assertEqual([], self.read_part('longer than 0 s; expand it'))

    def test_what_precedes_a_damaged_place_is_read(self) -> None:
        data = gzip.compress(os.urandom(1 << 20).hex().encode())
        self.path.write_bytes(data[:len(data) // 2])
        size = sum(map(len, self.read_part('can be read only in part')))
        self.assertLess(1 << 19, size)
        self.path.write_bytes(data + b'x')
        # The line with the damaged place is lost.
        size = sum(map(len, self.read_part('can be read only in part')))
        self.assertLessEqual((2 << 20) - 9, size)


class StdinTest(unittest.TestCase):
    def setUp(self) -> None:
        super().setUp()
        stream = io.TextIOWrapper(io.BytesIO(b'0123456789'))
        self.enterContext(mock.patch.object(sys, 'stdin', stream))

    def refused(self, pattern: str, most: int) -> None:
        self.assertRegex(
            refusals.message(self, input_file.content, '-', most), pattern)

    def test_a_hyphen_is_standard_input(self) -> None:
        self.assertEqual(b'0123456789', input_file.content('-', 10))

    def test_too_much_is_refused(self) -> None:
        self.refused('standard input: is larger', 9)

    def test_it_is_read_once(self) -> None:
        input_file.content('-', 10)
        self.refused('standard input: can be read only once', 10)

    def test_it_may_be_closed(self) -> None:
        with mock.patch.object(sys, 'stdin', None):
            self.refused('standard input: is closed', 10)

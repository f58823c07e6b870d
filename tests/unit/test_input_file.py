# SPDX-License-Identifier: Apache-2.0

import io
import os
import socket
import sys
import unittest
from unittest import mock

from hpcvirt import exception
from hpcvirt import input_file
from tests.builders import folders


class ContentTest(unittest.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.path = folders.make(self) / 'file'

    def refused(self, pattern: str, path: str | None = None) -> None:
        with self.assertRaisesRegex(exception.InvalidInput, pattern):
            input_file.content(self.path if path is None else path, 10)

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


class StdinTest(unittest.TestCase):
    def setUp(self) -> None:
        super().setUp()
        stream = io.TextIOWrapper(io.BytesIO(b'0123456789'))
        self.enterContext(mock.patch.object(sys, 'stdin', stream))

    def refused(self, pattern: str, most: int) -> None:
        with self.assertRaisesRegex(exception.InvalidInput, pattern):
            input_file.content('-', most)

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

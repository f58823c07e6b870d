# SPDX-License-Identifier: Apache-2.0

import os
import tempfile
import unittest
from unittest import mock

from hpcvirt import exception
from hpcvirt.bench.results import database

SECRETS = ('postgresql+psycopg2://me:pa55@db/x',
           'postgresql+psycopg2://me:@db/x',
           'postgresql+psycopg2://me@db/x?password=pa55',
           'postgresql+psycopg2://me@db/x?a=b&passwd=pa55',
           'postgresql+psycopg2://me@db/x?PASSWORD=pa55',
           'postgresql+psycopg2://me@db/x?%70assword=pa55',
           'postgresql+psycopg2://db/x?options=password%3Dpa55',
           'mysql+pymysql://me@db/x?pwd=pa55')
WRONG = ('nonsense', '', 'postgresql://me@db:port/x', 'postgresql://me@[::1/x',
         'postgresql:me:pa55@db', 'mysql+pymysql://me:pa55@db:99x/x')


class ArgumentTest(unittest.TestCase):
    def test_a_password_is_refused_and_not_repeated(self) -> None:
        for text in SECRETS:
            with (self.subTest(text),
                  self.assertRaises(exception.InvalidInput) as caught):
                database.parse_argument(text)
            self.assertIn('HPCVIRT_STORE_PASSWORD', str(caught.exception))
            self.assertNotIn('pa55', str(caught.exception))

    def test_the_password_comes_from_the_environment(self) -> None:
        with mock.patch.dict(os.environ, HPCVIRT_STORE_PASSWORD='p@:55'):
            url = database.parse_argument('postgresql+psycopg2://me@db/x')
            self.assertEqual('p@:55', url.password)
            self.assertIsNone(database.parse_argument('sqlite:///x').password)

    def test_what_is_no_url_is_refused_and_not_repeated(self) -> None:
        for text in WRONG:
            with (self.subTest(text),
                  self.assertRaises(exception.InvalidInput) as caught):
                database.parse_url(text)
            self.assertNotIn('pa55', str(caught.exception))


class ConnectTest(unittest.TestCase):
    def test_a_server_that_cannot_be_used_is_one_line(self) -> None:
        for text in ('mysql+nodriver://me:pa55@localhost/x',
                     'postgresql+psycopg2://me:pa55@127.0.0.1:1/x',
                     'mysql+pymysql://me:pa55@127.0.0.1:1/x',
                     'sqlite+pysqlcipher://:pa55@/x',
                     'sqlite:////proc/none/x',
                     'sqlite:////dev/null/x', 'sqlite:///x?timeout=never',
                     'sqlite:////' + 'x' * 5000):
            with (self.subTest(text),
                  self.assertRaises(exception.Unreachable) as caught,
                  mock.patch('time.sleep', autospec=True)):
                database.connect(database.parse_url(text))
            self.assertNotIn('pa55', str(caught.exception))
            self.assertNotIn('\n', str(caught.exception))

    def test_a_name_has_no_secret(self) -> None:
        self.assertEqual('mysql+pymysql://db/x', database.format_url(
            database.parse_url('mysql+pymysql://me:pa55@db/x?ssl_key=pa55')))


class ResolveTest(unittest.TestCase):
    def test_any_name_of_a_directory_is_taken_literally(self) -> None:
        for name in ('a?b', 'a#b', 'a%20b', 'a:b@c', 'a b', 'é'):
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                directory = os.path.join(folder, name)
                url = database.resolve(None, directory)
                database.make_parent(url)
                database.connect(url).connect().close()
                self.assertEqual([name], os.listdir(folder))
                self.assertEqual(['bench.sqlite'], os.listdir(directory))

    def test_what_is_no_file_is_refused(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'bench.sqlite')
            os.mkfifo(path)
            for url in (None, f'sqlite:///{path}', f'sqlite:///{folder}'):
                with (self.subTest(url), self.assertRaisesRegex(
                        exception.InvalidInput, 'is not a file')):
                    database.resolve(url, folder)

# SPDX-License-Identifier: Apache-2.0

import testtools

from hpcvirt import exception
from hpcvirt.cmd import yaml_file
from tests.builders import folders
from tests.builders import refusals


class TestRead(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.path = folders.make(self) / 'p.yaml'

    def read(self, content):
        self.path.write_bytes(content)
        return yaml_file.read(str(self.path), 1000)

    def test_yaml_and_json_are_read(self):
        for content in (b'a: [1, x]\n', b'{"a": [1, "x"]}',
                        b' \n{"a": [1, "x"]}', b'--- {a: [1, x]}'):
            self.assertEqual({'a': [1, 'x']}, self.read(content))
        self.assertIsNone(self.read(b''))

    def refused(self, content, reason):
        said = refusals.message(self, self.read, content)
        self.assertTrue(said.startswith(f'{self.path}: '), said)
        self.assertIn(reason, said)

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

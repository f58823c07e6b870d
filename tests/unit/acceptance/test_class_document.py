# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt import exception
from hpcvirt.acceptance import class_document

PLAIN = {'kind': 'acceptance', 'schema_version': 1}


class ReadTest(unittest.TestCase):
    def test_a_target_has_nothing_else_in_braces(self):
        found = class_document.read({**PLAIN, 'gate': 'ssh://r@{host}'}, 'a')
        self.assertEqual('ssh://r@{host}', found.gate)
        for key in ('gate', 'native', 'audit'):
            for text in ('ssh://{hots}', 'ssh://{host}}', '{', '', 5):
                with self.subTest(key, text=text), self.assertRaisesRegex(
                        exception.InvalidInput, f'^a: {key}: must be text '):
                    class_document.read({**PLAIN, key: text}, 'a')

    def test_the_wrong_key_and_the_missing_one_are_named(self):
        for plain, said in (
                ([], "a: must be a mapping with the key 'kind'"),
                ({'schema_version': 1}, 'a: must be a mapping with the key '),
                ({'kind': 'acceptance'}, "'schema_version'"),
                ({**PLAIN, 'flavor': 'x'}, r'\(did you mean flavors\?\)')):
            with self.subTest(plain), self.assertRaisesRegex(
                    exception.InvalidInput, said):
                class_document.read(plain, 'a')

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

"""Our extra specs in Nova's API validation, and Nova's in our vocabulary."""

import unittest

from nova import exception as nova_exception
from nova.api.validation.extra_specs import validators

from hpcvirt.specs import key
from hpcvirt.specs import vocabulary

TYPES = {key.Kind.INTEGER: int, key.Kind.BOOLEAN: bool, key.Kind.CHOICE: str,
         key.Kind.TEXT: str}


class OwnNamespaceTest(unittest.TestCase):
    """What ``nova.api.validation.extra_specs`` does once we are installed."""

    def assert_refused(self, name, value):
        self.assertRaises(nova_exception.ValidationError,
                          validators.validate, name, value)

    def test_good_values_pass(self):
        for name, value in (('hpcvirt:numa_scope', 'host'),
                            ('hpcvirt:numa_scope', 'package'),
                            ('hpcvirt:exclusive_cells', 'true'),
                            ('hpcvirt:exclusive_cells', 'No'),
                            ('hpcvirt:generated_by', 'hpcvirt-1'),
                            ('hpcvirt:generated_by', 'hpcvirt-1+0123abcd')):
            with self.subTest(name=name, value=value):
                validators.validate(name, value)

    def test_bad_values_are_refused(self):
        for name, value in (('hpcvirt:numa_scope', 'socket'),
                            ('hpcvirt:numa_scope', ''),
                            ('hpcvirt:exclusive_cells', 'maybe'),
                            ('hpcvirt:generated_by', 'somebody')):
            with self.subTest(name=name, value=value):
                self.assert_refused(name, value)

    def test_unknown_keys_of_the_namespace_are_refused(self):
        for name in ('hpcvirt:numa_scopes', 'hpcvirt:', 'hpcvirt:x:y'):
            with self.subTest(name=name):
                self.assert_refused(name, 'host')

    def test_refusal_names_the_values(self):
        with self.assertRaisesRegex(nova_exception.ValidationError,
                                    'host, package'):
            validators.validate('hpcvirt:numa_scope', 'rack')


class VocabularyAgainstNovaTest(unittest.TestCase):
    """The part of the vocabulary that is Nova's is as Nova has it."""

    def setUp(self):
        super().setUp()
        self.theirs = {
            name: validator
            for name, validator in validators.VALIDATORS.items()
            if name.partition(':')[0] in ('hw', 'pci_passthrough')}

    def test_every_key_of_nova_is_known(self):
        ours = {row.name for row in vocabulary.KEYS}
        self.assertEqual(set(), set(self.theirs) - ours)

    def test_types_and_values_are_those_of_nova(self):
        compared = 0
        for row in vocabulary.KEYS:
            validator = self.theirs.get(row.name)
            if validator is None:
                continue
            compared += 1
            value = validator.value
            with self.subTest(name=row.name):
                if row.pattern or row.kind is not key.Kind.TEXT:
                    self.assertEqual(TYPES[row.kind], value['type'])
                    # An older Nova may know fewer values.
                    self.assertEqual(set(), set(value.get('enum', ()))
                                     - set(row.choices))
                    self.assertEqual(
                        row.pattern, self.pattern_of(validator))
                    self.assertEqual(row.minimum, value.get('min'))
                    self.assertEqual(row.maximum, value.get('max'))
        self.assertGreater(compared, 30)

    def pattern_of(self, validator):
        pattern = validator.value.get('pattern')
        return pattern and pattern.replace(r'(\^)?', r'\^?')

    def test_interpreted_keys_are_known_to_nova(self):
        names = {row.name for row in vocabulary.INTERPRETED
                 if row.namespace in ('hw', 'pci_passthrough')}
        self.assertEqual(set(), names - set(self.theirs))

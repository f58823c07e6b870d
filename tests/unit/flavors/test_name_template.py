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

import unittest

from hpcvirt.flavors import name_template


class TemplateTest(unittest.TestCase):

    def test_a_good_template_is_read_as_it_stands(self):
        for form in (name_template.TEMPLATE, 'fixed', '{cores}c-{memory}',
                     ''.join(f'{{{field}}}'
                             for field in name_template.FIELDS)):
            self.assertEqual(form, name_template.read(form))

    def test_a_bad_template_is_refused(self):
        for form, pattern in (
                ('{core}', 'unknown field {core}; known: prefix'),
                ('{cores:>999999999}', 'unknown field'),
                ('{cores!r}', 'unknown field'),
                ('{prefix.__class__}', 'unknown field'),
                ('{}', 'unknown field'), ('{0}', 'unknown field'),
                ('{cores', 'is no template'), ('a}', 'is no template'),
                ('a b', 'only letters'), ('a\n', 'only letters'),
                ('{{x}}', 'only letters'), ('', 'must be text'),
                ('a' * 129, 'must be text'), (7, 'must be text')):
            with self.assertRaisesRegex(ValueError, pattern, msg=form):
                name_template.read(form)

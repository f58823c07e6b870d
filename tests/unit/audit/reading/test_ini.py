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

"""Files of options; tests/functional compares with oslo.config."""

import unittest

from hpcvirt.audit.reading import ini


class IniTest(unittest.TestCase):

    def test_options_comments_quotes_and_continuations(self):
        self.assertEqual({
            ('DEFAULT', 'a'): ('1', '2'), ('group', 'b'): ('x y',),
            ('group', 'c'): ('1\n2',), ('group', 'd'): ('',),
            ('group', 'e'): ('{"k": "v"}',), ('group', 'f'): ('p=q',),
        }, ini.parse('# comment\n[DEFAULT]\na = 1\n; other\na: 2\n\n[Group]\n'
                     'b = "x y"\nc = 1\n  2\nd =\ne = {"k": "v"}\nf = p=q\n'))

    def test_what_oslo_config_refuses(self):
        for text in ('a = 1', '[g]\nword', '[g\na = 1', '[]\na = 1',
                     '[g]\n= 1', '[g]\n\n  continued', ' [g]'):
            self.assertRaises(ini.Malformed, ini.parse, text)

    def test_later_files_and_present_names_win(self):
        names = [('pci', 'device_spec'), ('DEFAULT', 'before')]
        files = [ini.parse('[pci]\ndevice_spec = 2\n[DEFAULT]\nbefore = 1'),
                 ini.parse('[pci]\ndevice_spec = 3')]
        self.assertEqual(('1', '2', '3'), ini.merge(files, names))

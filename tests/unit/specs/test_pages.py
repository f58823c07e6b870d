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

from hpcvirt import exception
from hpcvirt.model import shape
from hpcvirt.specs import pages


class ReadTest(unittest.TestCase):

    def test_sizes_and_classes(self):
        for text, expected in (
                ('2048', 2048), ('2MB', 2048), ('2MiB', 2048),
                ('1GB', 1 << 20), ('16Kbit', 2), ('1.5MB', 1536),
                ('small', shape.PageClass.SMALL),
                ('large', shape.PageClass.LARGE),
                ('any', shape.PageClass.ANY)):
            self.assertEqual((expected, True),
                             pages.read({'hw:mem_page_size': text}), text)

    def test_a_flavor_without_a_size_requests_no_topology(self):
        self.assertEqual((None, False), pages.read({}))
        self.assertEqual((None, False), pages.read({'hw:mem_page_size': ''}))

    def test_less_than_one_kib_gives_a_topology_without_a_size(self):
        self.assertEqual((None, True), pages.read({'hw:mem_page_size': '1B'}))
        self.assertEqual((None, False), pages.read({'hw:mem_page_size': '0'}))

    def test_locked_memory_needs_a_size(self):
        with self.assertRaisesRegex(exception.InvalidInput,
                                    'hw:locked_memory.*hw:mem_page_size'):
            pages.read({'hw:locked_memory': 'true'})
        self.assertEqual((4, True), pages.read(
            {'hw:locked_memory': 'yes', 'hw:mem_page_size': '4'}))

    def test_anything_else_is_refused(self):
        for text in ('2M', 'huge', '-2048', '2048.5', '2 MB', '\xb2',
                     '9' * 5000, '9' * 400 + 'YB'):
            with self.assertRaisesRegex(exception.InvalidInput, 'page size',
                                        msg=text):
                pages.read({'hw:mem_page_size': text})


class WriteTest(unittest.TestCase):

    def test_what_is_written_is_read_again(self):
        for size in (4, 64, 2048, 1 << 20, *shape.PageClass):
            self.assertEqual((size, True), pages.read(
                {'hw:mem_page_size': pages.write(size)}))

    def test_no_size_is_below_one_kib(self):
        with self.assertRaisesRegex(exception.InvalidInput, 'page size'):
            pages.write(0)

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

"""Huge pages: as the flavors need them, on every cell."""

import dataclasses

from tests import audited


class HugePagesTest(audited.Case):

    def change(self, number, **fields):
        """Change one pool; pools are ordered by cell and name."""
        pools = list(audited.GOOD.memory.huge_pages)
        pools[number] = dataclasses.replace(pools[number], **fields)
        return self.but(memory={'huge_pages': tuple(pools)})

    def setUp(self):
        super().setUp()
        self.number, self.pool = next(
            (number, pool) for number, pool
            in enumerate(audited.GOOD.memory.huge_pages)
            if pool.cell == 1 and pool.size_kib == 2048)

    def test_fewer_than_the_flavors_need_is_an_error(self):
        facts = self.change(self.number, total=self.pool.total - 1)
        self.assertEqual(
            [('error', f'cell 1 has {self.pool.total - 1} pages of 2M')],
            self.found('huge-pages', facts))

    def test_more_than_they_need_is_a_warning(self):
        facts = self.change(self.number, total=self.pool.total + 1)
        (severity, _), = self.found('huge-pages', facts)
        self.assertEqual('warning', severity)

    def test_another_size_is_a_warning(self):
        number = next(number for number, pool
                      in enumerate(audited.GOOD.memory.huge_pages)
                      if pool.cell == 0 and pool.size_kib == 1048576)
        self.assertEqual([('warning', 'cell 0 has 2 pages of 1G')],
                         self.found('huge-pages', self.change(number,
                                                              total=2)))

    def test_surplus_pages_are_not_reserved(self):
        facts = self.change(self.number, total=self.pool.total, surplus=1)
        self.assertEqual(1, len(self.found('huge-pages', facts)))

    def test_cells_are_even_within_five_percent(self):
        most = self.pool.total
        for count, expected in ((-(-most * 95 // 100), 0),
                                (most * 95 // 100 - 1, 1)):
            facts = self.change(self.number, total=count)
            self.assertEqual(expected, len(self.found('huge-pages-even',
                                                      facts, None)))

    def test_none_at_all(self):
        facts = self.but(memory={'huge_pages': ()})
        self.assertEqual([('warning', 'no huge pages are reserved')],
                         self.found('huge-pages-even', facts, None))
        self.assertEqual([], self.found('huge-pages-even', facts))

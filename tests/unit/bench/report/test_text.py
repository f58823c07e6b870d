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


import testtools

from hpcvirt.bench.model import judgement
from hpcvirt.bench.report import text

SMALL = judgement.Bound(1.3, source='below 128 bytes')
LARGE = judgement.Bound(1.1, source='above')


class TestSources(testtools.TestCase):
    def test_bounds_of_one_origin_are_told_together(self):
        sizes = [2 ** power for power in range(10)]
        self.assertEqual(
            [('latency_us[1] to latency_us[64] (7 figures)',
              '1.300, below 128 bytes'),
             ('latency_us[128], latency_us[256], latency_us[512]',
              '1.100, above')],
            text.sources(
                (f'latency_us[{size}]', SMALL if size < 128 else LARGE)
                for size in sizes))

    def test_a_figure_of_two_runs_is_named_once(self):
        self.assertEqual([('a, b', '1.300, below 128 bytes')],
                         text.sources([('a', SMALL), ('b', SMALL),
                                       ('a', SMALL)]))

    def test_a_bound_of_the_user_has_no_source(self):
        self.assertEqual([], text.sources(
            [('a', judgement.Bound(0.9))]))

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

from hpcvirt.bench.model import record


class TestRun(testtools.TestCase):
    def test_the_label_names_what_distinguishes_a_run(self):
        run = record.Run('1', 'npb-cg', 'mpi', (), shape='4x8', case='tuned',
                         launch=record.Launch.COLD)
        self.assertEqual('npb-cg mpi 4x8 cold tuned', run.label)

    def test_the_label_leaves_out_what_is_unknown(self):
        self.assertEqual('stream', record.Run('1', 'stream', '', ()).label)

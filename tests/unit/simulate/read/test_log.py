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

"""Files of every form that were changed at random."""

from hypothesis import given
from hypothesis import strategies as st

from hpcvirt import exception
from hpcvirt.simulate import read
from tests.unit.simulate.read import files
from tests.unit.simulate.read import test_boots_csv
from tests.unit.simulate.read import test_openb
from tests.unit.simulate.read import test_swf

SAMPLES = {
    'swf': test_swf.HEAD + test_swf.line() + test_swf.line(2, 80, 20),
    'boots': test_boots_csv.HEAD + 'a,2026-10-01 10:00,,4,512,m1,"{""hw:'
             'cpu_policy"": ""dedicated""}"\nb,2026-10-01 11:00,,4,512,,\n',
    'openb': test_openb.OPENB
             + 'p0,12000,16384,1,1000,,LS,Running,100,900,140\n' * 2,
    'azure-vms': 'a,b,c,0,300,1.5,1.5,1.5,Interactive,4,8\n' * 2,
}


class HostileInputTest(files.FilesTestCase):

    def test_every_form_has_a_sample_and_is_recognized(self):
        self.assertEqual({*read.FORMS}, {*SAMPLES, 'auto', 'azure-packing'})
        for form, sample in SAMPLES.items():
            with self.subTest(form=form):
                named = self.read(sample, form=form)
                self.assertEqual(named, self.read(sample))

    @given(st.sampled_from([*SAMPLES.values()]), st.lists(st.tuples(
        st.integers(0, 400), st.integers(0, 9), st.binary(max_size=9) |
        st.sampled_from((b',', b'"', b'\n', b'\0', b'{', b'-', b'1e9999'))),
        min_size=1, max_size=4), st.sampled_from(read.FORMS))
    def test_what_cannot_be_read_is_refused_in_one_line(self, sample, changes,
                                                        form):
        data = sample.encode()
        for place, length, other in changes:
            data = data[:place] + other + data[place + length:]
        try:
            workload = self.read(data, form=form)
        except exception.InvalidInput as exc:
            self.assertNotIn('\n', str(exc))
            return
        self.assertEqual(0, workload.jobs[0].time)
        for job in workload.jobs:
            self.assertGreater(job.duration, 0)
            self.assertGreaterEqual(job.cpus, 1)
            self.assertGreaterEqual(job.memory_mib, 0)

# SPDX-License-Identifier: Apache-2.0

"""Files of every form that were changed at random."""

import gzip
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from hpcvirt import exception
from hpcvirt.simulate.read import log as logs
from tests.unit.simulate.read import files
from tests.unit.simulate.read import test_boots_csv
from tests.unit.simulate.read import test_swf

SAMPLES = (
    test_swf.HEAD + test_swf.line() + test_swf.line(2, 80, 20),
    test_boots_csv.HEAD + 'a,2026-10-01 10:00,,4,512,m1,"{""hw:'
    'cpu_policy"": ""dedicated""}"\nb,2026-10-01 11:00,,4,512,,\n',
)


class HostileInputTest(files.FilesTestCase):
    def test_every_form_is_recognized(self):
        swf, boots = (self.read(sample) for sample in SAMPLES)
        self.assertTrue(swf.splits)
        self.assertFalse(boots.splits)

    def test_the_number_of_lines_has_a_limit(self):
        self.assertEqual(10_000_000, logs.MAX_LINES)
        bomb = gzip.compress(b'\n' * 100_001, 1)
        with mock.patch.object(logs, 'MAX_LINES', 100_000), (
                self.assertRaisesRegex(exception.InvalidInput,
                                       'more than 100,000 lines')):
            self.read(bomb)

    @given(st.sampled_from(SAMPLES), st.lists(st.tuples(
        st.integers(0, 400), st.integers(0, 9), st.binary(max_size=9) |
        st.sampled_from((b',', b'"', b'\n', b'\0', b'{', b'-', b'1e9999'))),
        min_size=1, max_size=4))
    def test_what_cannot_be_read_is_refused_in_one_line(self, sample, changes):
        data = sample.encode()
        for place, length, other in changes:
            data = data[:place] + other + data[place + length:]
        try:
            workload = self.read(data)
        except exception.InvalidInput as exc:
            self.assertNotIn('\n', str(exc))
            return
        self.assertEqual(0, workload.jobs[0].time)
        for job in workload.jobs:
            self.assertGreater(job.duration, 0)
            self.assertGreaterEqual(job.cpus, 1)
            self.assertGreaterEqual(job.memory_mib, 0)

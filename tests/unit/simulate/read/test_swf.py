# SPDX-License-Identifier: Apache-2.0

"""The Standard Workload Format."""

import gzip

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.simulate.read import files

#: Lines of the form of public logs; the numbers are not theirs.
HEAD = '; Version: 2.2\n; MaxProcs: 240\n;   Note: Übung\n'


def line(number=1, submit=0, run=60, cpus=4, used=-1, requested=-1,
         wanted=-1, status=1, wait=7):
    return (f'{number:5} {submit} {wait} {run} {cpus} -1 {used} {requested} '
            f'3600 {wanted} {status} 3 1 -1 1 -1 -1 -1\n')


class SwfTest(files.FilesTestCase):
    def jobs(self, *lines):
        return self.read(HEAD + ''.join(lines))

    def test_a_job_has_its_time_from_the_first_its_run_time_and_cpus(self):
        workload = self.jobs(line(1, 100, 60, 4), line(2, 130, 2.5, 8))
        self.assertEqual([(0, 60, 4, 1), (30, 2.5, 8, 1)],
                         [(job.time, job.duration, job.cpus, job.count)
                          for job in workload.jobs])
        self.assertTrue(workload.splits)
        self.assertEqual(('The machine of the log has 240 processors.',),
                         workload.notes)

    def test_jobs_are_sorted_by_the_time_of_their_submission(self):
        workload = self.jobs(line(1, 500, cpus=1), line(2, 20, cpus=2),
                             line(3, 70, cpus=3))
        self.assertEqual([(0, 2), (50, 3), (480, 1)],
                         [(job.time, job.cpus) for job in workload.jobs])

    def test_requested_processors_count_if_none_are_said_to_be_allocated(self):
        workload = self.jobs(line(cpus=-1, requested=16),
                             line(cpus=8, requested=16))
        self.assertEqual([16, 8], [job.cpus for job in workload.jobs])

    def test_memory_is_that_of_all_processors(self):
        workload = self.jobs(
            line(cpus=4, used=1024), line(cpus=4, used=1024, wanted=2048),
            line(cpus=3, used=100), line())
        self.assertEqual([4, 8, 1, 0],
                         [job.memory_mib for job in workload.jobs])

    def test_memory_that_no_computer_has_is_taken_as_unknown(self):
        workload = self.jobs(line(wanted=68719476736))
        self.assertEqual(0, workload.jobs[0].memory_mib)
        self.assertIn('1 job with more than 1 TiB a processor is taken as of '
                      'unknown memory.', workload.notes)

    def test_jobs_that_failed_or_were_cancelled_count_only_if_they_ran(self):
        workload = self.jobs(
            line(run=0, status=0), line(run=-1, status=5),
            line(run=-1359980917, status=5), line(run=8, status=0),
            line(run=9, status=5))
        self.assertEqual([8, 9], [job.duration for job in workload.jobs])
        self.assertIn('3 jobs that never ran are left out.', workload.notes)

    def test_parts_of_an_interrupted_job_do_not_count_again(self):
        workload = self.jobs(line(run=100, status=1), line(run=60, status=2),
                             line(run=40, status=3))
        self.assertEqual([100], [job.duration for job in workload.jobs])
        self.assertIn('2 lines for parts of jobs that were interrupted are '
                      'left out.', workload.notes)

    def test_jobs_without_processors_or_time_are_left_out(self):
        workload = self.jobs(line(cpus=-1), line(submit=-1), line())
        self.assertEqual(1, len(workload.jobs))
        self.assertIn('2 jobs without a number of processors or a time are '
                      'left out.', workload.notes)

    def test_a_log_with_more_fields_has_no_memory(self):
        longer = line(wanted=8192).rstrip() + ' {12,12} q_2h 1:ppn=2#excl\n'
        workload = self.read(longer * 2)
        self.assertEqual([(4, 0)] * 2, [(job.cpus, job.memory_mib)
                                        for job in workload.jobs])
        self.assertIn('2 jobs with more fields than the format has are read '
                      'without them and without memory.', workload.notes)

    def test_the_form_is_seen_behind_empty_lines_and_a_byte_order_mark(self):
        for begin in ('', '\n\n  \n', '\ufeff', '\ufeff' + HEAD, '\r\n'):
            with self.subTest(begin=begin):
                self.assertEqual(1, len(self.read(begin + line()).jobs))

    def test_a_compressed_log_is_expanded(self):
        plain = HEAD + line() * 200
        compressed = gzip.compress(plain.encode())
        self.assertEqual(self.read(plain).jobs, self.read(compressed).jobs)

    def test_a_log_that_was_cut_off_is_refused(self):
        lines = [line(number, number * 7, number * 13 % 5000)
                 for number in range(1, 4000)]
        compressed = gzip.compress((HEAD + ''.join(lines)).encode())
        self.assertIn('only in part', self.fails(compressed[:-900]))
        self.assertIn('line 5: has 9 fields instead of 18', self.fails(
            HEAD + lines[0] + ' '.join(lines[1].split()[:9])))

    def test_fields_that_all_lines_lack_are_unknown(self):
        short = [' '.join(line(number, number, requested=8).split()[:5])
                 for number in range(3)]
        self.assertEqual([(4, 0)] * 3, [
            (job.cpus, job.memory_mib)
            for job in self.read('\n'.join(short)).jobs])
        self.assertIn('line 2: has 4 fields instead of 5', self.fails(
            f'{short[0]}\n{short[1][:-2]}\n'))
        self.assertIn('line 1: has 4 fields instead of 5',
                      self.fails('1 2 3 4\n'))

    def test_bad_lines_are_named(self):
        for bad, what in (
                (line(run='x'), "could not convert string to float: 'x'"),
                (line(run='nan'), 'field 4 must be less than 1e+11'),
                (line(submit='inf'), 'field 2 must be less than 1e+11'),
                (line(submit=1756000000000), 'field 2 must be less'),
                (line(cpus=10 ** 9), 'field 5 must be less than 1e+08'),
                ('x' * 70000, 'is longer than 65536 bytes')):
            with self.subTest(bad=bad[:60]):
                said = self.fails(HEAD + line() + bad)
                self.assertIn('log: line 5: ', said)
                self.assertIn(what, said)

    def test_what_is_no_log_is_refused(self):
        for content, what in (
                ('', 'is empty'), ('\n \n', 'is empty'),
                (b'\x1f\x8b', 'only in part'),
                (b'PK\x03\x04....', 'is compressed by ZIP; expand it first'),
                (b'\xfd7zXZ\x00..', 'is compressed by xz'),
                (b'\xff\xfe1\x00 \x00', 'unknown format'),
                ('hello, world\n', 'unknown format; expected a CSV'),
                (HEAD, 'has no job that ran. The machine'),
                (line(run=0), '1 job that never ran is left out')):
            with self.subTest(content=content):
                self.assertIn(what, self.fails(content))

    @given(st.lists(st.tuples(
        st.integers(0, 10 ** 8), st.integers(1, 10 ** 7),
        st.integers(1, 10 ** 5), st.integers(0, 1 << 24)), min_size=1))
    def test_what_is_written_is_read_again(self, jobs):
        workload = self.jobs(*(
            line(submit=time, run=run, cpus=cpus, wanted=kib)
            for time, run, cpus, kib in jobs))
        start = min(job[0] for job in jobs)
        self.assertEqual(
            [(time - start, run, cpus, -(-cpus * kib // 1024))
             for time, run, cpus, kib in sorted(
                 jobs, key=lambda job: job[0])],
            [(job.time, job.duration, job.cpus, job.memory_mib)
             for job in workload.jobs])

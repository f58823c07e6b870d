# SPDX-License-Identifier: Apache-2.0

import testtools

from hpcvirt.bench.parsers import text


class TestText(testtools.TestCase):
    def test_line_ends_of_other_systems_become_newlines(self):
        self.assertEqual('a\nb\nc', text.clean(b'a\r\nb\rc'))

    def test_colours_and_titles_are_taken_out(self):
        self.assertEqual('Triad: 1', text.clean(
            b'\x1b]0;title\x07\x1b[1;32mTriad:\x1b[0m 1'))

    def test_tags_of_mpirun_are_taken_out(self):
        self.assertEqual('a\nb', text.clean(
            b'[1,0]<stdout>:a\n[1,0]<stderr>: b'))

    def test_tags_of_open_mpi_5_are_taken_out(self):
        self.assertEqual('a', text.clean(b'[prterun-n1-77@1,0]<stdout>: a'))

    def test_the_label_of_one_rank_is_taken_out(self):
        self.assertEqual('a\n b\n', text.clean(b'0: a\n0:  b\n'))
        self.assertEqual('a\n\nb\n', text.clean(b'[0] a\n\n[0] b\n'))

    def test_numbers_of_rows_are_no_label(self):
        for rows in (b'0: 1 bytes\n1: 2 bytes', b'0: 1 bytes'):
            self.assertEqual(rows.decode(), text.clean(rows))

    def test_times_are_no_label(self):
        rows = '10:00:01 a\n10:00:02 b\n'
        self.assertEqual(rows, text.clean(rows.encode()))

    def test_prefixes_of_loggers_are_found(self):
        self.assertEqual(
            ('n1 2026-11-29T10:00:01Z INFO: ', 'a b\n  c\nd\n'),
            text.strip_prefixes('n1 2026-11-29T10:00:01Z INFO: a b\n\n'
                                'n1 2026-11-29T10:00:02Z INFO:   c\n'
                                'n1 2026-11-29T10:00:03Z INFO: d\n'))

    def test_lines_that_differ_have_no_prefix(self):
        for lines in ('', 'a b\n', 'a: 1\na: 2\n',
                      '# Size Latency\n1 2.5\n2 2.5\n',
                      '10:00:01 a\nb\nc\n', 'same: \n' * 5):
            self.assertIsNone(text.strip_prefixes(lines))

    def test_bytes_that_are_no_text_stay_as_a_mark(self):
        self.assertEqual('1\ufffd2', text.clean(b'1\xff2'))

    def test_a_byte_order_mark_is_taken_out(self):
        self.assertEqual('a', text.clean(b'\xef\xbb\xbfa'))

    def test_overlong_lines_are_taken_out(self):
        self.assertEqual('a\n\nb', text.drop_long_lines(
            'a\n' + 'x' * 5000 + '\nb'))

    def test_a_quoted_line_is_short_and_printable(self):
        self.assertEqual('a b', text.quote(' a \t b '))
        self.assertEqual('a?', text.quote('a\x00'))
        self.assertEqual(120, len(text.quote('x' * 500)))

    def test_the_cause_is_found_in_what_launchers_say(self):
        for line in ('slurmstepd: error: Out of memory in step 0',
                     'bash: hpcc: command not found',
                     'error while loading shared libraries: libgomp.so.1',
                     'Segmentation fault'):
            self.assertEqual(text.quote(line),
                             text.complaint(f'hello\n{line}\nbye'))
        self.assertIsNone(text.complaint('all is well\nError:\n'))

# SPDX-License-Identifier: Apache-2.0

from tests.unit.bench.parsers import base

OUTPUT = base.data('ior/daos.txt').decode()
RUN = base.data('ior/direct.txt').decode()
WRITE = OUTPUT.rindex('\nwrite ') + 1
READ = OUTPUT.rindex('\nread ') + 1

GOOD_OUTPUTS = ((OUTPUT.encode(), {'tasks': '30'}), (RUN.encode(), {}))


class TestIor(base.ParserTestCase):
    parser = 'ior'
    refused = (
        ('another unit', 'write_mib_s is in GiB/s, but in MiB/s',
         RUN.replace('Mean(MiB)', 'Mean(GiB)')),
        ('wrong data', 'Incorrect data on read (262144 errors found)',
         OUTPUT.replace('Max Write', 'WARNING: Incorrect data on read (262144 '
                        'errors found).\nMax Write')),
        ('wrong data', 'FAILED comparison of buffer', OUTPUT.replace(
            'Max Write', '[0] FAILED comparison of buffer containing 8-byte '
            'ints:\nMax Write')),
        ('an error', 'ERROR: open', OUTPUT.replace(
            'Max Write', 'ERROR: open("/x", 66, 0664) failed\nMax Write')),
        ('a file too short', 'Expected aggregate file size', OUTPUT.replace(
            'Max Write', 'WARNING: Expected aggregate file size       = 4\n'
            'Max Write')),
        ('no end', "no 'Finished'", OUTPUT[:OUTPUT.index('Finished')]),
        ('no summary', "no 'Summary ", OUTPUT.replace('Summary of', 'Of')),
        ('no reads in the summary', '1 rows in the summary',
         OUTPUT[:READ] + OUTPUT[OUTPUT.index('Finished'):]),
        ('several tests', '3 rows in the summary',
         OUTPUT[:READ] + OUTPUT[WRITE:READ] + OUTPUT[READ:]),
        ('two runs', 'several runs', OUTPUT + OUTPUT),
        ('a mean that is no number', "write_mib_s is 'nan'",
         OUTPUT[:WRITE] + OUTPUT[WRITE:].replace('1299.23', '    nan')),
        ('nothing', 'write_mib_s is 0.00',
         OUTPUT[:WRITE] + OUTPUT[WRITE:].replace('1299.23', '   0.00')),
        ('other ranks than asked for', 'tasks=16 was requested', OUTPUT,
         {'ranks': '16'}),
    )

    def test_each_version_warns_of_wrong_data_in_its_own_words(self):
        self.assert_refused('WARNING: incorrect data on read (5876 errors',
                            base.data('ior/wrong_data_3.3.txt'))
        for warning in (
                # 2.10, 3.0 to 3.3, 4.0, and what each task prints.
                'WARNING: incorrect data on write.',
                '         12 errors found on read check.',
                'WARNING: incorrect data on write (1 errors found).',
                'WARNING: Incorrect data on read (-1 errors found).',
                'WARNING: INCORRECT DATA on read',
                'WARNING: data mismatch on read',
                'WARNING: overflow in errors counted, (ior.c:434)',
                '[3] failed comparison of buffer containing 8-byte ints:',
                'WARNING: Inconsistent file size by different tasks.'):
            self.assert_refused(warning.strip(), OUTPUT.replace(
                'Max Write', f'{warning}\nMax Write'))

    def test_version_2_is_refused_as_that(self):
        for version, what in (('2.10.3', 'IOR 2 has another form'),
                              ('2.10.3\n', "no 'IOR-VERSION'")):
            self.assert_refused(what, OUTPUT.replace('3.4.0+dev', version))
        # What it says of its data comes first.
        self.assert_refused('incorrect data', OUTPUT.replace(
            '3.4.0+dev', '2.10.3') + 'WARNING: incorrect data on read.\n')

    def test_warnings_about_options_and_paths_are_no_wrong_data(self):
        for line in ('WARNING: too few test repetitions. Using value of 1.',
                     'WARNING: The file "/x/errors" exists already',
                     '0 errors found on read check.'):
            self.figures(OUTPUT.replace('Max Write', f'{line}\nMax Write'))

    def test_reasons_name_lines_and_no_patterns(self):
        self.assert_refused("no 'IOR-VERSION'", OUTPUT.partition('\n')[2])

    def test_the_means_of_the_summary_are_read(self):
        self.assertEqual({'write_mib_s': 1299.23, 'read_mib_s': 5429.38},
                         self.figures(OUTPUT, {'api': 'posix'}))
        self.assertEqual({'write_mib_s', 'read_mib_s'}, {*self.figures(RUN)})

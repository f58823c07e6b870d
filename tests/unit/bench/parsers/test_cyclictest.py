# SPDX-License-Identifier: Apache-2.0

import json

from tests.unit.bench.parsers import base

SCREEN = base.data('cyclictest/screen.txt').decode()
#: Of rt-tests 2.4.
FILE = base.data('cyclictest/two_threads.json')

#: Of rt-tests 2.4 with --nsecs.
NSECS = """\
T: 0 (26027) P: 0 I:1000 C:    300 Min:  39156 Act:  104397 Avg:   89158 \
Max: 2366924
T: 1 (26028) P: 0 I:1500 C:    210 Min:  71529 Act:   97307 Avg:   97136 \
Max:  292038
"""

GOOD_OUTPUTS = ((SCREEN.encode(), {'threads': '4'}), (FILE, {}))


def changed(value, *path):
    """Return the file with another value."""
    document = json.loads(FILE)
    *before, last = path
    inner = document
    for key in before:
        inner = inner[key]
    inner[last] = value
    return json.dumps(document)


class TestCyclictest(base.ParserTestCase):
    parser = 'cyclictest'
    refused = (
        ('nanoseconds', 'mean_us is in ns, but in us',
         changed(1, 'resolution_in_ns')),
        ('nanoseconds on the screen', 'mean_us is in ns, but in us', NSECS),
        ('a file cut short', 'not a complete JSON document', FILE[:-5]),
        ('no threads', 'no latencies', changed({}, 'thread')),
        ('a missing thread', 'a thread is missing',
         changed(json.loads(FILE)['thread']['0'], 'thread', '7')),
        ('fewer threads than were started', 'a thread is missing',
         changed(3, 'num_threads')),
        ('no number', "avg of a thread is 'x'",
         changed('x', 'thread', '0', 'avg')),
        ('nothing', 'min of a thread is 0',
         changed(0, 'thread', '0', 'min')),
        ('a mean above the maximum', 'not between',
         changed(1e6, 'thread', '0', 'avg')),
        ('a missing thread on the screen', 'a thread is missing',
         SCREEN.replace('T: 2', 'T: 7')),
        ('no wake-up', 'a thread is missing',
         SCREEN.replace('C:1546942', 'C:      0')),
        ('no permission', 'no latencies',
         'Unable to change scheduling policy!\n'),
        ('other threads than asked for', 'threads=8 was requested', SCREEN,
         {'threads': '8'}),
    )

    def test_the_screen_is_read(self):
        self.assertEqual({'mean_us': 16.0, 'max_us': 399.0},
                         self.figures(SCREEN))

    def test_the_last_of_repeated_lines_counts(self):
        before = SCREEN.replace('Max:     399', 'Max:      99')
        self.assertEqual(399.0, self.figures(before + SCREEN)['max_us'])

    def test_the_file_has_the_exact_mean(self):
        threads = json.loads(FILE)['thread'].values()
        self.assertEqual(
            {'mean_us': sum(each['avg'] for each in threads) / len(threads),
             'max_us': max(each['max'] for each in threads)},
            self.figures(FILE))

# SPDX-License-Identifier: Apache-2.0

"""What a guest reports of its load, whatever it reports."""

import unittest

from hpcvirt.bench.execute import environment
from hpcvirt.bench.execute import executor
from tests.builders import places


def load(ticks, read_kib):
    return {'ticks': ticks, 'read_kib': read_kib}


class Guest:
    """A guest that prints as much as it can, whatever it is asked."""

    name = 'guest'

    def run(self, *_call):
        return executor.Completed(0, places.print_files({
            'gcc': 'x' * 100_000, 'proc/cmdline': 'x' * 100_000,
            'proc/cpuinfo': f'model name: {"x" * 100_000}',
            'proc/uptime': 'x' * 100_000}), b'')


class BoundTest(unittest.TestCase):
    def test_no_value_is_kept_that_is_too_long(self):
        found = environment.Environments().capture(Guest(), ['program'])
        for name in ('gcc', 'kernel.cmdline', 'cpu.model'):
            self.assertEqual(environment.LONGEST, len(found.facts[name]))
        for load in (found.load, environment.load(Guest())):
            self.assertEqual(environment.LONGEST, len(load['uptime_s']))


class LoadTest(unittest.TestCase):
    def describe(self, before, after):
        return environment.describe_load(load(*before), load(*after))

    def test_shares_are_those_of_the_time_between(self):
        found = self.describe(('1 0 1 8 2 0 0 0', '2048'),
                              ('2 0 1 14 3 0 0 2', '4096'))
        self.assertEqual({'disk_read_mib': '2', 'iowait_percent': '10.00',
                          'steal_percent': '20.00'}, found)

    def test_numbers_that_no_kernel_prints_are_ignored(self):
        plain = '1 0 1 8 2 0 0 0'
        for word in ('9' * 400, '9' * 4000, '9' * 5000, '²', '-1', '1e3'):
            for ticks in (word, f'1 0 1 8 {word} 0 0 2'):
                self.assertEqual({}, self.describe((plain, '0'),
                                                   (ticks, word)), word[:9])

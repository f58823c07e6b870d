# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt.bench.analysis import link_rates


class LinkRatesTest(unittest.TestCase):
    def test_data_rates_are_those_of_the_standards(self):
        for text, gb_s in (('10 Gb/sec (4X SDR)', 8),
                           ('40 Gb/sec (4X QDR)', 32),
                           ('56 Gb/sec (4X FDR)', 54.3),
                           ('100 Gb/sec (4X EDR)', 100),
                           ('400 Gb/sec (4X NDR)', 400),
                           ('10000', 10), ('200000', 200)):
            self.assertAlmostEqual(
                gb_s, link_rates.read_mb_s(text) * 8 / 1000, places=1)

    def test_what_is_down_or_no_rate_is_unknown(self):
        for text in ('-1', '0', '', 'x', '4294967295', '40 Gb/sec'):
            self.assertIsNone(link_rates.read_mb_s(text), text)

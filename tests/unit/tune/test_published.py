# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt.tune import experiment
from hpcvirt.tune import published


class PublishedTest(unittest.TestCase):

    def test_sizes_of_guests_have_the_figures_of_the_study(self):
        found, = published.find(experiment.ValueChange(guests_per_host=4))
        self.assertIn('3.3 % with 4x8, 4.6 % with 2x16, 5 % with 1x24, '
                      '3 to 6 % with 1x32', found)

    def test_a_setting_of_the_host_is_found_however_it_is_spelled(self):
        for name in ('ept', 'EPT', 'nested-paging'):
            found, = published.find(experiment.ValueChange(host={name: '0'}))
            self.assertIn('[CERN-HEPiX-2015]', found)

    def test_a_choice_without_a_study_has_none(self):
        self.assertEqual((), published.find(experiment.ValueChange(
            extra_specs={'quota:cpu_shares': '512'})))

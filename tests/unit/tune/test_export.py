# SPDX-License-Identifier: Apache-2.0

import unittest

import yaml

from hpcvirt.flavors import profile as profiles
from hpcvirt.tune import export
from tests.builders import tuned


class ExportTest(unittest.TestCase):

    def test_a_profile_has_the_recommended_values(self):
        text = export.profile(tuned.make_report(), {
            'smt': 'leave', 'page_size': '1G', 'extra_specs': {
                'trait:HW_CPU_X86_AVX2': 'required',
                'quota:cpu_shares': '512'}})
        profile = profiles.build(yaml.safe_load(text), 'p.yaml')
        self.assertEqual(1 << 20, profile.page_size)
        self.assertEqual(profiles.SMT.LEAVE, profile.smt)
        self.assertEqual({'quota:cpu_shares': '512',
                          'trait:HW_CPU_X86_AVX2': 'required'},
                         dict(profile.extra_specs))

    def test_todays_values_stay(self):
        text = export.profile(tuned.make_report((0, 0, 0, 0)),
                              {'page_size': '2M'})
        self.assertEqual({'page_size': '2M'}, yaml.safe_load(text))

    def test_each_choice_has_its_evidence(self):
        text = ' '.join(export.profile(tuned.make_report(), {}).replace(
            '\n#  ', ' ').split())
        for part in (
                '# pages: 1G # 1G against today: +2.1 % (+1.3 to +2.9 %)',
                '+2.9 %), better, 48 trials, 2026-11-27 to 2026-11-28, n1',
                '# ept: today # off against today: +3.0 %',
                'refused: its runs have 9 stragglers',
                '# guests: four', 'a host takes 4 instances'):
            self.assertIn(part, text)

    def test_settings_of_the_host_are_named(self):
        self.assertIn('\n# Set on the host: ept=0\n',
                      export.profile(tuned.make_report((0, 0, 1, 0)), {}))

    def test_nothing_but_comments_is_a_profile(self):
        text = export.profile(tuned.make_report((0, 0, 0, 0)), {})
        self.assertEqual(profiles.DEFAULT,
                         profiles.build(yaml.safe_load(text), 'p.yaml'))

    def test_lines_fit_a_terminal(self):
        text = export.profile(tuned.make_report(), {})
        self.assertLessEqual(max(map(len, text.splitlines())), 79)

# SPDX-License-Identifier: Apache-2.0

import json
import unittest

import yaml

from hpcvirt.flavors import profile as profiles
from hpcvirt.tune import model
from hpcvirt.tune import report
from tests.builders import tuned


class ReportTest(unittest.TestCase):

    def test_the_text_says_what_to_use_and_why(self):
        text = tuned.make_report().text(None)
        for part in (
                'Recommended: pages=1G, quota=half, guests=four',
                'Reason: fresh boots showed a gain',
                '+1.9 % (+0.4 to +3.4 %), 10 pairs of fresh boots',
                'Today against native: -5.0 % (-5.8 to -4.2 %)',
                'ept=off is refused: its runs have 9 stragglers',
                'Not decided: guests=four',
                'pages=1G and guests=four together: +2.0 % (+1.2 to +2.8 %)',
                'or the interaction of quota x ept'):
            self.assertIn(part, text)

    def test_a_row_has_effect_and_cost(self):
        shown = tuned.make_report()
        row, = (line for line in shown.text(None).splitlines()
                if line.startswith('guests=four  +0.1 %')
                and line.endswith('480'))
        self.assertEqual(['open', '48', '0', 'of', '144', '4', '64', '480'],
                         row.split()[-8:])

    def test_each_program_has_its_effect(self):
        text = tuned.make_report().text(None)
        self.assertIn('+3.1 % (+2.3 to +3.9 %)', text)

    def test_the_text_fits_a_terminal(self):
        table = tuned.make_report().text(100).split('Value ')[1]
        self.assertLessEqual(max(map(len, table.splitlines())), 100)

    def test_a_gain_is_called_one_only_if_it_was_confirmed(self):
        text = tuned.make_report(confirmation=model.Confirmation(
            (1, 0, 0, 0), 10, tuned.effect(0.5, 2))).text(None)
        self.assertIn('No gain was shown', text)
        self.assertNotIn('\nGain', text)

    def test_no_effect_is_no_loss(self):
        self.assertEqual('+0.0 %', report.percent(-1e-9))

    def test_the_document_is_json_with_costs_and_publications(self):
        document = json.loads(json.dumps(
            tuned.make_report().document(), allow_nan=False))
        self.assertEqual(['pages', 'quota', 'ept', 'guests'],
                         [row['choice'] for row in document['values']])
        self.assertEqual(4, document['values'][3]['cost']['guests'])
        self.assertIn('10 times as long',
                      document['values'][2]['published'][0])
        self.assertEqual([], document['values'][1]['published'])
        self.assertEqual('2026-11-27 to 2026-11-28', document['dates'])


class PublishedTest(unittest.TestCase):
    def find(self, choice, value):
        rows = {row['choice']: row for row
                in tuned.make_report().document()['values']}
        self.assertEqual(value, rows[choice]['value'])
        return rows[choice]['published']

    def test_sizes_of_guests_have_the_figures_of_the_study(self):
        found, = self.find('guests', 'four')
        self.assertIn('3.3 % with 4x8, 4.6 % with 2x16, 5 % with 1x24, '
                      '3 to 6 % with 1x32', found)

    def test_a_setting_of_the_host_is_found(self):
        found, = self.find('ept', 'off')
        self.assertIn('[CERN-HEPiX-2015]', found)

    def test_a_choice_without_a_study_has_none(self):
        self.assertEqual([], self.find('quota', 'half'))


class PageTest(unittest.TestCase):
    def test_a_page_has_all_values_and_programs(self):
        html = report.page(tuned.make_report(), '2026-11-28 12:00 UTC')
        for part in ('<title>What pays on these hosts</title>',
                     'pages=1G', '+2.1 % (+1.3 to +2.9 %)', 'refused',
                     'quota x ept', 'aria-label="ratio 1.021'):
            self.assertIn(part, html)
        self.assertNotIn('<script', html)
        self.assertNotIn('http', html)

    def test_names_are_escaped(self):
        shown = tuned.make_report(reason='<b>no</b>')
        self.assertNotIn('<b>no</b>', report.page(shown, 'now'))


class ProfileTest(unittest.TestCase):
    def write(self, *args, **more):
        return report.profile(tuned.make_report(*args, **more))

    def test_a_profile_has_the_recommended_values(self):
        text = self.write(content={
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
        text = self.write((0, 0, 0, 0), {'page_size': '2M'})
        self.assertEqual({'page_size': '2M'}, yaml.safe_load(text))

    def test_each_choice_has_its_evidence(self):
        text = ' '.join(self.write().replace('\n# ', ' ').split())
        for part in (
                'pages: 1G 1G against today: +2.1 % (+1.3 to +2.9 %)',
                '+2.9 %), better, 48 trials, 2026-11-27 to 2026-11-28, n1',
                'ept: today off against today: +3.0 %',
                'refused: its runs have 9 stragglers',
                'guests: four', 'a host takes 4 instances'):
            self.assertIn(part, text)

    def test_settings_of_the_host_are_named(self):
        self.assertIn('\n#   Set on the host: ept=0\n',
                      self.write((0, 0, 1, 0)))

    def test_nothing_but_comments_is_a_profile(self):
        text = self.write((0, 0, 0, 0))
        self.assertEqual(profiles.DEFAULT,
                         profiles.build(yaml.safe_load(text), 'p.yaml'))

    def test_lines_fit_a_terminal(self):
        self.assertLessEqual(max(map(len, self.write().splitlines())), 79)

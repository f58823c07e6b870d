# SPDX-License-Identifier: Apache-2.0

import re
import unittest

from hpcvirt.deployment import site_part
from hpcvirt.deployment import tree

FILTER = '[filter_scheduler]\nenabled_filters = A,B\n'
SPEC = 'device_spec = {"address": "0000:01:00.0"}'
CPUS = '[compute]cpu_dedicated_set'
PATH = 'config/nova/n1/nova.conf'


def write(cpus='1-3', more='[pci]\ndevice_spec = {"address": "0000:41:00.0"}'):
    return site_part.close(tree.text(
        'Options.', f'[compute]\ncpu_dedicated_set = {cpus}\n\n{more}'))


def read(text):
    return [item.words for item in site_part.read_options(text)]


class JoinTest(unittest.TestCase):
    def assert_stable(self, text, cpus='1-3'):
        self.assertEqual(text, site_part.join(write(cpus), text))

    def test_what_follows_the_end_stays_as_it_is(self):
        kept = f'# why\n{FILTER}'
        text = site_part.join(write('2'), write() + kept)
        self.assertEqual(write('2') + kept, text)
        self.assert_stable(text, '2')

    def test_options_that_hpcvirt_does_not_write_are_kept_wherever(self):
        place = write().index('[compute]')
        text = site_part.join(
            write('2'), write()[:place] + FILTER + write()[place:])
        self.assertEqual(write('2') + FILTER, text)
        self.assert_stable(text, '2')

    def test_values_that_were_added_to_the_part_of_hpcvirt_are_kept(self):
        edited = write().replace('[pci]\n', f'[pci]\n{SPEC}\n')
        text = site_part.join(write(), edited)
        self.assertEqual(f'{write()}[pci]\n{SPEC}\n', text)
        self.assert_stable(text)

    def test_what_a_former_plan_wanted_goes(self):
        self.assertEqual(write('2', ''), site_part.join(write('2', ''),
                                                        write()))

    def test_a_file_without_the_end_may_have_values_of_the_site(self):
        before = re.sub('\n# End .*\n', '', write())
        self.assertEqual(write(), site_part.join(write(), before))
        self.assertEqual(f'{write()}[pci]\n{SPEC}\n', site_part.join(
            write(), f'{before}{SPEC}\n'))

    def test_a_file_of_the_site_stays_whole(self):
        self.assertEqual(write() + FILTER, site_part.join(write(), FILTER))

    def test_options_stay_in_the_section_that_they_were_in(self):
        text = site_part.join(write('1', ''), f'{write()}{SPEC}\n')
        self.assertEqual([f'[pci]{SPEC}'], read(text)[1:])
        self.assert_stable(site_part.join(write(), text))
        self.assertEqual('[DEFAULT]debug = 1', read(
            site_part.join(write(), 'debug = 1\n'))[-1])


class FindConflictsTest(unittest.TestCase):
    def find(self, kept, others=()):
        found = site_part.find_conflicts(tree.File(PATH, write() + kept),
                                         dict(others))
        for conflict in found:
            self.text = conflict.replaced.text
        return [conflict.words for conflict in found]

    def test_another_value_of_one_option_conflicts(self):
        self.assertEqual(
            [f'{PATH} sets {CPUS} = 0, 1, and hpcvirt 1-3'],
            self.find(f'{FILTER}[compute]\ncpu_dedicated_set = 0,\n  1\n'))
        self.assertEqual(f'{write()}{FILTER}[compute]\n# hpcvirt: '
                         'cpu_dedicated_set = 0,\n# hpcvirt:   1\n', self.text)

    def test_values_that_nova_joins_do_not_conflict(self):
        self.assertEqual([], self.find(
            f'{FILTER}[compute]\ncpu_dedicated_set=1-3\n[pci]\n{SPEC}\n'))

    def test_values_of_which_the_file_takes_the_place_are_named(self):
        others = {'config/nova.conf': f'{FILTER}[pci]\n{SPEC}\n[compute]\n'
                  'cpu_dedicated_set = 9\n'}
        (words,) = self.find('', others)
        self.assertIn(f'config/nova.conf sets [pci]{SPEC}, of which {PATH} '
                      'takes the place', words)
        # Those that were replaced, and repeated ones, are not named again.
        for kept in (self.text.removeprefix(write()), f'[pci]\n{SPEC}\n'):
            self.assertEqual([], self.find(kept, others))

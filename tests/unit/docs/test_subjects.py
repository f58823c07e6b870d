# SPDX-License-Identifier: Apache-2.0

"""The six subjects head the navigation, the packages and release notes."""

import re
import unittest

import yaml

from tests import pages

SUBJECTS = ['fit', 'nova', 'host', 'flavors', 'fleet', 'bench']


def in_order(headings):
    """The subjects that headings begin with, in lower case."""
    first = (re.match(r'\w+', heading)[0].lower() for heading in headings)
    return [word for word in first if word in SUBJECTS]


class SubjectsTest(unittest.TestCase):
    def test_the_navigation_has_the_subjects(self):
        captions = re.findall(r'^   :caption: (.+)$', pages.read('index'),
                              re.MULTILINE)
        self.assertEqual(SUBJECTS, in_order(captions))

    def test_the_packages_belong_to_the_subjects(self):
        titles = re.findall(r'^\.\. packages:: (.+)$',
                            pages.read('contributor/layout'), re.MULTILINE)
        self.assertEqual(SUBJECTS, in_order(titles))

    def test_the_release_notes_have_the_subjects(self):
        config = yaml.safe_load(
            (pages.ROOT / 'releasenotes' / 'config.yaml').read_text())
        self.assertEqual(
            SUBJECTS, in_order(name for name, _ in config['sections']))

    def test_each_page_is_in_the_navigation_once(self):
        listed = re.findall(r'^   ([a-z-]+(?:/[\w-]+)?)$', pages.read('index'),
                            re.MULTILINE)
        source = pages.ROOT / 'doc' / 'source'
        there = {str(path.relative_to(source).with_suffix(''))
                 for path in source.rglob('*.rst')} - {'index'}
        self.assertEqual(sorted(there), sorted(listed))

    def test_a_page_has_at_most_1200_words(self):
        source = pages.ROOT / 'doc' / 'source'
        for path in source.rglob('*.rst'):
            with self.subTest(path=str(path.relative_to(source))):
                self.assertLessEqual(len(path.read_text().split()), 1200)

    def test_80_pages_and_45000_words_are_enough(self):
        written = [path.read_text().split() for path in
                   (pages.ROOT / 'doc' / 'source').rglob('*.rst')]
        self.assertLessEqual(len(written), 80)
        self.assertLessEqual(sum(map(len, written)), 45_000)

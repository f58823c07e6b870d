# SPDX-License-Identifier: Apache-2.0

import unittest
from unittest import mock

from demo import checks
from tests.builders import folders

SHOWN = """\
Text::

    $ tools/tox -e demo
    ...
      large guests that started  3 of 8
    ...
"""
PRINTED = 'heading\n\n  large guests that started  3 of 8\n\nend\n'


class PageTest(unittest.TestCase):
    """The check of the page that shows the output of the demonstration."""

    def wrong(self, page, printed):
        directory = folders.make(self)
        (directory / checks.PAGE).write_text(page)
        with mock.patch.object(checks.fleet, 'ROOT', directory):
            return checks.page(printed)[1]

    def test_page_may_show_a_part_of_the_output(self):
        self.assertEqual([], self.wrong(SHOWN, PRINTED))

    def test_other_figures_are_found(self):
        (fault,) = self.wrong(SHOWN, PRINTED.replace('3 of', '8 of'))
        self.assertIn('3 of 8', fault)

    def test_page_without_figures_is_found(self):
        (fault,) = self.wrong('Text\n', PRINTED)
        self.assertIn('shows nothing', fault)

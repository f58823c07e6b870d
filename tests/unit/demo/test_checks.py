# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""The check of the page that shows the output of the demonstration."""

import pathlib
import tempfile
import unittest
from unittest import mock

from demo import checks

SHOWN = """\
Text::

    $ tools/tox -e demo
    ...
      large guests that started  3 of 8
    ...
"""
PRINTED = 'heading\n\n  large guests that started  3 of 8\n\nend\n'


class PageTest(unittest.TestCase):

    def wrong(self, page, printed):
        directory = self.enterContext(tempfile.TemporaryDirectory())
        pathlib.Path(directory, checks.PAGE).write_text(page)
        with mock.patch.object(checks.fleet, 'ROOT', pathlib.Path(directory)):
            return checks.page(printed)[1]

    def test_page_may_show_a_part_of_the_output(self):
        self.assertEqual([], self.wrong(SHOWN, PRINTED))

    def test_other_figures_are_found(self):
        (fault,) = self.wrong(SHOWN, PRINTED.replace('3 of', '8 of'))
        self.assertIn('3 of 8', fault)

    def test_page_without_figures_is_found(self):
        (fault,) = self.wrong('Text\n', PRINTED)
        self.assertIn('shows nothing', fault)

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

"""Reading commands out of a page."""

import unittest

from tools.integration import guide

TEXT = """
Look
----

.. code-block:: console

   $ one --two
   a  b

   ...
   c
   $ three

Text with $ four in it.

.. code-block:: console

   $ five
"""


class GuideTest(unittest.TestCase):

    def test_commands_are_read_with_what_is_shown(self):
        self.assertEqual(
            [guide.Step('one --two', ('a  b', '...', 'c')),
             guide.Step('three', ()), guide.Step('five', ())],
            list(guide.steps(TEXT)))

    def test_page_of_the_documentation_has_commands(self):
        self.assertGreater(len(list(guide.steps(guide.PAGE.read_text()))), 5)

    def test_dots_stand_for_any_lines(self):
        shown = ('a  b', '...', 'c')
        for printed, expected in ((['a b', 'c'], True),
                                  (['a b', 'x', 'y', 'c'], True),
                                  (['a b', 'x'], False),
                                  (['a', 'c'], False),
                                  (['a b', 'c', 'x'], False)):
            with self.subTest(printed=printed):
                self.assertEqual(expected, guide.matches(shown, printed))

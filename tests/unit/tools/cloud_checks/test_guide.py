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

"""Reading the commands of a page."""

import unittest

from tools.cloud_checks import guide

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

    def test_commands_are_read_with_the_lines_below_them(self):
        self.assertEqual(
            [guide.Step('one --two', ('a  b', '...', 'c')),
             guide.Step('three', ()), guide.Step('five', ())],
            list(guide.steps(TEXT)))

    def test_pages_of_the_documentation_have_commands(self):
        found = [step for name in guide.PAGES
                 for step in guide.steps(guide.page(name).read_text())]
        self.assertGreater(len(found), 15)
        self.assertEqual(1, sum(step.fails for step in found))

    def test_option_may_have_several_lines(self):
        self.assertEqual(
            {('a', 'x'): ['1', '2'], ('b', 'x'): ['3,4']},
            guide.options(['[a]', 'x = 1', '# x = 9', 'x=2', '', '[b]',
                           'x = 3,4']))

    def test_dots_within_a_line_stand_for_any_text(self):
        for printed, expected in (('a 17 b', True), ('a 1 2  b', True),
                                  ('a 17', False), ('x a b', False)):
            with self.subTest(printed=printed):
                self.assertEqual(
                    expected, guide.matches(('a ... b',), [printed]))

    def test_dots_stand_for_any_lines(self):
        shown = ('a  b', '...', 'c')
        for printed, expected in ((['a b', 'c'], True),
                                  (['a b', 'x', 'y', 'c'], True),
                                  (['a b', 'x'], False),
                                  (['a', 'c'], False),
                                  (['a b', 'c', 'x'], False)):
            with self.subTest(printed=printed):
                self.assertEqual(expected, guide.matches(shown, printed))

# SPDX-License-Identifier: Apache-2.0

"""Reading the commands of a page."""

import unittest

from tests.system.cloud_checks import guide

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

   $ five \\
       --six
   7 of 8

.. code-block:: console

   $ nine
   It fits on 0 of 3 hosts.
   $ ten
   Error creating server: x
"""


class GuideTest(unittest.TestCase):
    def test_commands_are_read_with_the_lines_below_them(self):
        self.assertEqual(
            [guide.Step('one --two', ('a  b', '...', 'c')),
             guide.Step('three', ()),
             guide.Step('five \\\n    --six', ('7 of 8',)),
             guide.Step('nine', ('It fits on 0 of 3 hosts.',)),
             guide.Step('ten', ('Error creating server: x',))],
            list(guide.steps(TEXT)))

    def test_refusals_have_an_exit_status(self):
        self.assertEqual([0, 0, 0, 1, 1],
                         [step.status for step in guide.steps(TEXT)])

    def test_pages_of_the_documentation_have_commands(self):
        found = [step for name in guide.PAGES
                 for step in guide.steps(guide.page(name).read_text())]
        self.assertGreater(len(found), 15)
        self.assertEqual(2, sum(step.fails for step in found))
        self.assertEqual(3, sum(step.status for step in found))

    def test_option_may_have_several_lines(self):
        self.assertEqual(
            {('a', 'x'): ['1', '2'], ('b', 'x'): ['3,4,5']},
            guide.options(['[a]', 'x = 1', '# x = 9', 'x=2', '', '[b]',
                           'x =', '    3,4,', '    5']))

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

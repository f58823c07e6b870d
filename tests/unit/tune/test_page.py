# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt.tune import page
from tests.builders import tuned


class PageTest(unittest.TestCase):

    def test_a_page_has_all_values_and_programs(self):
        html = page.page(tuned.make_report(), '2026-11-28 12:00 UTC')
        for part in ('<title>What pays on these hosts</title>',
                     'pages=1G', '+2.1 % (+1.3 to +2.9 %)', 'refused',
                     'quota x ept', 'aria-label="ratio 1.021'):
            self.assertIn(part, html)
        self.assertNotIn('<script', html)
        self.assertNotIn('http', html)

    def test_names_are_escaped(self):
        shown = tuned.make_report(reason='<b>no</b>')
        self.assertNotIn('<b>no</b>', page.page(shown, 'now'))

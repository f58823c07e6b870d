# SPDX-License-Identifier: Apache-2.0

"""What nova-scheduler and nova-api load of hpcvirt, as the page says."""

import pathlib
import re
import subprocess
import sys
import unittest

from tests import pages

PAGE = pages.read('install/scheduler')

#: Names the file of each module of hpcvirt that the plug-ins import.
PROGRAM = """
import sys
from hpcvirt.conf import opts
from hpcvirt.nova import extra_specs
from hpcvirt.nova import filters
from hpcvirt.nova import weights
for name, module in sorted(sys.modules.items()):
    if name.partition('.')[0] == 'hpcvirt':
        print(module.__file__)
"""


class LoadedModulesTest(unittest.TestCase):
    def test_the_page_says_how_much_there_is_to_review(self):
        found = subprocess.run(
            [sys.executable, '-W', 'ignore', '-c', PROGRAM], check=True,
            stdout=subprocess.PIPE, text=True)
        files = [pathlib.Path(name) for name in found.stdout.split()]
        lines = {path: len(path.read_text().splitlines()) for path in files}
        # Files without lines only make a folder a package.
        modules, total = sum(map(bool, lines.values())), sum(lines.values())
        print(f'{modules} modules, {total} lines', file=sys.stderr)
        said = re.search(r'(\d+) modules\s+with\s+fewer\s+than\s+([\d,]+)'
                         r'\s+lines', PAGE)
        self.assertEqual(int(said[1]), modules)
        most = int(said[2].replace(',', ''))
        self.assertTrue(most - 300 < total < most, total)

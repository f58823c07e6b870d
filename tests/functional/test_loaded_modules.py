# SPDX-License-Identifier: Apache-2.0

"""What nova-scheduler loads of hpcvirt, as the page says."""

import json
import pathlib
import re
import subprocess
import sys
import unittest

from tests import pages

PAGE = pages.read('install/scheduler')

#: Names the file of each module of hpcvirt that the plug-ins import, and says
#: whether they have registered options with Nova before and after they start.
PROGRAM = """
import json
import sys

import nova.conf
from hpcvirt.nova import filters
from hpcvirt.nova import weights
files = [module.__file__ for name, module in sorted(sys.modules.items())
         if name.partition('.')[0] == 'hpcvirt']
registered = ['hpcvirt' in nova.conf.CONF]
weights.HPCTopologyWeigher()
registered.append('hpcvirt' in nova.conf.CONF)
print(json.dumps({'files': files, 'registered': registered}))
"""


class LoadedModulesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # Once, because importing Nova takes longest.
        found = subprocess.run(
            [sys.executable, '-W', 'ignore', '-c', PROGRAM], check=True,
            stdout=subprocess.PIPE, text=True)
        cls.found = json.loads(found.stdout)

    def test_importing_registers_no_option_with_nova(self):
        self.assertEqual([False, True], self.found['registered'])

    def test_the_page_says_how_much_there_is_to_review(self):
        files = [pathlib.Path(name) for name in self.found['files']]
        lines = {path: len(path.read_text().splitlines()) for path in files}
        # Files without lines only make a folder a package.
        modules, total = sum(map(bool, lines.values())), sum(lines.values())
        print(f'{modules} modules, {total} lines', file=sys.stderr)
        said = re.search(r'(\d+) modules\s+with\s+fewer\s+than\s+([\d,]+)'
                         r'\s+lines', PAGE)
        self.assertEqual(int(said[1]), modules)
        most = int(said[2].replace(',', ''))
        self.assertTrue(most - 300 < total < most, total)

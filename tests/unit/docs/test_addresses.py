# SPDX-License-Identifier: Apache-2.0

"""The addresses of the project are those of setup.cfg, wherever they stand.

They are placeholders until the project is hosted. Whoever hosts it changes
setup.cfg, and this test names the other lines.
"""

import configparser
import re
import unittest

from tests import pages

DOMAIN = 'hpcvirt.example.org'
#: A host or a mail address of the project, with the path of a page.
ADDRESS = re.compile(rf'[\w.-]*@?[\w.-]*{re.escape(DOMAIN)}(?:/[\w./-]*)?')
FILES = ('.gitreview', '.zuul.yaml', 'ansible/galaxy.yml',
         'devstack/README.rst', 'README.rst', 'CONTRIBUTING.rst',
         'SECURITY.rst', 'doc/source/quickstart.rst')


def read_addresses():
    """Read the addresses of setup.cfg, without https:// and mailto:."""
    config = configparser.ConfigParser()
    config.read(pages.ROOT / 'setup.cfg')
    metadata = config['metadata']
    return set(ADDRESS.findall('\n'.join(
        metadata[key] for key in ('home_page', 'author_email',
                                  'project_urls'))))


class AddressesTest(unittest.TestCase):
    def test_files_have_the_addresses_of_setup_cfg(self):
        known = read_addresses()
        self.assertGreater(len(known), 6)
        seen = 0
        for name in FILES:
            for address in ADDRESS.findall((pages.ROOT / name).read_text()):
                with self.subTest(name, address=address):
                    self.assertIn(address, known)
                    seen += 1
        self.assertGreater(seen, 6)

    def test_no_other_page_has_an_address(self):
        for path in pages.SOURCE.rglob('*.rst'):
            name = str(path.relative_to(pages.ROOT))
            if name not in FILES:
                self.assertNotIn(DOMAIN, path.read_text(), name)

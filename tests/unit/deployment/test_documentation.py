# SPDX-License-Identifier: Apache-2.0

"""The pages on configurations against what the program writes."""

import dataclasses
import re
import unittest

from hpcvirt.deployment import formats
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from tests import pages
from tests.builders import hosts


def make_plan():
    """Plan a host whose guests get devices and need a trait."""
    return planner.plan(
        [hosts.build(name='n1', vfs={1: 8})], dataclasses.replace(
            profiles.DEFAULT, devices=(hosts.VFS,),
            extra_specs=(('trait:CUSTOM_HPC', 'required'),)))


class GuidesTest(unittest.TestCase):
    """The guides by deployer."""

    def test_the_place_of_the_source_is_that_of_the_pages(self):
        for page in ('install/kolla-ansible', 'install/kayobe'):
            self.assertRegex(pages.read(page),
                             rf'\s`*{formats.SOURCE_PLACE}[`\s]')

    def test_variables_of_edpm_are_listed(self):
        page = pages.read('install/rhoso')
        text = ''.join(file.text for file in formats.edpm_files(make_plan()))
        names = set(re.findall(r'^ +(edpm_\w+):', text, re.MULTILINE))
        self.assertGreater(len(names), 3)
        for name in names:
            self.assertIn(f'``{name}``', page)

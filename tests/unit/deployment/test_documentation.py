# SPDX-License-Identifier: Apache-2.0

"""The page on the files of hosts against what the program writes."""

import dataclasses
import re
import unittest

from hpcvirt.deployment import host_files
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from tests import pages
from tests.builders import hosts


class HostFilesPageTest(unittest.TestCase):
    def test_each_file_is_listed_with_what_makes_it_effective(self):
        plan = planner.plan([hosts.build(vfs={1: 8})], dataclasses.replace(
            profiles.DEFAULT, devices=(profiles.Devices(
                vendor_id='15b3', product_id='101e'),),
            extra_specs=(('trait:CUSTOM_HPC', 'required'),)))
        listed = {}
        for row in pages.read('reference/host-files').split('\n   * - ')[1:]:
            names, _, effective = row.split('\n     - ')
            after = effective.partition('\n\n')[0]
            for path in re.findall('``(/.*?)``', names):
                listed[path] = tuple(re.findall('``(.*?)``', after))
        self.assertEqual(
            {f'/{file.path}': file.activate
             for file in host_files.files(plan.hosts[0], plan)}, listed)

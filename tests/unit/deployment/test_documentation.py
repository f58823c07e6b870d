# SPDX-License-Identifier: Apache-2.0

"""The pages on configurations against what the program writes."""

import dataclasses
import re
import unittest

import yaml

from hpcvirt.deployment import formats
from hpcvirt.deployment import host_files
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


def plan_sets():
    """Plan a host whose guests get sets of devices and need a trait."""
    path = hosts.TOPOLOGIES.parent / 'profiles/gpu-nic.yaml'
    host = dataclasses.replace(hosts.named('xeon-2s-20c-smt-8gpu'), name='n1')
    return planner.plan([host], dataclasses.replace(
        profiles.build(yaml.safe_load(path.read_text()), path.name),
        extra_specs=(('trait:CUSTOM_HPC', 'required'),)))


class HostFilesPageTest(unittest.TestCase):
    def test_each_file_is_listed_with_what_makes_it_effective(self):
        plan = make_plan()
        listed = {}
        for row in pages.read('reference/host-files').split('\n   * - ')[1:]:
            names, _, effective = row.split('\n     - ')
            after = effective.partition('\n\n')[0]
            for path in re.findall('``(/.*?)``', names):
                listed[path] = tuple(re.findall('``(.*?)``', after))
        self.assertEqual(
            {f'/{file.path}': file.activate
             for file in host_files.files(plan.hosts[0], plan)}, listed)


class GuidesTest(unittest.TestCase):
    """The guides by deployer."""

    def test_what_is_written_is_listed(self):
        for deployer, page in (('kolla', 'install/kolla-ansible'),
                               ('kayobe', 'install/kayobe')):
            with self.subTest(deployer):
                table = pages.read(page).partition(
                    'list-table:: What is written')[2].partition('\n\n\n')[0]
                listed = [
                    path for row in table.split('\n   * - ')[1:]
                    for path in re.findall('``(.*?)``', row.split(
                        '\n     - ')[0])]
                self.assertRegex(pages.read(page),
                                 rf'\s`*{formats.SOURCE_PLACE}[`\s]')
                self.assertEqual(
                    {file.path.replace('hpcvirt_n1', 'GROUP').replace(
                        '/n1/', '/HOST/')
                     for plan in (make_plan(), plan_sets())
                     for file in formats.FORMATS[deployer](plan)},
                    set(listed))

    def test_variables_of_edpm_are_listed(self):
        page = pages.read('install/rhoso')
        file, *_ = formats.edpm_files(make_plan())
        names = set(re.findall(r'^ +(edpm_\w+):', file.text, re.MULTILINE))
        self.assertGreater(len(names), 3)
        for name in names:
            self.assertIn(f'``{name}``', page)

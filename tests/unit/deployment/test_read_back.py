# SPDX-License-Identifier: Apache-2.0

import dataclasses
import unittest

from hpcvirt import exception
from hpcvirt.deployment import formats
from hpcvirt.deployment import read_back
from hpcvirt.flavors import fleet_plan
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from tests.builders import hosts
from tests.builders import planned_sets
from tests.builders import wired


def a_fleet():
    """Plan a class with sets, one with VFs, and an isolated one."""
    planned = {
        's': planner.plan([wired.tree(name='sets')], dataclasses.replace(
            profiles.DENSE, devices=(planned_sets.GPUS,))),
        'v': planner.plan(
            [hosts.build(name=name, vfs={0: 8}) for name in ('v1', 'v2')],
            profiles.Profile(devices=(hosts.VFS,), name_prefix='v')),
        'p': planner.plan([hosts.build(name='plain')], profiles.Profile(
            name_prefix='p',
            extra_specs=(('trait:CUSTOM_P', 'required'),))),
        'o': planner.plan([hosts.build(name='other')], profiles.Profile(
            name_prefix='o'))}
    planned = {name: dataclasses.replace(plan, hosts=tuple(
        dataclasses.replace(host, fleet_class=name) for host in plan.hosts))
        for name, plan in planned.items()}
    return fleet_plan.merge_plans(fleet_plan.set_traits(
        fleet_plan.share_aliases(planned),
        {'s': frozenset(), 'v': frozenset(), 'p': frozenset({'CUSTOM_P'}),
         'o': frozenset()},
        {'p'}))


class ReadBackTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.plan = a_fleet()

    def write(self, deployer, was='', becomes='', where=''):
        """Write the files with a fault in those whose path has a part."""
        return [dataclasses.replace(file, text=file.text.replace(
            was, becomes)) if was and where in file.path else file
            for file in formats.FORMATS[deployer](self.plan)]

    def test_what_is_written_is_what_is_planned(self):
        for deployer in formats.FORMATS:
            files = self.write(deployer)
            read_back.check(deployer, files, self.plan)
            found = read_back.sort_files(deployer, files, self.plan)
            self.assertEqual({'sets', 'v1', 'v2', 'plain', 'other'},
                             set(found.compute))

    def test_a_difference_is_found_in_the_files_of_every_deployer(self):
        for deployer in formats.FORMATS:
            for was, becomes, said in (
                    ('report_in_placement = true', '',
                     'the host does not report them'),
                    ('enable_isolated_aggregate_filtering = true', '',
                     'plain: would take [1-9]'),
                    ('CUSTOM_P', 'CUSTOM_Q', 'plain: would take 0'),
                    ('cpu_dedicated_set = 0-31', 'cpu_dedicated_set = 2-31',
                     'and the plan says'),
                    ('"name": "hpc-vf"', '"name": "other"',
                     'nova-api does not know the PCI alias hpc-vf'),
                    ('pci_in_placement = true', '',
                     'does not ask Placement'),
                    ('device_spec = {"address": "0000:41:00.0"',
                     'device_spec = {"address": "0000:41:00.7"',
                     'has no device 0000:41:00.7')):
                with self.subTest(deployer, fault=was):
                    files = self.write(deployer, was, becomes)
                    is_changed = files != self.write(deployer)
                    self.assertTrue(is_changed)
                    with self.assertRaisesRegex(exception.InvalidInput, said):
                        read_back.check(deployer, files, self.plan)

    def test_services_that_disagree_are_refused(self):
        files = self.write('kolla', 'pci_in_placement = true', '',
                           'nova-conductor')
        with self.assertRaisesRegex(
                exception.InvalidInput, 'nova-api, nova-scheduler: would ask '
                'Placement for PCI devices, and nova-conductor would not'):
            read_back.check('kolla', files, self.plan)

    def test_options_that_nova_refuses_are_one_line(self):
        for becomes in ('reserved_host_memory_mb = many',
                        'reserved_host_memory_mb'):
            files = self.write('files', 'reserved_host_memory_mb = ',
                               f'{becomes}\n# ')
            with self.assertRaisesRegex(
                    exception.InvalidInput, '^sets: would get options that '
                    'Nova refuses: [^\n]*$'):
                read_back.check('files', files, self.plan)

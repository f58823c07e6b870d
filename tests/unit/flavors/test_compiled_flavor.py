# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt import exception
from hpcvirt.fit import guest as guests
from hpcvirt.flavors import compiled_flavor
from hpcvirt.model import flavor as flavor_model

ALIAS = 'pci_passthrough:alias'
POLICY = 'hw:pci_numa_affinity_policy'


def flavor(**specs):
    return flavor_model.Flavor('f', 8, 16384, 20, {
        key.replace('__', ':'): value for key, value in specs.items()})


class MakeTest(unittest.TestCase):
    def test_totals_traits_and_cells(self):
        own = flavor(hw__cpu_policy='dedicated', hw__numa_nodes='2',
                     hw__emulator_threads_policy='isolate',
                     resources__VGPU='2', trait__CUSTOM_A='required',
                     trait__CUSTOM_B='forbidden')
        guest = compiled_flavor.make(own)
        self.assertEqual(guests.Resources(9, 0, 16384, 20), guest.sums)
        self.assertEqual([(4, 8192)] * 2, [
            (cell.pcpus, cell.memory_mib) for cell in guest.demand.cells])
        self.assertEqual([('VGPU', 2, True)], [
            (each.name, each.count, each.one_pool)
            for each in guest.demand.requests])
        self.assertEqual(({'CUSTOM_A'}, {'CUSTOM_B'}),
                         (guest.required, guest.forbidden))
        self.assertIs(own, guest.flavor)

    def test_what_nova_refuses_names_the_flavor(self):
        with self.assertRaisesRegex(exception.InvalidInput,
                                    'flavor f: hw:numa_nodes'):
            compiled_flavor.make(flavor(hw__numa_nodes='9'))


POLICIES = {'gpu': 'required', 'nic': 'preferred', 'old': 'legacy'}


class CompleteTest(unittest.TestCase):
    def policy(self, **specs):
        found = compiled_flavor.complete(flavor(**specs), POLICIES)
        return found.extra_specs.get(POLICY)

    def test_a_flavor_has_the_policy_of_its_aliases(self):
        for aliases, expected in (
                ('gpu:2', 'required'), ('nic:1', 'preferred'),
                ('old:1', None), ('other:1', None), ('gpu:1,nic:1', None),
                ('gpu:1, gpu:1', 'required')):
            self.assertEqual(expected, self.policy(
                pci_passthrough__alias=aliases), aliases)
        self.assertIsNone(self.policy())

    def test_its_own_policy_counts(self):
        self.assertEqual('socket', self.policy(
            pci_passthrough__alias='gpu:1',
            hw__pci_numa_affinity_policy='socket'))

# SPDX-License-Identifier: Apache-2.0

import dataclasses
import unittest

from hpcvirt import exception
from hpcvirt.fit import capacity
from hpcvirt.flavors import compiled_flavor
from hpcvirt.flavors import fleet_plan
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from hpcvirt.flavors import warning
from hpcvirt.model import shape
from tests.builders import hosts
from tests.builders import planned_sets
from tests.builders import wired


def plan_class(name, **choices):
    return planner.plan([hosts.build(name=name, vfs={0: 8})],
                        profiles.Profile(**choices))


class MergeTest(unittest.TestCase):
    def test_classes_keep_their_settings_and_flavors(self):
        cpu, card = plan_class('a'), plan_class('b', name_prefix='io',
                                                devices=(hosts.VFS,))
        both = fleet_plan.merge_plans({'cpu': cpu, 'io': card})
        self.assertEqual(['a', 'b'], [host.name for host in both.hosts])
        self.assertEqual(
            [row.flavor for row in (*cpu.flavors, *card.flavors)],
            [row.flavor for row in both.flavors])

    def test_equal_flavors_are_one(self):
        both = fleet_plan.merge_plans({'x': plan_class('a'),
                                       'y': plan_class('b')})
        self.assertEqual([{'a', 'b'}] * len(both.flavors),
                         [set(row.per_host) for row in both.flavors])

    def test_what_two_classes_cannot_have_both_is_refused(self):
        for one, other, fault in (
                (plan_class('a'), plan_class('b', disk_gib=1),
                 'class y: plans a flavor'),
                (plan_class('a'),
                 plan_class('b', name_prefix='b', pack_cells=True),
                 'class y: has pack_cells: true, unlike class x'),
                (plan_class('a', devices=(hosts.VFS,)),
                 plan_class('b', name_prefix='b', devices=(
                     dataclasses.replace(
                         hosts.VFS, affinity=shape.PCIAffinity.REQUIRED),)),
                 'class y: has a PCI alias hpc-vf')):
            with self.assertRaisesRegex(exception.InvalidInput, fault):
                fleet_plan.merge_plans({'x': one, 'y': other})

    def test_with_sets_an_alias_is_for_one_product(self):
        sets = planner.plan([wired.tree(name='s')], dataclasses.replace(
            profiles.DENSE, devices=(planned_sets.GPUS,), name_prefix='s'))
        one, other = (plan_class(name, name_prefix=name, devices=(
            dataclasses.replace(hosts.VFS, product_id=product),))
            for name, product in (('a', '101e'), ('b', '1018')))
        fleet_plan.merge_plans({'a': one, 'b': other})
        with self.assertRaisesRegex(
                exception.InvalidInput, 'class b: has a PCI alias hpc-vf of '
                '.* and 1018, and class a one of .* and 101e; Nova refuses'):
            fleet_plan.merge_plans({'s': sets, 'a': one, 'b': other})

    def test_an_alias_gets_devices_of_other_classes(self):
        one, other = (plan_class(name, name_prefix=name, devices=(
            dataclasses.replace(hosts.VFS, alias=f'vf-{name}'),))
            for name in ('a', 'b'))
        both = fleet_plan.merge_plans(fleet_plan.share_aliases(
            {'x': one, 'y': other}))
        for row in both.flavors:
            # Both aliases are for the same product.
            self.assertEqual(row.per_host['a'], row.per_host['b'])
            self.assertGreater(row.per_host['a'], 0)

    def test_a_flavor_is_counted_on_the_hosts_of_all_classes(self):
        small = planner.plan([hosts.build(name='a', cores=8)],
                             profiles.DENSE)
        large = planner.plan(
            [hosts.build(name='b'), hosts.build(name='c')],
            dataclasses.replace(profiles.DENSE, name_prefix='b'))
        both = fleet_plan.merge_plans({'small': small, 'large': large})
        states = {host.name: host.state for host in both.hosts}
        shared = 0
        for row in both.flavors:
            guest = compiled_flavor.make(row.flavor)
            self.assertEqual(
                {name: capacity.fill(guest, state).count
                 for name, state in states.items()}, row.per_host)
            self.assertEqual(set(row.per_host), set(row.unused))
            shared += bool(row.per_host['a'] and row.per_host['b'])
        self.assertGreater(shared, 2)

    def test_traits_keep_a_flavor_on_its_class(self):
        plain = plan_class('a')
        special = plan_class('b', name_prefix='b', extra_specs=(
            ('trait:CUSTOM_IB', 'required'),))
        planned = fleet_plan.set_traits({'x': plain, 'y': special}, {})
        both = fleet_plan.merge_plans(planned)
        for row in both.flavors:
            counts = row.per_host['a'], row.per_host['b']
            if row.flavor.name.startswith('b.'):
                self.assertEqual((0, True), (counts[0], counts[1] > 0))
            else:
                self.assertGreater(min(counts), 0)
        self.assertEqual([frozenset(), {'CUSTOM_IB'}],
                         [host.state.traits for host in both.hosts])

    def test_what_also_fits_on_other_classes_is_said(self):
        planned = {'x': plan_class('a'), 'y': plan_class(
            'b', name_prefix='b')}
        both = fleet_plan.merge_plans(planned)
        said = [item for item in both.warnings
                if item.code is warning.WarningCode.FITS_ELSEWHERE]
        self.assertEqual(2, len(said))
        self.assertIn('planned for the class x, and also fit on 1 host of the '
                      'class y', said[0].message)
        self.assertEqual({row.flavor.name for row in planned['x'].flavors},
                         set(said[0].subjects))

    def test_a_trait_of_several_classes_keeps_nothing_on_one(self):
        planned = {name: plan_class(name, name_prefix=name, extra_specs=(
            ('trait:CUSTOM_IB', 'required'),)) for name in ('a', 'b')}
        planned['c'] = plan_class('c', name_prefix='c')
        both = fleet_plan.merge_plans(fleet_plan.set_traits(planned, {}))
        said = [item.message for item in both.warnings
                if item.code is warning.WarningCode.FITS_ELSEWHERE]
        for text, advice in zip(said, (
                'the class b; a trait of the class a alone would keep',
                'the class a; a trait of the class b alone would keep',
                'classes a, b; traits of the class c would keep'),
                strict=True):
            self.assertIn(advice, text)

    def test_hosts_of_all_other_classes_are_counted_together(self):
        planned = {name: plan_class(name, name_prefix=name)
                   for name in ('a', 'b', 'c')}
        said = [item.message
                for item in fleet_plan.merge_plans(planned).warnings
                if item.code is warning.WarningCode.FITS_ELSEWHERE]
        self.assertEqual(3, len(said))
        self.assertIn('and also fit on 2 hosts of the classes b, c', said[0])

    def test_other_devices_of_the_same_alias_are_said(self):
        for product, said in ((hosts.VFS.product_id, False), ('1018', True)):
            planned = {name: planner.plan(
                [hosts.build(name=name, vfs={0: 8, 1: 8})], profiles.Profile(
                    name_prefix=name, devices=(dataclasses.replace(
                        hosts.VFS, product_id=own),)))
                for name, own in (('a', hosts.VFS.product_id),
                                  ('b', product))}
            found = [item.message for item in fleet_plan.merge_plans(
                fleet_plan.share_aliases(planned)).warnings
                if item.code is warning.WarningCode.FITS_ELSEWHERE]
            self.assertEqual([said] * 2, [
                'with other devices of the same alias' in text
                for text in found])

    def test_an_isolated_class_takes_no_flavors_of_others(self):
        plain = plan_class('a')
        special = plan_class('b', name_prefix='b', extra_specs=(
            ('trait:CUSTOM_IB', 'required'),))
        planned = fleet_plan.set_traits(
            {'x': plain, 'y': special},
            {'x': frozenset(), 'y': frozenset({'CUSTOM_IB'})}, {'y'})
        both = fleet_plan.merge_plans(planned)
        for row in both.flavors:
            of_y = row.flavor.name.startswith('b.')
            self.assertEqual((not of_y, of_y), (
                row.per_host['a'] > 0, row.per_host['b'] > 0))
        self.assertFalse([
            item for item in both.warnings
            if item.code is warning.WarningCode.FITS_ELSEWHERE])

    def test_without_traits_those_of_hosts_are_unknown(self):
        planned = fleet_plan.set_traits({'x': plan_class('a')}, {})
        self.assertIsNone(planned['x'].hosts[0].state.traits)

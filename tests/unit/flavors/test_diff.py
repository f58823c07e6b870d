# SPDX-License-Identifier: Apache-2.0

import dataclasses
import unittest

from hpcvirt.flavors import catalogue
from hpcvirt.flavors import diff
from hpcvirt.model import flavor as flavor_model

SPECS = {'hw:cpu_policy': 'dedicated', 'hw:mem_page_size': '2048'}


def flavor(name='hpc.8c', vcpus=8, specs=None, mark=True):
    specs = SPECS if specs is None else specs
    return flavor_model.Flavor(
        name, vcpus, 1024, 0,
        catalogue.mark_specs(vcpus, 1024, 0, specs) if mark else specs)


def existing(found, **more):
    return diff.Existing('id', found, **more)


def step(wanted, *found):
    return diff.steps([wanted], found)[0]


class StepsTest(unittest.TestCase):
    def test_a_flavor_that_is_not_there_is_created(self):
        other = existing(flavor('other'))
        self.assertIs(diff.Action.CREATE, step(flavor(), other).action)

    def test_a_flavor_as_planned_needs_nothing(self):
        found = step(flavor(), existing(flavor()))
        self.assertIs(diff.Action.SAME, found.action)
        self.assertFalse(found.edited)

    def test_an_older_mark_alone_is_no_difference(self):
        old = dataclasses.replace(flavor(), extra_specs={
            **SPECS, 'hpcvirt:generated_by': 'hpcvirt-1'})
        found = step(flavor(), existing(old))
        self.assertIs(diff.Action.SAME, found.action)

    def test_our_flavor_that_another_plan_made_differs_but_is_not_edited(self):
        old = flavor(specs={**SPECS, 'hw:numa_nodes': '1'})
        found = step(flavor(), existing(old))
        self.assertIs(diff.Action.DIFFERS, found.action)
        self.assertEqual(('hw:numa_nodes is 1, planned without',),
                         found.differences)
        self.assertFalse(found.edited)

    def test_our_flavor_that_somebody_changed_is_edited(self):
        changed = dict(flavor().extra_specs, **{'hw:mem_page_size': 'any'})
        found = step(flavor(), existing(
            dataclasses.replace(flavor(), extra_specs=changed)))
        self.assertIs(diff.Action.DIFFERS, found.action)
        self.assertTrue(found.edited)
        self.assertEqual(('hw:mem_page_size is any, planned 2048',),
                         found.differences)

    def test_keys_that_hpcvirt_did_not_set_are_no_difference(self):
        old = flavor(specs={**SPECS, 'trait:CUSTOM_A': 'required'})
        mixed = dataclasses.replace(old, extra_specs={
            **old.extra_specs, 'aggregate:rack': 'r1', 'hw:pmu': 'true'})
        found = step(flavor(), existing(mixed))
        self.assertIs(diff.Action.DIFFERS, found.action)
        self.assertEqual(('trait:CUSTOM_A',), found.obsolete)
        self.assertEqual(('aggregate:rack', 'hw:pmu'), found.kept)
        self.assertFalse(found.edited)
        ours = step(old, existing(mixed))
        self.assertIs(diff.Action.SAME, ours.action)

    def test_a_key_that_changes_the_guest_is_a_difference(self):
        changed = dict(flavor().extra_specs, **{'hw:cpu_realtime': 'true'})
        found = step(flavor(), existing(
            dataclasses.replace(flavor(), extra_specs=changed)))
        self.assertIs(diff.Action.DIFFERS, found.action)
        self.assertEqual(('hw:cpu_realtime',), found.obsolete)
        self.assertTrue(found.edited)

    def test_many_keys_of_others_do_not_take_long(self):
        changed = dict(flavor().extra_specs, **{
            f'aggregate:{number}': 'x' for number in range(60)})
        found = step(flavor(), existing(
            dataclasses.replace(flavor(), extra_specs=changed)))
        self.assertIs(diff.Action.SAME, found.action)
        self.assertEqual(60, len(found.kept))

    def test_sizes_that_differ_are_told_apart_from_extra_specs(self):
        found = step(flavor(), existing(flavor(vcpus=4), swap_mib=64))
        self.assertTrue(found.needs_new_flavor)
        self.assertEqual(('vCPUs is 4, planned 8',), found.differences)
        same = step(flavor(), existing(flavor(specs={'a': 'b'})))
        self.assertFalse(same.needs_new_flavor)

    def test_a_flavor_without_the_mark_is_foreign_whatever_it_holds(self):
        same = step(flavor(), existing(flavor(mark=False)))
        self.assertIs(diff.Action.FOREIGN, same.action)
        self.assertEqual((), same.differences)
        other = step(flavor(), existing(flavor(specs={}, mark=False)))
        self.assertIs(diff.Action.FOREIGN, other.action)
        self.assertEqual(2, len(other.differences))

    def test_a_mark_that_is_not_ours_is_foreign(self):
        forged = dataclasses.replace(flavor(), extra_specs={
            **SPECS, 'hpcvirt:generated_by': 'me'})
        self.assertIs(diff.Action.FOREIGN,
                      step(flavor(), existing(forged)).action)

    def test_a_flavor_made_in_part_is_completed(self):
        half = existing(flavor(specs={}, mark=False),
                        description=diff.description(flavor()))
        self.assertIs(diff.Action.COMPLETE, step(flavor(), half).action)
        other = existing(flavor(specs={}, mark=False, vcpus=4),
                         description=diff.description(flavor()))
        self.assertIs(diff.Action.FOREIGN, step(flavor(), other).action)

    def test_flavors_of_ours_that_are_not_wanted_are_listed(self):
        found = [existing(flavor('b')), existing(flavor('a')),
                 existing(flavor('hpc.8c')),
                 existing(flavor('theirs', mark=False))]
        self.assertEqual(('a', 'b'), diff.find_left_over([flavor()], found))

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


def changed(found, **specs):
    """Change extra specs after hpcvirt wrote its mark."""
    return dataclasses.replace(found, extra_specs={
        **found.extra_specs, **{key.replace('__', ':'): value
                                for key, value in specs.items()}})


PLANNED = flavor(specs={**SPECS, 'trait:CUSTOM_A': 'required'})
CREATE, COMPLETE, SAME, DIFFERS, FOREIGN = diff.Action

#: What is in the cloud, the action, the differences, the extra specs that are
#: obsolete and those that are kept, and whether the flavor was edited.
STEPS = (
    (flavor('other'), CREATE, (), (), (), False),
    (flavor(), SAME, (), (), (), False),
    # An older mark alone is no difference.
    (changed(flavor(), hpcvirt__generated_by='hpcvirt-1'),
     SAME, (), (), (), False),
    # Another plan made it.
    (flavor(specs={**SPECS, 'hw:numa_nodes': '1'}), DIFFERS,
     ('hw:numa_nodes is 1, planned without',), ('hw:numa_nodes',), (), False),
    # Somebody changed what hpcvirt set, or what changes the guest.
    (changed(flavor(), hw__mem_page_size='any'), DIFFERS,
     ('hw:mem_page_size is any, planned 2048',), (), (), True),
    (changed(flavor(), hw__cpu_realtime='true'), DIFFERS,
     ('hw:cpu_realtime is true, planned without',), ('hw:cpu_realtime',), (),
     True),
    # Keys that hpcvirt did not set are no difference.
    (changed(PLANNED, aggregate__rack='r1', hw__pmu='true'), DIFFERS,
     ('trait:CUSTOM_A is required, planned without',), ('trait:CUSTOM_A',),
     ('aggregate:rack', 'hw:pmu'), False),
    # Without hpcvirt's mark it is foreign, whatever it holds.
    (flavor(mark=False), FOREIGN, (), (), (), False),
    (flavor(specs={}, mark=False), FOREIGN,
     ('hw:cpu_policy is missing, planned dedicated',
      'hw:mem_page_size is missing, planned 2048'), (), (), False),
    (changed(flavor(), hpcvirt__generated_by='me'), FOREIGN, (), (), (),
     False))


class StepsTest(unittest.TestCase):
    def test_what_is_in_the_cloud_decides_on_the_action(self):
        for found, *expected in STEPS:
            change = step(flavor(), existing(found))
            self.assertEqual(expected, [
                change.action, change.differences, change.obsolete,
                change.kept, change.edited], found)
        self.assertIs(SAME, step(PLANNED, existing(changed(
            PLANNED, aggregate__rack='r1', hw__pmu='true'))).action)

    def test_many_keys_of_others_do_not_take_long(self):
        found = step(flavor(), existing(changed(flavor(), **{
            f'aggregate:{number}': 'x' for number in range(60)})))
        self.assertIs(diff.Action.SAME, found.action)
        self.assertEqual(60, len(found.kept))

    def test_sizes_that_differ_are_told_apart_from_extra_specs(self):
        found = step(flavor(), existing(flavor(vcpus=4), swap_mib=64))
        self.assertTrue(found.needs_new_flavor)
        self.assertEqual(('vCPUs is 4, planned 8',), found.differences)
        same = step(flavor(), existing(flavor(specs={'a': 'b'})))
        self.assertFalse(same.needs_new_flavor)

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
        self.assertEqual(['a', 'b'], [
            item.flavor.name
            for item in diff.find_left_over([flavor()], found)])

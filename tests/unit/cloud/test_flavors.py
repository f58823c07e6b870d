# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt import exception
from hpcvirt.cloud import flavors
from hpcvirt.flavors import catalogue
from hpcvirt.flavors import diff
from hpcvirt.model import flavor as flavor_model
from tests.unit.cloud import compute_api

SPECS = {'hw:cpu_policy': 'dedicated', 'hw:mem_page_size': '2048'}


def wanted(name='hpc.8c1n.1g.2m', vcpus=8, ram=1024, specs=None,
           projects=None):
    return flavor_model.Flavor(name, vcpus, ram, 0, catalogue.mark_specs(
        vcpus, ram, 0, SPECS if specs is None else specs), projects)


class CloudFlavorsTest(unittest.TestCase):
    def setUp(self):
        self.api = compute_api.ComputeAPI(most=2)
        self.addCleanup(self.api.close)
        self.nova = self.api.client()

    def step(self, flavor):
        return diff.steps([flavor], flavors.read(self.nova, [flavor.name]))[0]

    def test_private_flavors_of_all_pages_are_read_as_of_one_version(self):
        for number in range(5):
            self.api.add(f'f{number}', extra_specs={'a': 'b'})
        found = flavors.read(self.nova)
        self.assertEqual([f'f{number}' for number in range(5)],
                         [item.flavor.name for item in found])
        self.assertEqual({'a': 'b'}, found[0].flavor.extra_specs)
        _, path, version = self.api.requests[-1]
        self.assertIn('is_public=None', path)
        self.assertEqual('compute 2.86', version)

    def test_a_flavor_is_created_with_its_extra_specs(self):
        flavor = wanted()
        flavors.create(self.nova, flavor)
        created = self.api.named(flavor.name)
        self.assertEqual(dict(flavor.extra_specs), created['extra_specs'])
        self.assertEqual((8, 1024, 0),
                         (created['vcpus'], created['ram'], created['disk']))
        self.assertIs(diff.Action.SAME, self.step(flavor).action)

    def test_a_private_flavor_is_created_with_its_projects(self):
        flavors.create(self.nova, wanted(projects=('p1', 'p2')))
        created = self.api.named(wanted().name)
        self.assertFalse(created['os-flavor-access:is_public'])
        self.assertEqual(['p1', 'p2'], self.api.projects[created['id']])
        self.assertIs(diff.Action.SAME, self.step(
            wanted(projects=('p2', 'p1'))).action)

    def test_a_project_without_access_is_given_it_in_place(self):
        flavors.create(self.nova, wanted(projects=('p1',)))
        before = self.api.named(wanted().name)['id']
        step = self.step(wanted(projects=('p2',)))
        self.assertEqual(('project p2 has no access',), step.differences)
        flavors.replace(self.nova, step)
        self.assertEqual({before: ['p1', 'p2']}, self.api.projects)

    def test_a_public_flavor_becomes_private_in_a_new_one(self):
        flavors.create(self.nova, wanted())
        before = self.api.named(wanted().name)['id']
        step = self.step(wanted(projects=()))
        self.assertTrue(step.needs_new_flavor)
        flavors.replace(self.nova, step)
        after = self.api.named(wanted().name)
        self.assertNotEqual(before, after['id'])
        self.assertFalse(after['os-flavor-access:is_public'])

    def test_a_replaced_flavor_keeps_what_hpcvirt_did_not_set(self):
        old = wanted(vcpus=4, specs={'trait:CUSTOM_OLD': 'required', **SPECS},
                     projects=('p1',))
        flavors.create(self.nova, old)
        before = self.api.named(old.name)
        before['extra_specs'].update({'aggregate:rack': 'r1'})
        before.update({'swap': 512, 'OS-FLV-EXT-DATA:ephemeral': 7,
                       'rxtx_factor': 2.5, 'description': 'for users'})
        self.api.projects[before['id']].append('p9')
        step = self.step(wanted())
        self.assertEqual(('aggregate:rack',), step.kept)
        self.assertEqual(('trait:CUSTOM_OLD',), step.obsolete)
        flavors.replace(self.nova, step)
        after = self.api.named(old.name)
        self.assertNotEqual(before['id'], after['id'])
        self.assertEqual(
            (8, 512, 7, 2.5, 'for users', False),
            (after['vcpus'], after['swap'],
             after['OS-FLV-EXT-DATA:ephemeral'], after['rxtx_factor'],
             after['description'], after['os-flavor-access:is_public']))
        self.assertEqual({'aggregate:rack': 'r1',
                          **wanted().extra_specs}, after['extra_specs'])
        self.assertEqual(['p1', 'p9'], self.api.projects[after['id']])
        self.assertIs(diff.Action.SAME, self.step(wanted()).action)

    def test_a_flavor_changed_in_place_keeps_the_keys_of_others(self):
        flavors.create(self.nova, wanted(specs={'hw:pmu': 'true', **SPECS}))
        self.api.named(wanted().name)['extra_specs'].update(
            {'aggregate:rack': 'r1', 'hw:cpu_realtime': 'true'})
        flavors.replace(self.nova, self.step(wanted()))
        # Without a digest that covers them, hw:pmu may be of somebody else.
        self.assertEqual(
            {'aggregate:rack': 'r1', 'hw:pmu': 'true',
             **wanted().extra_specs},
            self.api.named(wanted().name)['extra_specs'])

    def test_a_flavor_without_its_extra_specs_is_deleted(self):
        self.api.failures['POST', 'os-extra_specs'] = 400
        with self.assertRaisesRegex(exception.Unreachable, 'not today'):
            flavors.create(self.nova, wanted())
        self.assertEqual({}, self.api.flavors)

    def test_an_incomplete_flavor_is_reported_and_completed_later(self):
        self.api.failures.update({('POST', 'os-extra_specs'): 500,
                                  ('DELETE', 'flavors'): 500})
        with self.assertRaisesRegex(exception.Unreachable,
                                    'could not be deleted'):
            flavors.create(self.nova, wanted())
        self.api.failures.clear()
        step = self.step(wanted())
        self.assertIs(diff.Action.COMPLETE, step.action)
        flavors.complete(self.nova, step)
        self.assertIs(diff.Action.SAME, self.step(wanted()).action)

    def test_extra_specs_are_replaced_in_place(self):
        flavors.create(self.nova, wanted(specs={'hw:pmu': 'true', **SPECS}))
        before = self.api.named(wanted().name)['id']
        flavors.replace(self.nova, self.step(wanted()))
        after = self.api.named(wanted().name)
        self.assertEqual(before, after['id'])
        self.assertEqual(dict(wanted().extra_specs), after['extra_specs'])

    def test_the_old_flavor_is_restored_if_the_new_one_fails(self):
        flavors.create(self.nova, wanted(vcpus=4))
        step = self.step(wanted())
        calls = []
        create = self.api._create

        def fail_once(body):
            calls.append(body)
            return (403, {'forbidden': {'message': 'quota'}}) if len(
                calls) == 1 else create(body)

        self.api._create = fail_once
        with self.assertRaisesRegex(exception.Unreachable,
                                    'quota.*the old flavor was restored'):
            flavors.replace(self.nova, step)
        self.assertEqual(4, self.api.named(wanted().name)['vcpus'])

    def test_a_flavor_that_cannot_be_restored_is_reported(self):
        flavors.create(self.nova, wanted(vcpus=4))
        step = self.step(wanted())
        self.api.failures['POST', '/flavors'] = 500
        with self.assertRaisesRegex(exception.Unreachable,
                                    'could not be restored'):
            flavors.replace(self.nova, step)

    def test_a_disk_added_by_hand_is_not_deleted(self):
        flavors.create(self.nova, wanted(vcpus=4))
        self.api.named(wanted().name)['swap'] = 512
        flavors.replace(self.nova, self.step(wanted()))
        self.assertEqual(512, self.api.named(wanted().name)['swap'])

    def test_a_flavor_of_others_is_never_replaced(self):
        self.api.add(wanted().name, extra_specs=SPECS)
        with self.assertRaises(ValueError):
            flavors.replace(self.nova, self.step(wanted()))

    def test_an_endpoint_that_is_not_a_compute_api_is_reported(self):
        for content in (None, [], {}, {'flavors': None},
                        {'flavors': [{'id': 1}]}, {'flavors': [1]}):
            self.api.answer = lambda request, content=content: (
                self.api._send(request, 200, content))
            with self.assertRaisesRegex(exception.Unreachable,
                                        'does not list flavors'):
                flavors.read(self.nova)

    def test_every_error_is_one_line(self):
        for status in (400, 401, 403, 404, 406, 409, 413, 429, 500, 503):
            self.api.failures['GET', 'flavors'] = status
            with self.assertRaises(exception.Unreachable) as caught:
                flavors.read(self.nova)
            self.assertNotIn('\n', str(caught.exception))

# SPDX-License-Identifier: Apache-2.0

"""What the options of Placement in the page on scale do."""

import uuid
from importlib import metadata

import testtools
from nova.compute import pci_placement_translator
from placement import deploy
from placement.tests.functional.fixtures import placement as fixture

from hpcvirt.fit import demand as demands
from hpcvirt.flavors import plan_warnings
from tests.builders import planned_sets
from tests.builders import wired
from tests.functional import placement_app

#: More candidates than this are cut off: one and a half hosts' worth.
LIMIT = 84
DEVICES = 8

#: The option came with Placement 15 (2026.1).
OPTIMIZES = int(metadata.version('openstack-placement').split('.')[0]) >= 15


class PlacementCase(testtools.TestCase):
    """Placement in this process."""

    def setUp(self):
        super().setUp()
        self.placement = self.useFixture(
            fixture.PlacementFixture(use_intercept=False))
        self.app = deploy.loadapp(self.placement.conf_fixture.conf)

    def set_option(self, name, value, group='placement'):
        self.placement.conf_fixture.config(group=group, **{name: value})

    def call(self, method, path, body=None):
        answer = placement_app.ask(self.app, method, path, body)
        return answer.status_int, answer.json if answer.body else None

    def provide(self, resource_class, total, parent=None):
        provider = str(uuid.uuid4())
        self.call('POST', '/resource_providers', {
            'name': provider, 'uuid': provider,
            **({'parent_provider_uuid': parent} if parent else {})})
        status, _ = self.call(
            'PUT', f'/resource_providers/{provider}/inventories', {
                'resource_provider_generation': 0,
                'inventories': {resource_class: {
                    'total': total, 'max_unit': total}}})
        self.assertEqual(200, status)
        return provider

    def claim(self, allocations):
        consumer = f'/allocations/{uuid.uuid4()}'
        status, _ = self.call('PUT', consumer, {
            'allocations': allocations, 'project_id': 'p', 'user_id': 'u',
            'consumer_generation': None, 'consumer_type': 'INSTANCE'})
        return status, consumer


class CandidatesTest(PlacementCase):
    """Three hosts with eight devices each, and requests for two of them.

    Each host has 56 candidates.
    """

    def add_hosts(self, hosts, devices, total):
        """Add hosts; return the devices, and the host of each of them."""
        self.call('PUT', '/resource_classes/CUSTOM_DEVICE')
        parents = {}
        for _ in range(hosts):
            host = self.provide('VCPU', 8)
            for _ in range(devices):
                parents[self.provide('CUSTOM_DEVICE', total, host)] = host
        return parents

    def candidates(self, limit=1000):
        _, found = self.call(
            'GET', '/allocation_candidates?resources=VCPU:1&group_policy=none'
            '&resources1=CUSTOM_DEVICE:1&resources2=CUSTOM_DEVICE:1'
            f'&limit={limit}')
        return [each['allocations'] for each in found['allocation_requests']]

    def hosts(self, **options):
        """The candidates of each host within the limit."""
        for name, value in options.items():
            self.set_option(name, value)
        counts = dict.fromkeys(self.parents.values(), 0)
        for each in self.candidates(LIMIT):
            counts[next(self.parents[provider] for provider in each
                        if provider in self.parents)] += 1
        return counts

    def test_breadth_first_needs_a_cap(self):
        self.parents = self.add_hosts(3, DEVICES, 1)
        everything = self.candidates()
        self.assertEqual(168, len(everything))
        self.set_option('allocation_candidates_generation_strategy',
                        'breadth-first')
        # All are generated; those within a limit are an arbitrary choice.
        self.assertCountEqual(everything, self.candidates())
        self.assertEqual({LIMIT // 3}, set(self.hosts(
            max_allocation_candidates=LIMIT).values()))
        self.assertIn(0, self.hosts(
            allocation_candidates_generation_strategy='depth-first').values())

    def test_optimized_candidates_need_not_be_claimable(self):
        """One function of eight is left of the first of two cards."""
        used = next(iter(self.add_hosts(1, 2, DEVICES)))
        status, _ = self.claim(
            {used: {'resources': {'CUSTOM_DEVICE': DEVICES - 1}}})
        self.assertEqual(204, status)
        self.assertEqual({204}, self.outcomes())
        if OPTIMIZES:
            self.set_option('optimize_for_wide_provider_trees', True,
                            'workarounds')
        self.assertEqual({204, 409} if OPTIMIZES else {204}, self.outcomes())

    def outcomes(self):
        found = set()
        for each in self.candidates():
            status, consumer = self.claim(each)
            found.add(status)
            if status == 204:
                self.call('DELETE', consumer)
        return found


class PlannedSetsTest(PlacementCase):
    """The candidates of sets, as a plan writes them for nova-compute."""

    def add_host(self, planned):
        """Add a host as nova-compute reports it; remember the addresses."""
        root = self.provide('VCPU', 8)
        config = planned.settings
        for spec in config.pci_device_spec:
            name = pci_placement_translator.get_resource_class(
                None, spec['vendor_id'], spec['product_id'])
            self.call('PUT', f'/resource_classes/{name}')
            provider = self.provide(
                name, config.device_counts[spec['address']], root)
            traits = spec['traits'].split(',')
            for trait in traits:
                self.call('PUT', f'/traits/{trait}')
            _, found = self.call('GET', f'/resource_providers/{provider}')
            status, _ = self.call(
                'PUT', f'/resource_providers/{provider}/traits', {
                    'resource_provider_generation': found['generation'],
                    'traits': traits})
            self.assertEqual(200, status)
            self.addresses[provider] = spec['address']

    def offers(self, row, planned):
        """List the devices of each candidate for a flavor."""
        aliases = {each['name']: each for each in planned.settings.pci_alias}
        groups = ''.join(
            f'&resources{at}=' + pci_placement_translator.get_resource_class(
                None, aliases[device.alias]['vendor_id'],
                aliases[device.alias]['product_id'])
            + f':1&required{at}=' + aliases[device.alias]['traits']
            for at, device in enumerate(row.guest.devices))
        _, found = self.call(
            'GET', '/allocation_candidates?resources=VCPU:1'
            f'&group_policy=none{groups}&limit=100000')
        return [tuple(sorted(
            (self.addresses[provider], sum(own['resources'].values()))
            for provider, own in each['allocations'].items()
            if provider in self.addresses)) for each in found[
                'allocation_requests']], [
                    each['allocations']
                    for each in found['allocation_requests']]

    def check(self, host, *entries):
        self.addresses = {}
        plan = planned_sets.plan(host, entries=entries)
        (planned,) = plan.hosts
        self.add_host(planned)
        legal = planned_sets.read_sets(planned.settings)
        counts = {}
        for row in plan.flavors:
            kind = row.guest.device_set
            if kind is None:
                # Any device will do for a single one.
                continue
            own = {frozenset(devices) for each, devices in legal.items()
                   if each.kind == kind}
            offers, allocations = self.offers(row, planned)
            counts[kind] = len(offers)
            found = [{address for address, _ in offer} for offer in offers]
            self.assertEqual(counts[kind], plan_warnings.count_on_host(
                demands.compile_shape(row.guest).requests,
                planned.state.supply.pools))
            for members in own:
                # Each set is one candidate.
                self.assertEqual(1, found.count(members))
            # With one set taken, the free sets are offered, and no other.
            status, consumer = self.claim(
                allocations[found.index(max(own, key=sorted))])
            self.assertEqual(204, status)
            left = [{address for address, _ in offer}
                    for offer in self.offers(row, planned)[0]]
            whole = {spec['address'] for spec
                     in planned.settings.pci_device_spec
                     if planned.settings.device_counts[spec['address']] == 1}
            self.assertCountEqual(
                [members for members in own
                 if not members & whole & max(own, key=sorted)],
                [members for members in left if members in own])
            self.call('DELETE', consumer)
        return counts

    def test_each_set_is_one_candidate(self):
        self.assertEqual(
            {'gpu2': 16, 'gpu4': 16, 'gpu8': 1},
            self.check(wired.tree(nics=0), planned_sets.GPUS))

    def test_each_set_with_its_cards_is_one_candidate(self):
        self.assertEqual(
            {'gpu1': 64, 'gpu2': 256, 'gpu4': 256, 'gpu8': 1},
            self.check(wired.tree(nics=2), planned_sets.GPUS,
                       planned_sets.VFS))

    def test_sets_share_cards(self):
        self.assertEqual({'gpu1': 32, 'gpu2': 64, 'gpu4': 64, 'gpu8': 1},
                         self.check(wired.tree(), planned_sets.GPUS,
                                    planned_sets.VFS))

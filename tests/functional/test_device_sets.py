# SPDX-License-Identifier: Apache-2.0

"""Instances that need all devices of a set, with a real Placement.

Each host has eight GPUs, four on each of two cells: pairs, quartets, and all.
"""

import dataclasses
import inspect
import itertools
import json
import pathlib
import random
import textwrap
import threading
import types
import uuid

import fixtures
from nova import objects
from nova.compute import manager
from nova.pci import request as pci_request
from nova.scheduler import utils as scheduler_utils

from hpcvirt.fit import claim
from hpcvirt.model import host as host_model
from hpcvirt.nova import adapter
from hpcvirt.nova import filters
from testing import machines
from tests.builders import cases
from tests.functional import filtering
from tests.functional import lives
from tests.functional import nova_objects

GPUS = 8
SIZES = (2, 4, 8)
VENDOR_ID = '10de'
PRODUCT_ID = '2330'
PATCH = pathlib.Path(__file__).parents[2] / 'contrib/nova' / (
    filters.MOVES_PATCH)


def alias(name, **more):
    return json.dumps({'name': name, 'vendor_id': VENDOR_ID,
                       'product_id': PRODUCT_ID, 'device_type': 'type-PCI',
                       **more})


def trait(size, number):
    return f'CUSTOM_HPCVIRT_GPU{size}_{number % size}'


def address(number):
    return f'0000:81:{number:02x}.0'


def specification(number, **more):
    return json.dumps({
        'address': address(number), 'vendor_id': VENDOR_ID,
        'product_id': PRODUCT_ID,
        'traits': ','.join(trait(size, number) for size in SIZES),
        'hpcvirt_device_sets': ','.join(
            f'gpu{size}:{number // size}:{size}' for size in SIZES), **more})


def ranks(size):
    return ','.join(f'gpu{size}-{rank}:1' for rank in range(size))


class DeviceSetsNova(lives.LivesNova):
    #: Further tags of devices and aliases.
    MORE = types.MappingProxyType({})
    OPTIONS = (('pci', 'report_in_placement', True),
               ('filter_scheduler', 'pci_in_placement', True))

    def setUp(self):
        super().setUp()
        self.flags(group='pci', alias=[
            alias('gpu', **self.MORE), *(
                alias(f'gpu{size}-{rank}', traits=trait(size, rank),
                      **self.MORE)
                for size in SIZES for rank in range(size))])

    def add_hosts(self, *names, **more):
        machine = machines.build('host', 2, 6, pages={2048: 1024},
                                 housekeeping_cores=2)
        settings = dataclasses.replace(machine.settings, device_spec=tuple(
            specification(number, **self.MORE, **more)
            for number in range(GPUS)))
        gpus = tuple(host_model.Device(
            address(number), VENDOR_ID, PRODUCT_ID, number // 4, 0,
            'vfio-pci') for number in range(GPUS))
        self.add_machines(*(dataclasses.replace(
            machine, settings=settings, host=dataclasses.replace(
                machine.host, name=name, devices=gpus)) for name in names))

    def flavor(self, size, cells=0):
        """A flavor of a set of GPUs, or of a single one."""
        specs = {'pci_passthrough:alias': 'gpu:1'} if size == 1 else {
            'pci_passthrough:alias': ranks(size),
            'hpcvirt:device_set': f'gpu{size}'}
        if not cells:
            return self.create_flavor(1, 256, specs)
        return self.create_flavor(cells, 256, {
            **specs, 'hw:cpu_policy': 'dedicated',
            'hw:mem_page_size': '2048', 'hw:numa_nodes': str(cells),
            'hw:pci_numa_affinity_policy': 'preferred'})

    def get(self, size, cells=0, **more):
        """Boot an instance; return it and its GPUs."""
        server = self.boot(self.flavor(size, cells), **more)
        return server, self.gpus(server)

    def take(self, *gpus, **more):
        """Boot an instance that has these GPUs."""
        server = self.boot(self.create_flavor(1, 256, {
            'pci_passthrough:alias': ','.join(
                f'gpu8-{number}:1' for number in gpus)}), **more)
        self.assertEqual({*gpus}, self.gpus(server))
        return server

    def gpus(self, server):
        """The GPUs of an instance, which must be those of its allocation."""
        host, held = self.host_of(server), self.held(server)
        names = {provider['uuid']: provider['name'].lower() for provider
                 in self._get_all_providers()}
        allocated = {names[provider] for provider, each
                     in self._get_allocations_by_server_uuid(
                         server['id']).items()
                     if any(name.startswith('CUSTOM_PCI_')
                            for name in each['resources'])}
        self.assertEqual({f'{host}_{address(each)}' for each in held},
                         allocated)
        return held

    def held(self, server):
        return {int(each.split(':')[2][:2], 16)
                for each in self.guest(server).devices}

    def assert_set(self, size, gpus):
        first = min(gpus)
        self.assertEqual(set(range(first, first + size)), gpus)
        self.assertEqual(0, first % size)


class BootsTest(DeviceSetsNova):
    def test_periodic_sets_of_all_sizes_fill_a_host(self):
        self.add_hosts('one')
        octet, gpus = self.get(8, cells=2)
        self.assert_set(8, gpus)
        self.delete(octet)
        _, (single,) = self.get(1)
        _, pair = self.get(2, cells=1)
        self.assert_set(2, pair)
        self.assertEqual(single // 4, min(pair) // 4)
        # The next single device is the other one of the broken pair.
        other, (second,) = self.get(1, cells=1)
        self.assertEqual(single // 2, second // 2)
        four, quartet = self.get(4)
        self.assert_set(4, quartet)
        self.delete(other)
        self.delete(four)
        # Five are left: two pairs, and the other half of the first one.
        broken = [self.get(1)[0], self.get(1)[1]]
        self.assertEqual(single // 2, self.gpus(broken[0]).pop() // 2)
        self.assert_set(2, self.get(2)[1])
        # Two are left; they are of one pair, but one is taken.
        self.boot(self.flavor(2), status='ERROR')

    def test_the_eighth_device_is_not_given_to_a_pair_of_strangers(self):
        """Two free devices of different pairs have the right traits."""
        self.add_hosts('one')
        self.take(0, 1, 4, 6, 7)
        neighbour = self.take(3)
        self.boot(self.flavor(2), status='ERROR')
        self.assertIn('no set gpu2 of PCI devices is free', self.log.output)
        self.delete(neighbour)
        self.assertEqual({2, 3}, self.get(2)[1])

    def test_periodic_several_instances_of_one_request(self):
        self.add_hosts('one')
        found = [self.gpus(server)
                 for server in self.boot_many(self.flavor(2, 1), 4)]
        for each in found:
            self.assert_set(2, each)
        self.assertEqual(set(range(GPUS)), set().union(*found))

    def test_periodic_whole_sets_are_kept_on_other_hosts(self):
        self.add_hosts('one', 'two')
        broken = self.host_of(self.get(1)[0])
        for size in (1, 2, 4):
            self.assertEqual(broken, self.host_of(self.get(size)[0]))
        self.assertNotEqual(broken, self.host_of(self.get(8)[0]))

    def test_a_lost_race_ends_on_another_host(self):
        self.add_hosts('one', 'two')
        original = scheduler_utils.claim_resources
        lost = []

        def claim(ctx, client, spec, instance, request, **more):
            if not lost:
                # Another scheduler is faster.
                gpus = {provider: each for provider, each
                        in request['allocations'].items() if any(
                            name.startswith('CUSTOM_PCI_')
                            for name in each['resources'])}
                status = self.placement.put(
                    f'/allocations/{uuid.uuid4()}', {
                        'allocations': {
                            provider: {'resources': each['resources']}
                            for provider, each in gpus.items()},
                        'project_id': str(uuid.uuid4()),
                        'user_id': str(uuid.uuid4()),
                        'consumer_generation': None,
                        'consumer_type': 'INSTANCE'}, version='1.38').status
                lost.append((status, spec))
            return original(ctx, client, spec, instance, request, **more)
        self.useFixture(fixtures.MonkeyPatch(
            'nova.scheduler.utils.claim_resources', claim))
        _, gpus = self.get(4)
        self.assertEqual([204], [status for status, _ in lost])
        self.assert_set(4, gpus)

    def test_a_malformed_tag_refuses_its_host_only(self):
        self.add_hosts('one', hpcvirt_device_sets='gpu2')
        self.boot(self.flavor(2), status='ERROR')
        self.assertIn("data: the PCI devices: ValueError: hpcvirt_device_sets "
                      "'gpu2' is not of the form", self.log.output)
        self.add_hosts('two')
        self.assertEqual('two', self.host_of(self.get(2)[0]))


class LimitTest(DeviceSetsNova):
    OPTIONS = (*DeviceSetsNova.OPTIONS,
               ('scheduler', 'max_placement_results', 16))

    def test_periodic_an_answer_that_was_cut_off_is_logged_once(self):
        self.add_hosts('one')
        self.boot_many(self.flavor(2), 2)
        line, = (line for line in self.log.output.splitlines()
                 if 'max_placement_results' in line)
        self.assertTrue(line.startswith('INFO '))


class OutsidePlacementTest(DeviceSetsNova):
    OPTIONS = ()

    def add_hosts(self, *names):
        # Without report_in_placement, Nova refuses traits.
        super().add_hosts(*names, traits='')

    def test_sets_need_devices_in_placement(self):
        self.add_hosts('one')
        self.boot(self.flavor(2), status='ERROR')
        self.assertIn('its devices are not in Placement', self.log.output)
        self.boot(self.flavor(1))


class MovesTest(DeviceSetsNova):
    MORE = types.MappingProxyType({'live_migratable': 'yes'})

    def setUp(self):
        super().setUp()
        for program in ('LIBVIRT', 'QEMU'):
            self.useFixture(fixtures.MonkeyPatch(
                'nova.virt.libvirt.driver.'
                f'MIN_VFIO_PCI_VARIANT_{program}_VERSION', (1, 0, 0)))
        self.add_hosts('one', 'two')
        # The next two GPUs are in no set.
        for host in ('one', 'two'):
            self.take(0, host=host)
        self.server, _ = self.get(2, cells=1, host='one')

    def test_moves_that_would_take_any_devices_are_refused_and_no_others(
            self):
        self.migrate(self.server, 'ACTIVE')
        self.resize(self.server, self.flavor(4), 'ACTIVE')
        self.assertEqual('one', self.host_of(self.server))
        self.assertIn("(Nova's defect N)", self.log.output)
        # What takes its devices from Placement.
        self.shelve(self.server)
        self.unshelve(self.server)
        self.assert_set(2, self.gpus(self.server))
        source = self.host_of(self.server)
        self.live_migrate(self.server)
        self.assertNotEqual(source, self.host_of(self.server))
        self.assert_set(2, self.gpus(self.server))


class PatchedMovesTest(DeviceSetsNova):
    """The code of the patch of contrib/nova, in the claims of all hosts."""

    def setUp(self):
        super().setUp()
        self.flags(group='hpcvirt', moves_follow_placement=True)
        follow = patched_method()
        local = threading.local()

        def keeping(method):
            signature = inspect.signature(method)

            def keep(*arguments, **more):
                local.spec = signature.bind(
                    *arguments, **more).arguments['request_spec']
                try:
                    return method(*arguments, **more)
                finally:
                    local.spec = None
            return keep
        for name in ('_prep_resize', '_do_rebuild_instance_with_claim'):
            self.useFixture(fixtures.MonkeyPatch(
                f'nova.compute.manager.ComputeManager.{name}',
                keeping(getattr(manager.ComputeManager, name))))
        original = pci_request.get_pci_requests_from_flavor

        def make(flavor, affinity_policy=None):
            requests = original(flavor, affinity_policy)
            if getattr(local, 'spec', None):
                follow(requests, local.spec)
            return requests
        self.useFixture(fixtures.MonkeyPatch(
            'nova.pci.request.get_pci_requests_from_flavor', make))

    def test_periodic_moves_keep_whole_sets(self):
        self.add_hosts('one', 'two')
        # The next two GPUs are in no set.
        for host in ('one', 'two'):
            self.take(0, host=host)
        server, _ = self.get(2, host='one')
        self.migrate(server)
        self.assert_set(2, self.gpus(self.confirm(server)))
        self.resize(server, self.flavor(4, 1))
        self.assert_set(4, self.gpus(self.confirm(server)))
        host = self.host_of(server)
        self._run_periodics()
        self.assert_set(4, self.gpus(server))
        self.evacuate(server)
        self.assertNotEqual(host, self.host_of(server))
        self.assert_set(4, self.held(server))
        self.assertNotIn('takes other PCI devices', self.log.output)


class CandidatesTest(filtering.FilterTestCase):
    """The candidates that are left, with objects of Nova only."""

    def ask(self, flags, pairs, kind='gpu2', **more):
        """Ask for one or two GPUs.

        :param flags: the free devices of each GPU, its cell and its tag
        :param pairs: the GPUs of each candidate
        """
        requests = tuple(dataclasses.replace(
            filtering.gpu_request(affinity='preferred'),
            id=f'5505fed3-8bda-db3b-7c58-de7e4646b47{rank}', alias=f'g{rank}')
            for rank in range(len(pairs[0])))
        question = filtering.case(
            filtering.host(0, 0), requests=requests,
            pools=tuple(cases.Pool(cell, 1, {
                'vendor_id': '10de', 'product_id': '2330',
                'dev_type': 'type-PCI', 'address': f'0000:0{number}:00.0',
                **({'hpcvirt_device_sets': tag} if tag else {})}, f'p{number}')
                for number, (free, cell, tag) in enumerate(flags) if free),
            mappings=tuple({'': ['root'], **{
                f'{request.id}-0': [f'p{number}'] for request, number
                in zip(requests, pair, strict=True)}} for pair in pairs),
            **more)
        spec = nova_objects.request_spec(question, {
            **filtering.PINNED,
            **({'hpcvirt:device_set': kind} if kind else {})})
        return question, spec, nova_objects.host_state(question)

    def left(self, state):
        """The GPUs of the candidates that are left, in their order."""
        return [tuple(int(uids[0][1:]) for group, uids
                      in each['mappings'].items() if group)
                for each in state.allocation_candidates]

    def test_random_hosts(self):
        """What is left are the legal candidates that the claim accepts."""
        rng = random.Random('candidates')
        total = 0
        for _ in range(150):
            flags = [(rng.random() < 0.8, rng.randrange(2), ','.join(
                f'{kind}:{number}:2' for kind in ('gpu2', 'other')
                for number in range(3) if rng.random() < 0.4))
                for _ in range(rng.randrange(2, 6))]
            free = [n for n, each in enumerate(flags) if each[0]]
            pairs = list(itertools.permutations(free, 2))
            if not pairs:
                continue
            _, spec, state = self.ask(flags, pairs)
            demand = dataclasses.replace(adapter.demand(spec), device_set=None)
            expected = {
                pair for pair in pairs
                if {label for label in flags[pair[0]][2].split(',')
                    if label.startswith('gpu2')}
                & set(flags[pair[1]][2].split(',')) and claim.check(
                    demand, adapter.supply(state),
                    [[f'p{number}'] for number in pair]) is None}
            found = self.run_filter(spec, state)
            self.assertEqual(bool(expected), bool(found))
            self.assertEqual(len(expected), len(self.left(state)))
            self.assertEqual(expected, set(self.left(state)))
            total += len(expected)
        self.assertGreater(total, 100)

    def test_broken_sets_come_first_and_equals_are_shuffled(self):
        flags = [(number != 3, 0, f'gpu2:{number // 2}:2,gpu4:{number // 4}:4')
                 for number in range(8)]
        singles = [(number,) for number in range(8) if number != 3]
        seen = set()
        for _ in range(60):
            _, spec, state = self.ask(flags, singles, kind=None)
            self.run_filter(spec, state)
            order = [each for each, in self.left(state)]
            self.assertEqual(2, order[0])
            self.assertEqual({0, 1}, set(order[1:3]))
            seen.add(order[1])
            seen.add(order[3])
        self.assertEqual({0, 1, 4, 5, 6, 7}, seen)

    def test_hosts_without_sets_keep_the_order(self):
        flags = [(1, 0, '')] * 8
        singles = [(number,) for number in (3, 1, 7, 0, 2)]
        _, spec, state = self.ask(flags, singles, kind=None)
        self.run_filter(spec, state)
        self.assertEqual(singles, self.left(state))

    def test_the_reason_is_what_the_sets_lack(self):
        """Two of the three candidates are legal, but have no free cell."""
        flags = [(1, 0, 'gpu2:0:2'), (1, 0, 'gpu2:0:2'), (1, 1, 'gpu2:1:2')]
        question, spec, state = self.ask(flags, [(0, 2), (0, 1), (1, 0)])
        state.numa_topology = nova_objects.host_topology(dataclasses.replace(
            question, host=filtering.host(8, 8)))
        self.assertEqual([], self.run_filter(spec, state))
        self.assertIn('free PCPUs', self.log.output)
        self.assertNotIn('no set gpu2', self.log.output)

    def test_ports_alone_are_not_refused_for_a_malformed_tag(self):
        port = cases.Request({'vendor_id': '10de', 'product_id': '2330'}, 1,
                             None, None, str(uuid.UUID(int=5)))
        question, _, _ = self.ask([(1, 0, 'nonsense')], [(0,)], kind=None)
        question = dataclasses.replace(question, requests=(port,),
                                       mappings=({'': ['root']},))
        self.assertEqual(['host'], self.run_filter(
            nova_objects.request_spec(question, filtering.PINNED),
            nova_objects.host_state(question)))


def patched_method():
    """The method that the patch adds to the resource tracker."""
    lines = PATCH.read_text().splitlines()
    start = lines.index('+    def _follow_pci_allocation(pci_requests, '
                        'request_spec):')
    body = itertools.takewhile(lambda line: line.startswith('+'),
                               lines[start:])
    names = {'objects': objects}
    exec(textwrap.dedent('\n'.join(line[1:] for line in body)),  # noqa: S102
         names)
    return names['_follow_pci_allocation']

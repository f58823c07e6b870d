# SPDX-License-Identifier: Apache-2.0

"""Test the weighers with Nova's objects, without a running Nova."""

import dataclasses
import pickle
import random
import unittest
import uuid

import fixtures
import nova.conf
from nova import objects
from nova.scheduler import weights as nova_weights

from hpcvirt.fit import claim
from hpcvirt.fit import demand as demands
from hpcvirt.fit import guest as guests
from hpcvirt.fit import placement
from hpcvirt.model import shape
from hpcvirt.nova import adapter
from hpcvirt.nova import host_record
from hpcvirt.nova import weights
from hpcvirt.simulate import host_table
from hpcvirt.simulate import scheduler
from hpcvirt.simulate import strategy
from tests.builders import cases
from tests.functional import nova_objects

CONF = nova.conf.CONF
OURS = 'hpcvirt.nova.weights.all_weighers'
NOVAS = 'nova.scheduler.weights.all_weighers'
MULTIPLIER = 'topology_weight_multiplier'


def cell(number, taken=0, pcpus=8, **fields):
    """Make a cell of 8 PCPUs, each with 1 GiB in 2 MiB pages."""
    cpus = range(number * 64, number * 64 + pcpus)
    return cases.HostCell(**{
        'id': number, 'socket': number // 2, 'dedicated': frozenset(cpus),
        'shared': frozenset(), 'pinned': frozenset(cpus[:taken]),
        'siblings': tuple(frozenset({cpu}) for cpu in cpus),
        'cpu_usage': 0, 'memory_mib': pcpus * 1024,
        'memory_used_mib': taken * 1024,
        'pages': (cases.Pages(2048, 512 * pcpus, 512 * taken),), **fields})


def case(*taken, guest=(4,), **fields):
    """A guest with a number of PCPUs in each cell, and a host."""
    return cases.Case(**{
        'host': tuple(cell(number, count)
                      for number, count in enumerate(taken)),
        'policy': 'dedicated', 'page_kib': 2048,
        'guest': tuple(cases.GuestCell(pcpus, 0, pcpus * 1024)
                       for pcpus in guest),
        'mappings': ({'': ['root']},), **fields})


def gpu(number, count=1, provider=None):
    return cases.Pool(number, count, {
        'vendor_id': '10de', 'product_id': '2330', 'dev_type': 'type-PCI',
        'address': f'0000:{number:02x}:00.0'}, provider)


def gpu_request(affinity='preferred', count=1):
    return cases.Request({'vendor_id': '10de', 'product_id': '2330'}, count,
                         affinity, 'gpu', str(uuid.UUID(int=7)))


def host(name, asked):
    """Make a HostState as the scheduler passes it to weighers."""
    state = nova_objects.host_state(asked, name)
    state.aggregates = []
    memory_mib = sum(each.memory_mib for each in asked.host)
    state.free_ram_mb = memory_mib - sum(
        each.memory_used_mib for each in asked.host)
    state.vcpus_total = sum(len(each.shared) for each in asked.host)
    state.vcpus_used = sum(len(each.pinned) for each in asked.host)
    return state


def request(asked, extra_specs=None):
    spec = nova_objects.request_spec(asked, extra_specs)
    spec.instance_group = None
    return spec


def aggregate(**metadata):
    return objects.Aggregate(id=1, name='a', hosts=[], metadata=metadata)


class WeightsTestCase(unittest.TestCase):
    def setUp(self):
        super().setUp()
        self.handler = nova_weights.HostWeightHandler()

    def option(self, name, value):
        weights.HPCTopologyWeigher()
        CONF.set_override(name, value, group='hpcvirt')
        self.addCleanup(CONF.clear_override, name, group='hpcvirt')

    def weigh(self, hosts, spec, *names, seen=()):
        """Weigh hosts as the scheduler does: host -> weight, best first.

        :param seen: the requests for which it has weighed hosts before
        """
        weighers = [weigher() for weigher in self.handler.get_matching_classes(
            list(names) or [OURS])]
        for each in seen:
            self.handler.get_weighed_objects(weighers, list(hosts), each)
        found = self.handler.get_weighed_objects(weighers, list(hosts), spec)
        return {weighed.obj.host: weighed.weight for weighed in found}

    def ranking(self, spec, *names, seen=(), **hosts):
        """Order hosts, each a Case, by weight, best first."""
        states = [host(name, asked) for name, asked in hosts.items()]
        return list(self.weigh(states, spec, *names, seen=seen))


class LoadingTest(WeightsTestCase):
    def test_nova_finds_it_by_the_function_and_by_its_name(self):
        for name in OURS, 'hpcvirt.nova.weights.HPCTopologyWeigher':
            self.assertEqual([weights.HPCTopologyWeigher],
                             self.handler.get_matching_classes([name]))


class FragmentationTest(WeightsTestCase):
    def test_the_host_that_loses_least_room_comes_first(self):
        spec = request(case(0))
        self.assertEqual(
            ['exact', 'broken', 'whole'],
            self.ranking(spec, whole=case(0, 0), exact=case(8, 4),
                         broken=case(8, 2)))

    def test_the_prediction_decides_not_the_best_cell(self):
        # The claim uses the emptiest cell and splits it.
        spec = request(case(0))
        self.assertEqual(
            ['one-way', 'two-ways'],
            self.ranking(spec, **{'two-ways': case(4, 0),
                                  'one-way': case(4, 8)}))

    def test_the_cell_order_of_the_compute_hosts_matters(self):
        hosts = {'packed': case(4, 0), 'other': case(0, 8)}
        seen = [request(case(0, guest=(8,)))]
        self.assertEqual('other', self.ranking(
            request(case(0)), seen=seen, **hosts)[0])
        CONF.set_override('packing_host_numa_cells_allocation_strategy',
                          True, group='compute')
        self.addCleanup(CONF.clear_override,
                        'packing_host_numa_cells_allocation_strategy',
                        group='compute')
        self.assertEqual('packed', self.ranking(
            request(case(0)), seen=seen, **hosts)[0])

    def test_what_was_requested_before_decides(self):
        hosts = {'near': case(8, 0, pools=(gpu(1),)), 'whole': case(0, 0)}
        with_gpu = case(0, requests=(gpu_request('required'),))
        spec = request(case(0, guest=(8,)))
        self.assertEqual('near', self.ranking(spec, **hosts)[0])
        self.assertEqual('whole', self.ranking(
            spec, seen=[request(with_gpu)], **hosts)[0])

    def test_a_request_counts_once_and_others_for_their_cpus(self):
        weigher = weights.HPCTopologyWeigher()
        hosts = [nova_weights.WeighedHost(host(name, case(0, 0)), 0.0)
                 for name in 'ab']
        small, large = request(case(0)), request(case(0, guest=(8, 8)))
        for spec in (small, small, large, small, request(case(0)),
                     request(case(0, guest=()))):
            weigher.weigh_objects(hosts, spec)
        self.assertEqual((8 / 24, 16 / 24), weigher._mix.weights())

    def test_equal_hosts_have_no_weight(self):
        spec = request(case(0))
        found = self.weigh([host(name, case(4, 0)) for name in 'abc'], spec)
        self.assertEqual({'a': 0, 'b': 0, 'c': 0}, found)

    def test_the_fuller_of_hosts_that_lose_as_much_comes_first(self):
        self.assertEqual(['fuller', 'full', 'free'], self.ranking(
            request(case(0)), full=case(8, 4, 3), fuller=case(8, 4, 5),
            free=case(8, 4, 0)))

    def test_the_smallest_difference_outweighs_novas_spreading(self):
        # The hosts between the best and the worst leave it little weight.
        hosts = {f'host{taken}': case(taken, 0, 0) for taken in range(8)}
        self.assertEqual('host7', self.ranking(
            request(case(0, guest=(1,))), NOVAS, OURS, **hosts)[0])

    def test_a_clear_difference_outweighs_novas_spreading(self):
        spec = request(case(0))
        hosts = {'whole': case(0, 0), 'broken': case(8, 4)}
        self.assertEqual('whole', self.ranking(spec, NOVAS, **hosts)[0])
        self.assertEqual('broken', self.ranking(spec, NOVAS, OURS, **hosts)[0])

    def test_each_guest_of_a_request_for_many_sees_the_one_before(self):
        asked = case(0, 0, guest=(4,))
        spec = request(asked)
        hosts = [host('one', asked), host('two', asked)]
        chosen = []
        for _ in range(4):
            name = next(iter(self.weigh(hosts, spec, NOVAS, OURS)))
            chosen.append(name)
            state = next(each for each in hosts if each.host == name)
            state.limits['numa_topology'] = nova_objects.limits(asked)
            state.consume_from_request(spec)
            self.assertFalse(state.failed_builds)
        self.assertEqual(1, len(set(chosen)))
        used = next(each for each in hosts if each.host == chosen[0])
        self.assertEqual(0, sum(len(each.free_pcpus)
                                for each in used.numa_topology.cells))

    def test_equal_hosts_are_rated_once(self):
        spec = request(case(0))
        weigher = weights.HPCTopologyWeigher()
        states = [host(name, case(4, 0)) for name in 'abc']
        weigher._weigh([*states, host('d', case(0, 0))], spec)
        known, = weigher._known.values()
        self.assertEqual(2, len(known))

    def test_the_request_is_left_as_it_was(self):
        spec = request(case(0))
        states = [host('a', case(4, 0)), host('b', case(0, 0))]
        before = pickle.dumps((spec.obj_to_primitive(), [
            state.numa_topology.obj_to_primitive() for state in states]))
        self.weigh(states, spec)
        self.assertEqual(before, pickle.dumps((spec.obj_to_primitive(), [
            state.numa_topology.obj_to_primitive() for state in states])))


class HandsOffTest(WeightsTestCase):
    """Requests and hosts for which the weighers have no preference."""

    def assert_no_say(self, spec, **hosts):
        states = [host(name, asked) for name, asked in hosts.items()]
        self.assertEqual({0}, set(self.weigh(states, spec).values()))
        self.assertEqual(list(self.weigh(states, spec, NOVAS)),
                         list(self.weigh(states, spec, NOVAS, OURS)))

    def test_a_guest_without_numa_topology(self):
        self.assert_no_say(
            request(case(0, guest=())),
            whole=case(0, 0), broken=case(8, 4), full=case(8, 8))

    def test_a_rebuild(self):
        spec = request(case(0))
        spec.scheduler_hints = {'_nova_check_type': ['rebuild']}
        self.assert_no_say(spec, whole=case(0, 0), broken=case(8, 4))

    def test_an_extra_spec_that_is_malformed(self):
        spec = request(case(0), {'hpcvirt:numa_scope': 'rack'})
        self.assert_no_say(spec, whole=case(0, 0), broken=case(8, 4))

    def test_hosts_of_which_none_can_take_the_guest(self):
        self.assert_no_say(request(case(0)), one=case(8, 8), two=case(6, 6))

    def test_a_host_that_cannot_take_the_guest_comes_last(self):
        spec = request(case(0))
        self.assertEqual('full', self.ranking(
            spec, full=case(8, 8), whole=case(0, 0), broken=case(4, 8))[-1])

    def test_a_host_without_topology_comes_last(self):
        spec = request(case(0))
        bare = host('bare', case(0))
        bare.numa_topology = None
        bare.pci_stats = None
        found = self.weigh([bare, host('whole', case(0, 0)),
                            host('broken', case(8, 4))], spec)
        self.assertEqual(['broken', 'whole', 'bare'], list(found))

    def test_hosts_without_candidates_are_weighed(self):
        spec = request(case(0, requests=(gpu_request(),)))
        states = [host('whole', case(0, 0, pools=(gpu(0),))),
                  host('broken', case(4, 8, pools=(gpu(0),)))]
        for state in states:
            state.allocation_candidates = []
        self.assertEqual('broken', next(iter(self.weigh(states, spec))))


class MultiplierTest(WeightsTestCase):
    def setUp(self):
        super().setUp()
        self.spec = request(case(0))
        self.hosts = [host('whole', case(0, 0)), host('broken', case(8, 4))]

    def test_the_option_scales_the_weights(self):
        self.option(MULTIPLIER, 7.0)
        self.assertEqual({'broken': 7.0, 'whole': 0.0},
                         self.weigh(self.hosts, self.spec))

    def test_zero_turns_the_weigher_off(self):
        self.option(MULTIPLIER, 0.0)
        self.assertEqual({'whole': 0.0, 'broken': 0.0},
                         self.weigh(self.hosts, self.spec))

    def test_a_negative_multiplier_reverses_the_order(self):
        self.option(MULTIPLIER, -1.0)
        self.assertEqual('whole',
                         next(iter(self.weigh(self.hosts, self.spec))))

    def test_metadata_of_an_aggregate_override_the_option(self):
        self.hosts[1].aggregates = [aggregate(**{MULTIPLIER: '3.5'})]
        self.assertEqual(3.5, self.weigh(self.hosts, self.spec)['broken'])

    def test_metadata_that_is_not_a_number_is_ignored(self):
        self.option(MULTIPLIER, 2.0)
        self.hosts[1].aggregates = [aggregate(**{MULTIPLIER: 'much'})]
        self.assertEqual(2.0, self.weigh(self.hosts, self.spec)['broken'])


class FarDevicesTest(WeightsTestCase):
    """Hosts on which the guest takes the same room, or not."""

    def setUp(self):
        super().setUp()
        self.option(MULTIPLIER, 1.0)

    def weights(self, affinity, **pools):
        """Weigh hosts whose cell 1 is full; pools are per host."""
        spec = request(case(0, requests=(gpu_request(affinity),)))
        return self.weigh([host(name, case(0, 8, pools=each))
                           for name, each in pools.items()], spec)

    def test_near_devices_come_first_under_preferred(self):
        self.assertEqual(
            {'near': 1, 'far': 0},
            self.weights('preferred', far=(gpu(1),), near=(gpu(0),)))

    def test_near_devices_come_first_within_a_socket(self):
        self.assertEqual(
            {'near': 1, 'far': 0},
            self.weights('socket', far=(gpu(1),), near=(gpu(0),)))

    def test_hosts_are_equal_under_required(self):
        self.assertEqual({'a': 0, 'b': 0}, self.weights(
            'required', a=(gpu(0),), b=(gpu(0),)))

    def test_room_comes_before_near_devices_unless_an_option_says_more(self):
        seen = [request(case(0, guest=(8,)))]
        spec = request(case(0, requests=(gpu_request(),)))
        hosts = {'broken': case(8, 4, pools=(gpu(0),)),
                 'whole': case(0, 8, pools=(gpu(0),))}
        self.assertEqual('broken', self.ranking(spec, seen=seen, **hosts)[0])
        for cost, first in ((0.1, 'broken'), (1e9, 'whole'), ('inf', 'whole')):
            self.option('far_device_cost', cost)
            self.assertEqual(first, self.ranking(spec, seen=seen, **hosts)[0])

    def test_hosts_are_equal_for_a_guest_without_devices(self):
        spec = request(case(0))
        self.assertEqual({'a': 0, 'b': 0}, self.weigh(
            [host('a', case(0, 8, pools=(gpu(0),))),
             host('b', case(0, 8, pools=(gpu(1),)))], spec))

    def test_the_candidate_that_will_be_claimed_counts(self):
        wanted = gpu_request()
        near, far = str(uuid.UUID(int=1)), str(uuid.UUID(int=2))
        pools = gpu(0, provider=near), gpu(1, provider=far)
        group = f'{wanted.id}-0'
        spec = request(case(0, requests=(wanted,)))
        found = self.weigh([
            host(name, case(0, 8, pools=pools, requests=(wanted,),
                            mappings=mappings))
            for name, mappings in (
                ('second', ({group: [far]}, {group: [near]})),
                ('first', ({group: [near]}, {group: [far]})))], spec)
        self.assertEqual({'first': 1, 'second': 0}, found)


class DeviceSetTest(WeightsTestCase):
    def setUp(self):
        super().setUp()
        self.option(MULTIPLIER, 1.0)

    def host(self, name, taken, cells=(0,)):
        """A host with four GPUs in pairs; the first free one is offered."""
        free = [number for number in range(4) if number not in taken]
        pools = tuple(cases.Pool(0, 1, {
            'vendor_id': '10de', 'product_id': '2330', 'dev_type': 'type-PCI',
            'address': f'0000:0{number}:00.0',
            'hpcvirt_device_sets': f'gpu2:{number // 2}:2,gpu4:0:4'},
            str(uuid.UUID(int=number))) for number in free)
        wanted = gpu_request()
        return host(name, case(*cells, pools=pools, requests=(wanted,),
                               mappings=tuple({f'{wanted.id}-0': [
                                   each.provider]} for each in pools)))

    def test_of_equal_hosts_the_one_with_broken_sets_comes_first(self):
        spec = request(case(0, requests=(gpu_request(),)))
        found = self.weigh([self.host('pair', (2, 3)),
                            self.host('broken', (1, 3))], spec)
        self.assertEqual({'broken': 1, 'pair': 0}, found)

    def test_guests_without_a_numa_topology_count_too(self):
        spec = request(dataclasses.replace(
            case(requests=(gpu_request(),)), guest=()))
        found = self.weigh([self.host('whole', (), ()),
                            self.host('broken', (1,), ())], spec)
        self.assertEqual({'broken': 1, 'whole': 0}, found)

    def test_hosts_without_sets_are_equal(self):
        spec = request(case(0, requests=(gpu_request(),)))
        self.assertEqual({'a': 0, 'b': 0}, self.weigh(
            [host(name, case(0, pools=(gpu(0),))) for name in 'ab'], spec))


class RecordTest(unittest.TestCase):
    """Tell whether a host has reported anew."""

    def test_digests_are_equal_only_if_all_values_are(self):
        seen = {}
        with fixtures.MonkeyPatch('hpcvirt.nova.host_record.MAX_LAYOUTS', 3):
            for number in range(200):
                dice = random.Random(number % 40)
                asked = case(host=tuple(
                    cell(place, dice.randrange(7), dice.choice((7, 8)),
                         memory_mib=dice.choice((8192, 16384)),
                         socket=dice.choice((0, 1)))
                    for place in range(dice.choice((2, 3)))))
                digest = host_record.digest(host('one', asked))
                self.assertEqual(seen.setdefault(digest, asked), asked)
        # With room for few layouts only, equal ones can differ, but are
        # remembered where nothing comes between.
        again = [host_record.digest(host('one', asked)) for _ in range(2)]
        self.assertEqual(*again)

    def test_a_change_in_place_is_noticed(self):
        for change in (
                lambda cell: cell.siblings[0].clear(),
                lambda cell: cell.siblings.pop(),
                lambda cell: cell.pcpuset.discard(0),
                lambda cell: cell.cpuset.add(200),
                lambda cell: cell.pinned_cpus.add(1),
                lambda cell: setattr(cell, 'memory_usage', 1),
                lambda cell: setattr(cell.mempages[0], 'used', 1)):
            # The second time, both layouts of the CPUs are known.
            for _ in range(2):
                state = host('one', case(0, 0))
                before = host_record.digest(state)
                change(state.numa_topology.cells[0])
                self.assertNotEqual(before, host_record.digest(state))

    def test_what_no_nova_writes_has_no_digest(self):
        for field, value in (('_obj_pinned_cpus', 'all'),
                             ('_obj_pcpuset', None), ('_obj_siblings', [1]),
                             ('_obj_mempages', 5), ('_obj_id', [])):
            state = host('one', case(0, 0))
            setattr(state.numa_topology.cells[0], field, value)
            self.assertIsNone(host_record.digest(state), field)


class SimulationTest(WeightsTestCase):
    """The fast mode of ``hpcvirt simulate`` chooses as Nova does."""

    def test_both_choose_the_same_host(self):
        dice = random.Random(11)
        chosen = 0
        for _ in range(150):
            asked = case(0, guest=dice.choice(((1,), (4,), (8,), (4, 4),
                                               (8, 8))))
            hosts = [host(f'host{number}', self.some_host(dice, asked))
                     for number in range(6)]
            spec = request(asked)
            demand = adapter.demand(spec)
            able = [state for state in hosts if isinstance(claim.predict(
                demand,
                adapter.supply(state)), demands.CellAssignment)]
            if len(able) < 2:
                continue
            for name, names in (('nova', (NOVAS,)),
                                ('hpcvirt', (NOVAS, OURS))):
                theirs = next(iter(self.weigh(able, spec, *names)))
                ours = self.choose(name, able, demand)
                self.assertEqual(theirs, able[ours].host)
                chosen += 1
        self.assertGreater(chosen, 200)

    def some_host(self, dice, asked):
        cells = dice.choice((2, 2, 4))
        pcpus = dice.choice((8, 16))
        return cases.dataclasses.replace(asked, host=tuple(
            cell(number, dice.choice((0, 0, 2, 4, 6, 8)), pcpus)
            for number in range(cells)))

    def choose(self, name, states, demand):
        flavors = (guests.Guest(shape.Shape(()), demand,
                                guests.Resources(0, 0, 0)),)
        table = host_table.HostTable(
            [placement.add_up(adapter.supply(state)) for state in states],
            flavors)
        table.free_ram[:] = [state.free_ram_mb for state in states]
        table.free_vcpus[:] = [
            state.vcpus_total * state.cpu_allocation_ratio - state.vcpus_used
            for state in states]
        (placed,) = scheduler.Scheduler(
            table, flavors, strategy.parse(name, 0)[0]).place(0, 1)
        return placed.host

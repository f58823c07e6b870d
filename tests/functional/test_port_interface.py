# SPDX-License-Identifier: Apache-2.0

"""SR-IOV ports with a guaranteed bandwidth, which come from one interface.

Nova's own function adds the interface to the PCI request after scheduling.
"""

import dataclasses
import time
import uuid
from unittest import mock

from hpcvirt.nova import filters
from hpcvirt.nova import port_interface
from tests.builders import cases
from tests.functional import nova_objects
from tests.functional import soundness

PORT = '3b0c9a0e-6d3a-4f0e-9b43-9d6a4a1d2f57'


class Watched(list):
    """Notes what a function returns before each item, and after the last."""

    def __iter__(self):
        self.seen = []
        for item in super().__iter__():
            self.seen.append(self.watch())
            yield item
        self.seen.append(self.watch())


class PortInterfaceCase(soundness.ClaimingTestCase):
    """Cells 0 and 1 have an interface each; cell 0 is in use."""

    def setUp(self):
        super().setUp()
        cells = tuple(
            cases.HostCell(
                id=number, socket=number, shared=frozenset(),
                dedicated=frozenset(range(number * 8, number * 8 + 8)),
                pinned=frozenset(range(taken)),
                siblings=tuple(frozenset({cpu}) for cpu in range(
                    number * 8, number * 8 + 8)),
                cpu_usage=0, memory_mib=8192, memory_used_mib=0,
                pages=(cases.Pages(2048, 4096),))
            for number, taken in enumerate((8, 0)))
        self.case = soundness.as_installed(cases.Case(
            host=cells, guest=(cases.GuestCell(4, 0, 1024),),
            policy='dedicated', page_kib=2048,
            pools=tuple(
                cases.Pool(number, 4, {
                    'vendor_id': '15b3', 'product_id': '101e',
                    'physical_network': 'hpc0', 'dev_type': 'type-VF',
                    'remote_managed': 'false',
                    'parent_ifname': f'ens{number}'})
                for number in range(2)),
            requests=(cases.Request({'physical_network': 'hpc0'}, 1,
                                    'required', None, PORT),),
            mappings=tuple({'': ['root'], PORT: [provider]}
                           for name, provider in cases.PROVIDERS.items()
                           if name in ('ens0', 'ens1'))))

    def claimed(self, mapping, question=None):
        """Claim with the request that Nova gives to the claim."""
        question = question or self.case
        requests = nova_objects.requests_with_allocation(question, mapping)
        self.assertIn('parent_ifname', requests[0].spec[0])
        return soundness.Claims(question).claim(mapping, requests)

    def passes(self, question, *others):
        state = nova_objects.host_state(question)
        return state in filters.HPCTopologyFilter().filter_all(
            [state, *others], nova_objects.request_spec(question))


class PortInterfaceTest(PortInterfaceCase):
    def test_candidates_of_other_cells_are_removed(self):
        state = nova_objects.host_state(self.case)
        offered = state.allocation_candidates
        list(filters.HPCTopologyFilter().filter_all(
            [state], nova_objects.request_spec(self.case)))
        self.assertEqual(offered[1:], state.allocation_candidates)
        self.assertEqual([None, 1], [
            claimed and claimed.cells[0].id
            for claimed in map(self.claimed, self.case.mappings)])

    def test_the_weighers_predict_the_cell_of_the_interface(self):
        self.case = dataclasses.replace(self.case, host=tuple(
            dataclasses.replace(cell, pinned=frozenset())
            for cell in self.case.host))
        spec = nova_objects.request_spec(self.case)
        for mapping in self.case.mappings:
            state = nova_objects.host_state(dataclasses.replace(
                self.case, mappings=(mapping,)))
            with self.subTest(mapping):
                self.assertEqual(
                    tuple(cell.id for cell in self.claimed(mapping).cells),
                    soundness.foretell(state, spec))

    def test_an_interface_without_free_virtual_functions(self):
        question = dataclasses.replace(
            self.case, pools=self.case.pools[1:],
            mappings=self.case.mappings[:1])
        self.assertIsNone(self.claimed(question.mappings[0], question))
        self.assertFalse(self.passes(question, nova_objects.idle_host()))
        # Its name is still known when no other host reports it.
        self.assertFalse(self.passes(question))

    def test_a_resource_provider_of_another_agent(self):
        mapping = {'': ['root'], PORT: [str(uuid.uuid4())]}
        self.assertTrue(self.passes(dataclasses.replace(
            self.case, mappings=(mapping,)), nova_objects.idle_host()))

    def test_hosts_with_malformed_devices_teach_nothing(self):
        broken = nova_objects.idle_host()
        broken.pci_stats.pools = [None]
        self.assertTrue(self.passes(dataclasses.replace(
            self.case, mappings=self.case.mappings[1:]), broken))

    def test_a_host_is_known_when_all_of_its_interfaces_are(self):
        """Another thread may look for them while one reads them."""
        host = nova_objects.idle_host()
        host.pci_stats.pools = Watched(
            [{port_interface.TAG: 'ens7'}, {port_interface.TAG: 'ens8'}])
        with mock.patch.object(port_interface, '_known_nodes', set()) as known:
            host.pci_stats.pools.watch = lambda: host.nodename in known
            port_interface.learn_new(host)
            self.assertIn(host.nodename, known)
        self.assertEqual([False, False, False], host.pci_stats.pools.seen)


class HostileNamesTest(PortInterfaceCase):
    """A host that reports other names of interfaces at each update."""

    def setUp(self):
        super().setUp()
        self.known = port_interface.KnownNames()
        self.nodes = set()
        self.enterContext(mock.patch.object(port_interface, '_known',
                                            self.known))
        self.enterContext(mock.patch.object(port_interface, '_known_nodes',
                                            self.nodes))

    def report(self, name, *names):
        """A host with these interfaces, of which the scheduler learns."""
        state = nova_objects.host_state_of(
            self.case, name, None, nova_objects.idle_host().pci_stats)
        state.pci_stats.pools = [{port_interface.TAG: each}
                                 for each in names]
        self.nodes.discard(name)
        port_interface.learn_new(state)
        return state

    def flood(self, *hosts):
        for number in range(50):
            for host in hosts:
                self.report(host, *(f'{host}{number}x{each}'
                                    for each in range(100)))

    def test_the_names_of_other_hosts_are_still_learned(self):
        self.flood('bad')
        question = dataclasses.replace(
            self.case, pools=self.case.pools[1:],
            mappings=self.case.mappings[:1])
        self.report('good', 'ens0', 'ens1')
        self.assertFalse(self.passes(question))
        self.flood('bad')
        self.assertFalse(self.passes(question))

    def test_hosts_with_the_most_names_are_forgotten_first(self):
        self.report('good', 'ens0', 'ens1')
        self.flood(*(f'bad{number}' for number in range(30)))
        self.assertFalse(self.passes(dataclasses.replace(
            self.case, pools=self.case.pools[1:],
            mappings=self.case.mappings[:1])))

    def test_names_are_not_learned_without_end(self):
        self.flood('bad')
        self.assertEqual(port_interface.MAX_NAMES_OF_A_HOST, len(self.known))
        self.flood(*(f'bad{number}' for number in range(30)))
        self.assertLessEqual(len(self.known), port_interface.MAX_NAMES)
        with mock.patch.object(port_interface, 'MAX_HOSTS', 10):
            for number in range(100):
                self.report(f'host{number}', f'ens{number}')
        self.assertLessEqual(len(self.known._of_hosts), 30)

    def test_hosts_that_have_not_reported_for_longest_are_forgotten(self):
        with mock.patch.object(port_interface, 'MAX_HOSTS', 2):
            for name in ('first', 'second', 'first', 'third'):
                self.report(name, f'of-{name}')
        self.assertEqual(['first', 'third'], list(self.known._of_hosts))

    def test_nodes_are_not_remembered_without_end(self):
        with mock.patch.object(port_interface, 'MAX_NODES', 3):
            for number in range(20):
                self.report(f'host{number}', 'ens0')
        self.assertLessEqual(len(self.nodes), 3)

    def test_providers_are_not_remembered_without_end(self):
        with mock.patch.object(port_interface, 'MAX_PROVIDERS', 3):
            for _ in range(20):
                self.known.find('host', str(uuid.uuid4()))
        self.assertLessEqual(len(self.known._found), 3)

    def test_what_is_no_name_of_an_interface_is_not_kept(self):
        self.report('bad', 'x' * 16, 'x' * 60_000)
        self.report('y' * 60_000, 'ens0')
        self.assertEqual(0, len(self.known))
        self.assertEqual({'bad'}, self.nodes)

    def test_names_that_no_host_has_any_more_are_forgotten(self):
        self.report('bad', 'ens0')
        self.report('bad', *(f'other{number}' for number in range(64)))
        self.assertIsNone(self.known.find('host', cases.PROVIDERS['ens0']))

    def test_a_port_with_a_bandwidth_lets_all_hosts_be_read_again(self):
        state = self.report('host', 'ens0')
        state.pci_stats.pools = [{port_interface.TAG: 'ens1'}]
        requests = nova_objects.pci_requests(self.case)
        for mapping, learns, known in (
                ({}, True, None),
                ({PORT: [cases.PROVIDERS['ens1']]}, False, 'ens1')):
            state.allocation_candidates = [{'mappings': mapping}]
            self.assertIs(learns, port_interface.learn(requests, [state]))
            self.assertEqual(known, self.known.find(
                'host', cases.PROVIDERS['ens1']))

    def test_a_provider_that_is_unknown_is_compared_once(self):
        for number in range(15):
            self.report(f'host{number}', *(f'{number}x{each}'
                                           for each in range(64)))
        state = self.report('host', 'ens0')
        request, = nova_objects.pci_requests(self.case)
        mappings = {PORT: [str(uuid.uuid4())]}
        before = time.process_time()
        for _ in range(1000):
            self.assertIsNone(port_interface.find(request, mappings, state))
        # It took 5 ms each time.
        self.assertLess(time.process_time() - before, 1)

# SPDX-License-Identifier: Apache-2.0

"""SR-IOV ports with a guaranteed bandwidth, which come from one interface.

Nova's own function adds the interface to the PCI request after scheduling.
"""

import dataclasses
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


class PortInterfaceTest(soundness.ClaimingTestCase):
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

    def test_names_are_not_learned_without_end(self):
        many = nova_objects.idle_host()
        many.pci_stats.pools = [{port_interface.TAG: f'ens{number}'}
                                for number in range(900)]
        known = set()
        with mock.patch.object(port_interface, '_known_names', known):
            for number in range(10):
                self.assertTrue(port_interface.learn(
                    nova_objects.pci_requests(self.case), [many]))
                port_interface._known_nodes.clear()
                port_interface.learn_new(many)
                for pool in many.pci_stats.pools:
                    pool[port_interface.TAG] += f'.{number}'
        self.assertLess(len(known), 2000)

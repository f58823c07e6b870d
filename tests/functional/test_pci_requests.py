# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""What HPCTopologyFilter does in place of PciPassthroughFilter."""

import uuid

from nova.scheduler import manager

from tests import cases
from tests.functional import nova_objects
from tests.functional import test_filter


def request(product, count=1, affinity=None):
    """A request by alias for devices of one product, or of any."""
    spec = {'vendor_id': '10de'}
    if product is not None:
        spec['product_id'] = product
    return cases.Request(spec, count, affinity, product or 'any',
                         str(uuid.uuid4()))


def pool(cell, count, product='2330'):
    return cases.Pool(cell, count, {
        'vendor_id': '10de', 'product_id': product, 'dev_type': 'type-PCI',
        'address': f'0000:{cell:02x}:00.0'})


class PCIRequestsTest(test_filter.FilterTestCase):

    def question(self, *requests, pools, guest=(), taken=(0, 0)):
        return test_filter.case(test_filter.host(*taken), guest, pools=pools,
                                requests=requests)

    def passed(self, *questions):
        return self.run_filter(nova_objects.request_spec(questions[0]),
                               *self.states(*questions))

    def test_a_guest_without_numa_topology_goes_where_devices_are(self):
        few, enough = (self.question(request('2330', 3), pools=pools)
                       for pools in ((pool(0, 1), pool(1, 1)),
                                     (pool(0, 1), pool(1, 2))))
        self.assertEqual(['host1'], self.passed(few, enough))
        self.assertIn('host0, host0 refused: the host has 2 of the 3 free PCI '
                      'devices that request 2330 needs', self.log.output)

    def test_affinity_means_nothing_to_it(self):
        for affinity in ('required', 'socket', 'legacy', 'preferred'):
            self.assertEqual(['host0'], self.passed(self.question(
                request('2330', 2, affinity), pools=(pool(0, 1), pool(1, 1)))))

    def test_a_host_without_numa_topology_serves_it(self):
        question = self.question(request('2330'), pools=(pool(0, 1),))
        states = self.states(question, question)
        states[0].numa_topology = None
        states[1].pci_stats = None
        self.assertEqual(['host0'], self.run_filter(
            nova_objects.request_spec(question), *states))
        self.assertEqual({}, states[0].limits)

    def test_what_concerns_only_cells_does_not_refuse_it(self):
        question = self.question(request('2330'), pools=(pool(0, 1),))
        state, = self.states(question)
        delattr(state.numa_topology.cells[0], '_obj_memory')
        state.ram_allocation_ratio = None
        del state.pci_stats.pools[0]['numa_node']
        self.assertEqual(['host0'], self.run_filter(
            nova_objects.request_spec(question, {
                'hpcvirt:numa_scope': 'planet'}), state))
        del state.pci_stats.pools[0]['count']
        self.assertEqual([], self.run_filter(
            nova_objects.request_spec(question), state))
        self.assertIn("the PCI devices: KeyError: 'count'", self.log.output)

    def test_the_claim_serves_requests_a_second_time_from_any_cell(self):
        # Next to the guest, the first request takes the device that only it
        # can take. From the whole host it takes the one that the second
        # request depends on.
        self.assertEqual([], self.passed(self.question(
            request(None), request('2330', affinity='preferred'),
            guest=(4,), taken=(0, 8),
            pools=(pool(1, 1), pool(0, 1, '1db4')))))
        self.assertIn(
            'request 2330 gets too few PCI devices of the whole host: '
            'requests before it take them', self.log.output)

    def test_devices_of_earlier_guests_of_a_request_are_not_given_again(self):
        question = self.question(request('2330', 2), pools=(pool(0, 5),))
        spec = nova_objects.request_spec(question)
        spec.num_instances = 3
        spec.flavor.root_gb = 0
        spec.instance_group = None
        hosts = self.states(question)
        for _ in range(2):
            hosts = list(self.filter.filter_all(hosts, spec))
            manager.SchedulerManager._consume_selected_host(hosts[0], spec)
        self.assertEqual([], list(self.filter.filter_all(hosts, spec)))

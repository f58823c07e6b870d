# SPDX-License-Identifier: Apache-2.0

import contextlib
import copy
from unittest import mock

from nova import context
from nova import exception
from nova import objects
from oslo_db import exception as db_exception

from hpcvirt.fit import reasons
from hpcvirt.nova import adapter
from hpcvirt.nova import claim_input
from hpcvirt.nova import config
from tests.builders import cases
from tests.functional import nova_objects
from tests.functional import soundness


class ClaimStartTest(soundness.ClaimingTestCase):
    def start(self, destination, requests=()):
        spec = nova_objects.request_spec(cases.Case(
            host=(), guest=(cases.GuestCell(4, 0, 1024),) * 2,
            policy='dedicated', page_kib=2048, requests=requests))
        spec.requested_destination = destination
        return claim_input.read(spec, adapter.demand(spec))

    def request(self):
        return cases.Request({'product_id': '101e'}, 1, 'preferred', 'vf',
                             '9d0fd37a-4f8c-4c7e-b0a4-b3c1f3d7e5a1')

    def test_new_instances_are_not_read(self):
        for destination in (None, objects.Destination(),
                            objects.Destination(host='host')):
            self.assertIsNone(self.start(destination, (self.request(),)).move)

    def test_instances_whose_claims_are_all_alike_are_not_read(self):
        self.assertIsNone(self.start(objects.Destination(
            cell=objects.CellMapping())).move)

    def test_an_instance_that_cannot_be_read_moves_like_most(self):
        for error in (exception.InstanceNotFound(instance_id='it'),
                      db_exception.DBConnectionError(),
                      db_exception.CantStartEngineError()):
            with (mock.patch.object(
                    context, 'target_cell', lambda anyone, _cell:
                    contextlib.nullcontext(anyone)),
                  mock.patch.object(objects.Instance, 'get_by_uuid',
                                    autospec=True, side_effect=error)):
                start = self.start(
                    objects.Destination(cell=objects.CellMapping()),
                    (self.request(),))
            self.assertIs(reasons.Defect.LOST_AFFINITY, start.move.defect)

    def test_no_claim_of_a_move_follows_placement_unless_it_is_patched(self):
        """Not even that of a guest without cells and with one device."""
        cold = objects.Destination(cell=objects.CellMapping())
        for follows, destination in (
                (False, cold), (True, cold), (True, objects.Destination(
                    cell=objects.CellMapping(), allow_cross_cell_move=True))):
            config.register().set_override('moves_follow_placement', follows,
                                           'hpcvirt')
            for guest in ((), (cases.GuestCell(4, 0, 1024),)):
                spec = nova_objects.request_spec(cases.Case(
                    host=(), guest=guest, policy='dedicated', page_kib=2048,
                    requests=(self.request(),)), {'hpcvirt:device_set': 'a'})
                spec.requested_destination = destination
                setattr(spec, claim_input._INSTANCE, objects.Instance(
                    task_state='resize_prep'))
                start = claim_input.read(spec, adapter.demand(spec))
                kept = follows and destination is cold
                self.assertEqual((kept, kept), (start.follows_placement,
                                                start.keeps_to_placement))
                self.assertEqual('a', start.demand.device_set)
                self.assertIsNone(start.move.claimed.device_set)
        soundness.CONF.clear_override('moves_follow_placement', 'hpcvirt')

    def test_an_unshelve_starts_from_the_cells_of_the_former_host(self):
        spec = nova_objects.request_spec(cases.Case(
            host=(), guest=(cases.GuestCell(4, 0, 1024),
                            cases.GuestCell(2, 0, 1024)),
            policy='dedicated', page_kib=-2))
        spec.requested_destination = objects.Destination(
            cell=objects.CellMapping())
        demand = adapter.demand(spec)
        former = copy.deepcopy(spec.numa_topology)
        for cell, number in zip(former.cells, (2, 0), strict=True):
            cell.id, cell.pagesize = number, 2048
        for known, numbers, sizes in ((former, (2, 0), (2048, 2048)),
                                      (None, (), (-2, -2))):
            setattr(spec, claim_input._INSTANCE, objects.Instance(
                task_state='unshelving', numa_topology=known,
                pci_requests=objects.InstancePCIRequests(requests=[])))
            start = claim_input.read(spec, demand)
            self.assertEqual(demand, start.move.wanted)
            self.assertEqual(numbers, start.move.claimed.numbers)
            self.assertEqual(sizes, tuple(
                cell.page_kib for cell in start.move.claimed.cells))

    def test_a_flavor_that_nova_refuses_keeps_what_was_written(self):
        """Its extra specs have changed after the instance was created."""
        spec = nova_objects.request_spec(cases.Case(
            host=(), guest=(cases.GuestCell(4, 0, 1024),) * 2,
            policy='dedicated', page_kib=2048))
        spec.numa_topology.cells[0].id = 3
        spec.flavor.vcpus, spec.flavor.memory_mb = 8, 2048
        # Nova refuses the first, and the second has one cell.
        for specs in {'hw:numa_nodes': 'many'}, {'hw:cpu_policy': 'dedicated'}:
            spec.flavor.extra_specs = specs
            self.assertEqual(2, len(adapter.demand(spec).cells))

    def test_a_move_to_any_nova_cell_is_a_cold_migration(self):
        start = self.start(objects.Destination(allow_cross_cell_move=True),
                           (self.request(),))
        self.assertIs(reasons.Defect.LOST_AFFINITY, start.move.defect)

# SPDX-License-Identifier: Apache-2.0

"""Claims of instances that exist already, made by Nova itself.

The requests are those of ``ResourceTracker._move_claim`` for a move, and those
of the instance for an unshelve.
"""

import contextlib
import copy
import dataclasses
import enum
import json
import types
from unittest import mock

from nova import context
from nova import exception
from nova import objects
from nova.compute import claims
from nova.objects import service
from nova.pci import request as pci_request

from tests import oracle
from tests.builders import cases
from tests.functional import multi_create
from tests.functional import nova_objects
from tests.functional import soundness

#: Since Nova 34 (https://bugs.launchpad.net/nova/+bug/2153425).
LIVE_MIGRATION_HAS_LIMITS = service.SERVICE_VERSION > 72

#: What the guest would not have, beside what :mod:`soundness` knows.
FAR_DEVICES = 'far devices'
FAR_NETWORKS = 'far networks'


class Life(enum.StrEnum):
    """What happens to an instance, by its task."""

    MOVE = 'resize_prep'
    EVACUATION = 'rebuilding'
    LIVE_MIGRATION = 'migrating'
    UNSHELVE = 'unshelving'


@dataclasses.dataclass
class Lived:
    """An instance, and a host that it may come to.

    :ivar case: the guest as requested, and the host
    :ivar former: its NUMA topology on the host that it comes from
    :ivar policy: the affinity policy of its flavor
    :ivar alias_policies: those of ``[pci]alias``, for each PCI request
    :ivar forgotten: its PCI requests have lost the policy of the flavor
    :ivar cells: the host cells of the last claim that :meth:`fault` has made
    """

    life: Life
    case: cases.Case
    former: objects.InstanceNUMATopology
    policy: str | None
    alias_policies: tuple
    forgotten: bool
    cells: tuple = ()

    def spec(self):
        """What nova-scheduler receives."""
        spec = multi_create.request_spec(self.case, 1)
        spec.flavor = self.flavor(spec.flavor)
        spec.requested_destination = objects.Destination(
            cell=objects.CellMapping())
        return spec

    def flavor(self, flavor):
        names = [f'{request.alias}:{request.count}'
                 for request in self.case.requests if request.alias]
        specs = dict(flavor.extra_specs)
        if names:
            specs['pci_passthrough:alias'] = ','.join(names)
        if self.policy:
            specs['hw:pci_numa_affinity_policy'] = self.policy
        return objects.Flavor(
            vcpus=flavor.vcpus, memory_mb=flavor.memory_mb, extra_specs=specs)

    def configure(self):
        """Set the options that the compute hosts share."""
        soundness.CONF.set_override('alias', self._aliases(), 'pci')
        pci_request.get_alias_from_config.cache_clear()
        soundness.CONF.set_override(
            'packing_host_numa_cells_allocation_strategy', self.case.packing,
            'compute')

    def _aliases(self):
        return [json.dumps({key: value for key, value in {
            'name': request.alias,
            'vendor_id': request.spec['vendor_id'],
            'product_id': request.spec['product_id'],
            'device_type': request.spec.get('dev_type'),
            'numa_policy': policy}.items() if value})
            for request, policy in zip(
                self.case.requests, self.alias_policies, strict=True)
            if request.alias]

    def requests(self, mapping=None):
        """The PCI requests of the instance, as Placement serves them."""
        requests = nova_objects.requests_with_allocation(
            self.case, mapping or {})
        for request, policy in zip(requests, self.alias_policies, strict=True):
            if request.alias_name and self.forgotten:
                request.numa_policy = policy
        return requests

    def instance(self, mapping=None):
        instance = _Instance(copy.deepcopy(self.former))
        instance.task_state = self.life.value
        instance.pci_requests = objects.InstancePCIRequests(
            requests=self.requests(mapping))
        return instance

    @contextlib.contextmanager
    def in_database(self):
        """Let nova-scheduler read the instance; configure its options."""
        self.configure()
        with (mock.patch.object(
                context, 'target_cell', lambda anyone, _cell:
                contextlib.nullcontext(anyone)),
              mock.patch.object(
                  objects.Instance, 'get_by_uuid',
                  lambda *_, **__: self.instance())):
            try:
                yield
            finally:
                soundness.CONF.clear_override('alias', 'pci')
                pci_request.get_alias_from_config.cache_clear()

    def fault(self, mapping):
        """Let Nova claim, and say what is wrong with the result."""
        host = nova_objects.host_topology(self.case)
        stats = nova_objects.pci_stats(self.case, host)
        tracker = types.SimpleNamespace(
            pci_tracker=types.SimpleNamespace(stats=stats))
        instance = self.instance(mapping)
        claimed_requests = (
            instance.pci_requests if self.life is Life.UNSHELVE
            else self._anew(instance))
        try:
            claimed = self._claim(instance, host, tracker, claimed_requests)
        except exception.ComputeResourcesUnavailable as exc:
            return (soundness.NO_DEVICES
                    if str(exc).endswith(': Claim pci failed.')
                    else soundness.REFUSED)
        except ValueError:
            return soundness.RAISED
        self.cells = tuple(cell.id for cell in claimed.cells)
        fault = soundness.fault(self.case, claimed)
        if fault is not None:
            return fault
        chosen = frozenset(cell.id for cell in claimed.cells)
        if not oracle.networks_near(self.case, chosen):
            return FAR_NETWORKS
        return self._fault_of_devices(
            host, claimed, (instance.pci_requests
                            if self.life is Life.LIVE_MIGRATION
                            else claimed_requests).requests)

    def _claim(self, instance, host, tracker, requests):
        limits = objects.SchedulerLimits.from_dict(
            {'numa_topology': nova_objects.limits(self.case)})
        compute_node = _Node(host._to_json())
        if self.life is Life.UNSHELVE:
            return claims.Claim(
                None, instance, 'node', tracker, compute_node, requests,
                limits=limits).claimed_numa_topology
        live = self.life is Life.LIVE_MIGRATION
        spec = multi_create.request_spec(self.case, 1)
        return claims.MoveClaim(
            None, instance, 'node', self.flavor(spec.flavor), spec.image,
            tracker, compute_node, requests,
            types.SimpleNamespace(is_live_migration=live),
            limits=None if live and not LIVE_MIGRATION_HAS_LIMITS else limits,
        ).claimed_numa_topology

    def _anew(self, instance):
        """The requests from which the claim of a move starts."""
        spec = multi_create.request_spec(self.case, 1)
        requests = pci_request.get_pci_requests_from_flavor(
            self.flavor(spec.flavor))
        requests.requests.extend(
            request for request in instance.pci_requests.requests
            if request.source == objects.InstancePCIRequest.NEUTRON_PORT)
        return requests

    def _fault_of_devices(self, host, claimed, requests):
        """Take the devices, and see where they are."""
        stats = nova_objects.pci_stats(self.case, host, devices=True)
        chosen = frozenset(cell.id for cell in claimed.cells)
        wanted = {request.requester_id or request.alias_name:
                  request.numa_policy for request in self.requests()}
        sockets = {cell.id: cell.socket for cell in self.case.host}
        for request in requests:
            try:
                taken = stats.consume_requests([request], claimed.cells)
            except exception.PciDeviceRequestFailed:
                return soundness.CLAIM_FAILED
            if len(taken) < request.count:
                return soundness.FEWER_DEVICES
            policy = wanted[request.requester_id or request.alias_name]
            if request.alias_name and self.policy:
                policy = self.policy
            if not all(_is_near(policy, device.numa_node, chosen, sockets)
                       for device in taken):
                return FAR_DEVICES
        return None


class _Instance(soundness.Topological):
    context = None


class _Node(soundness.Topological):
    """A compute node."""


def _is_near(policy, cell, chosen, sockets):
    if policy == 'preferred' or cell in chosen:
        return True
    if policy == 'socket':
        return None not in sockets.values() and sockets.get(cell) in {
            sockets[number] for number in chosen}
    return policy != 'required' and cell is None

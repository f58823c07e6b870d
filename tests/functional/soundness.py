# SPDX-License-Identifier: Apache-2.0

"""Nova's own claim for a case, and whether the claim is sound."""

import dataclasses
import itertools
import logging
import types
import unittest
from importlib import metadata
from unittest import mock

import nova.conf
from nova import exception
from nova import objects
from nova.compute import claims
from nova.virt import hardware

from hpcvirt.nova import adapter
from hpcvirt.nova import claim_input
from hpcvirt.nova import config
from tests import oracle
from tests.builders import cases
from tests.functional import nova_objects

CONF = nova.conf.CONF

#: The claim of the installed Nova takes cells with devices last for a guest
#: that requests none: since Nova 34.
SPARES_DEVICES = int(metadata.version('nova').partition('.')[0]) >= 34

#: What is wrong with an unsound claim.
REFUSED = 'refused'
NO_DEVICES = 'no devices'
RAISED = 'raised'
OUT_OF_PLACE = 'out of place'
NO_PAGE_SIZE = 'no page size'
FOREIGN_PINS = 'foreign pins'
NOT_ACCOUNTED = 'not accounted'
FEWER_DEVICES = 'fewer devices'
CLAIM_FAILED = 'claim of devices failed'


def as_installed(case):
    """The case on a compute host with the installed Nova."""
    return dataclasses.replace(case, spares_devices=SPARES_DEVICES)


class ClaimingTestCase(unittest.TestCase):
    """Tests of Nova's claim, without logs; its options are restored."""

    def setUp(self):
        super().setUp()
        self.addCleanup(logging.disable, logging.root.manager.disable)
        logging.disable(logging.CRITICAL)
        # Nova raises this for each arrangement of cells that does not fit.
        # The message, which is not used, takes a tenth of the time.
        self.enterContext(mock.patch.object(
            exception.PciDeviceRequestFailed, 'msg_fmt', ''))
        # Reading the host from JSON and copying the instance for each claim
        # takes half of the time. A claim changes neither: the hosts of some
        # cases are still read from JSON, see Claims.
        self.enterContext(mock.patch.object(
            objects.NUMATopology, 'obj_from_db_obj', _host_of(
                objects.NUMATopology.obj_from_db_obj)))
        # No alternates: these are the subject of test_alternates.
        CONF.set_override('max_attempts', 1, 'scheduler')
        self.addCleanup(CONF.clear_override, 'max_attempts', 'scheduler')
        self.addCleanup(CONF.clear_override,
                        'packing_host_numa_cells_allocation_strategy',
                        'compute')


def _host_of(from_json):
    def read(host):
        return host if isinstance(host, objects.NUMATopology) else (
            from_json(host))
    return read


class Topological:
    """What a claim needs of an instance or a compute node.

    Nothing else uses the instance, so that the claim needs no copy.
    """

    def __init__(self, numa_topology):
        self.numa_topology = numa_topology

    def __contains__(self, field):
        return field == 'numa_topology'

    def obj_clone(self):
        return self


class Claims:
    """Nova's claims for a case, one for each allocation candidate.

    The claims share the host and its devices, because a claim does not change
    them and building Nova's objects takes as long as a claim.
    """

    #: Of so many hosts, one is stored as JSON as in Nova's database.
    _STORED = 16
    _hosts = itertools.count()

    def __init__(self, case):
        self.case = case
        self.topology = nova_objects.host_topology(case)
        self.pci_stats = nova_objects.pci_stats(case, self.topology)
        self._limits = nova_objects.limits(case)
        self._compute_node = Topological(
            self.topology if next(self._hosts) % self._STORED
            else self.topology._to_json())
        self._tracker = types.SimpleNamespace(
            pci_tracker=types.SimpleNamespace(stats=self.pci_stats))

    def claim(self, mapping, pci_requests=None, guest=None):
        """Let nova-compute claim a place for the guest, after Placement.

        :param pci_requests: other requests than those of the case
        :param guest: another InstanceNUMATopology to start from
        :returns: an InstanceNUMATopology (without cells for a guest that has
            none), None, NO_DEVICES if only the second look at the devices,
            which ignores cells, refuses the guest, FEWER_DEVICES or
            CLAIM_FAILED for the devices that it then takes, or the error that
            was raised
        """
        CONF.set_override('packing_host_numa_cells_allocation_strategy',
                          self.case.packing, 'compute')
        requests = objects.InstancePCIRequests(
            requests=pci_requests or
            nova_objects.pci_requests(self.case, mapping))
        if guest is None and self.case.guest:
            guest = nova_objects.guest_topology(self.case)
        instance = Topological(guest)
        limits = objects.SchedulerLimits.from_dict(
            {'numa_topology': self._limits})
        try:
            if (self.pci_stats is None or
                    self.case.spares_devices != SPARES_DEVICES):
                claimed = self._fit(instance.numa_topology, requests.requests)
            else:
                claimed = claims.Claim(
                    None, instance, 'node', self._tracker, self._compute_node,
                    requests, limits=limits).claimed_numa_topology
            if claimed is None and not self.case.guest:
                claimed = objects.InstanceNUMATopology(cells=[])
            if claimed is None or claimed is NO_DEVICES:
                return claimed
            taken = self._take(requests.requests, claimed)
            return taken if isinstance(taken, str) else claimed
        except exception.ComputeResourcesUnavailable as exc:
            return (NO_DEVICES if str(exc).endswith(': Claim pci failed.')
                    else None)
        except ValueError as exc:
            return exc

    def settle(self, mapping):
        """Let nova-compute claim a place and account for it.

        :returns: the case before the next claim; None if there is no place
        """
        claimed = self.claim(mapping)
        if fault(self.case, claimed) is not None:
            return None
        host = hardware.numa_usage_from_instance_numa(self.topology, claimed)
        pools = self._take(
            nova_objects.pci_requests(self.case, mapping), claimed)
        return dataclasses.replace(
            self.case, pools=pools, host=tuple(map(
                nova_objects.with_usage, self.case.host, host.cells)))

    def _take(self, requests, claimed):
        """Take the devices after the claim, and count them.

        :returns: the pools that are left, or what is wrong
        """
        if not requests or self.pci_stats is None:
            return self.case.pools
        left = nova_objects.pci_stats(self.case, self.topology, devices=True)
        try:
            taken = left.consume_requests(requests, claimed.cells)
        except exception.PciDeviceRequestFailed:
            return CLAIM_FAILED
        if len(taken) < sum(request.count for request in requests):
            return FEWER_DEVICES
        return nova_objects.pools_left(self.case, left)

    def _fit(self, guest, requests):
        """Claim as the nova-compute of another release does.

        Or as none does: each tracks devices, but Nova's filter copes with a
        host that does not.
        """
        devices = self.pci_stats
        if not requests and not self.case.spares_devices:
            devices = None
        claimed = hardware.numa_fit_instance_to_host(
            self.topology, guest, provider_mapping=None, limits=self._limits,
            pci_requests=requests, pci_stats=devices)
        if (claimed or not guest) and requests and not (
                devices and devices.support_requests(requests, None)):
            return NO_DEVICES
        return claimed


def foretell(state, spec):
    """The host cells that the weigher predicts; None if there are none."""
    start = claim_input.read(spec, adapter.demand(spec))
    prediction = claim_input.predict(state, spec, start,
                                     config.read_packing())
    return prediction and prediction.placed.cells


def fault(case, claimed):
    """Return what is wrong with a claim.

    :returns: None for a claim that nova-compute can use
    """
    if claimed is None:
        return REFUSED
    if isinstance(claimed, str):
        return claimed
    if isinstance(claimed, ValueError):
        return RAISED
    host = {cell.id: cell for cell in case.host}
    for number, cell in enumerate(claimed.cells):
        if case.page_kib and cell.pagesize < 0:
            return NO_PAGE_SIZE
        settled = case if not case.page_kib else dataclasses.replace(
            case, page_kib=cell.pagesize)
        if not oracle.fits(settled, number, host[cell.id]):
            return OUT_OF_PLACE
        pins = set((cell.cpu_pinning or {}).values())
        if case.policy in ('dedicated', 'mixed') and not (
                len(pins) == case.guest[number].pcpus and
                pins <= host[cell.id].free):
            return FOREIGN_PINS
    try:
        hardware.numa_usage_from_instance_numa(accountable(case), claimed)
    except (exception.CPUPinningInvalid, exception.CPUPinningUnknown):
        return NOT_ACCOUNTED
    return None


def accountable(case):
    """The host with pages, which Nova needs to account usage."""
    return nova_objects.host_topology(dataclasses.replace(case, host=tuple(
        cell if cell.pages else dataclasses.replace(
            cell, pages=(cases.Pages(cases.PAGE_KIB, 1 << 20),))
        for cell in case.host)))

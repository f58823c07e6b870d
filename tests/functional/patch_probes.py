# SPDX-License-Identifier: Apache-2.0

"""What Nova does with and without the patches of contrib/nova.

Each function looks at one defect through Nova's own code and returns what it
sees. test_nova_patches runs this file with the name of a function on Nova as
it is installed, and on a patched copy.
"""

import json
import sys
import types
import uuid
from unittest import mock

import nova.conf
from lxml import etree
from nova import exception
from nova import objects
from nova.compute import claims
from nova.compute import manager
from nova.compute import resource_tracker
from nova.network import model as network_model
from nova.objects import fields
from nova.objects import pci_device_pool
from nova.pci import stats
from nova.pci import whitelist
from nova.scheduler import host_manager
from nova.scheduler.filters import numa_topology_filter
from nova.tests.fixtures import libvirt as fake_libvirt
from nova.virt import fake
from nova.virt import hardware
from nova.virt.libvirt import driver as libvirt_driver

objects.register_all()

DEDICATED = {'hw:cpu_policy': 'dedicated'}
IMAGE = objects.ImageMeta(properties=objects.ImageMetaProps())


def host(*pinned):
    """A host with a number of pinned CPUs in each cell of eight."""
    cells = []
    for number, count in enumerate(pinned):
        cpus = range(number * 8, number * 8 + 8)
        cells.append(objects.NUMACell(
            id=number, socket=number // 2, cpuset=set(), pcpuset=set(cpus),
            pinned_cpus=set(cpus[:count]), siblings=[{cpu} for cpu in cpus],
            cpu_usage=0, memory=8192, memory_usage=0,
            mempages=[objects.NUMAPagesTopology(
                size_kb=4, total=1 << 21, used=0, reserved=0)],
            network_metadata=objects.NetworkMetadata(
                physnets=set(), tunneled=False)))
    return objects.NUMATopology(cells=cells)


def flavor(vcpus, extra_specs=None):
    return objects.Flavor(
        name='hpc', vcpus=vcpus, memory_mb=1024, root_gb=0, ephemeral_gb=0,
        swap=0, extra_specs=extra_specs or {})


def devices(topology, cell=1):
    return stats.PciDeviceStats(
        topology, stats=pci_device_pool.from_pci_stats([pool(cell)]),
        dev_filter=whitelist.Whitelist([]))


def pool(cell):
    return {'vendor_id': '10de', 'product_id': '2330', 'numa_node': cell,
            'dev_type': 'type-PCI', 'count': 1}


def requests(policy=None):
    return objects.InstancePCIRequests(requests=[objects.InstancePCIRequest(
        count=1, alias_name='gpu', request_id='1', numa_policy=policy,
        spec=[{'vendor_id': '10de', 'product_id': '2330'}])])


def cell_ids():
    """A guest of two and five CPUs after a failed build.

    :returns: how many of its CPUs the claim of the next host pins; None if it
        refuses the guest, which does not fit there
    """
    instance = objects.Instance(numa_topology=hardware.numa_get_constraints(
        flavor(7, {**DEDICATED, 'hw:numa_nodes': '2',
                   'hw:numa_cpus.0': '0,1', 'hw:numa_mem.0': '512',
                   'hw:numa_cpus.1': '2,3,4,5,6', 'hw:numa_mem.1': '512'}),
        IMAGE))
    instance.clear_numa_topology()
    tracker = types.SimpleNamespace(
        pci_tracker=types.SimpleNamespace(stats=None))
    try:
        claim = claims.Claim(
            None, instance, 'node', tracker,
            objects.ComputeNode(numa_topology=host(4, 4)._to_json()),
            objects.InstancePCIRequests(requests=[]))
    except exception.ComputeResourcesUnavailable:
        return None
    return len(claim.claimed_numa_topology.cpu_pinning)


def move_policy():
    """The claim of a move to a host whose device is not near to free CPUs.

    :returns: for each policy of the flavor, whether the claim succeeds
    """
    nova.conf.CONF.set_override('alias', [json.dumps({
        'name': 'gpu', 'vendor_id': '10de', 'product_id': '2330',
        'device_type': 'type-PCI'})], 'pci')
    return {policy: _moves(policy)
            for policy in ('', *fields.PCINUMAAffinityPolicy.ALL)}


def _moves(policy):
    topology = host(0, 8)
    tracker = resource_tracker.ResourceTracker.__new__(
        resource_tracker.ResourceTracker)
    tracker.host = 'host'
    tracker.compute_nodes = {'node': objects.ComputeNode(
        id=1, hypervisor_hostname='node', numa_topology=topology._to_json())}
    # Once the claim has succeeded, the devices are taken.
    tracker.pci_tracker = types.SimpleNamespace(
        stats=devices(topology), claim_instance=_reached)
    tracker.driver = types.SimpleNamespace(get_host_ip_addr=lambda: None)
    more = {'hw:pci_numa_affinity_policy': policy} if policy else {}
    instance = objects.Instance(uuid='1', pci_requests=None)
    with mock.patch.object(objects.Migration, 'save', new=lambda _: None), \
            mock.patch.object(resource_tracker.ResourceTracker, 'disabled',
                              new=lambda *_: False):
        try:
            tracker._move_claim(
                None, instance, flavor(2, {
                    **DEDICATED, 'pci_passthrough:alias': 'gpu:1', **more}),
                'node', objects.Migration(migration_type='migration'), None,
                image_meta=IMAGE)
        except exception.ComputeResourcesUnavailable:
            return False
        except ReachedError:
            return True


class ReachedError(Exception):
    """The claim has succeeded."""


def _reached(*_):
    raise ReachedError


def pci_copies():
    """The check of PCI requests.

    :returns: how often it copies the NUMA topology of the host, and what it
        answers for each policy on each cell
    """
    found = devices(host(0, 0, 0, 0))
    before = [dict(each) for each in found.pools]
    copies = []
    with mock.patch.object(objects.NUMATopology, '__deepcopy__', create=True,
                           new=lambda self, _: copies.append(self) or self):
        answers = [[found.support_requests(
            requests(policy).requests, {},
            [objects.InstanceNUMACell(id=cell)]) for cell in range(4)]
            for policy in fields.PCINUMAAffinityPolicy.ALL]
    return {'copies': len(copies), 'answers': answers,
            'unchanged': before == found.pools}


def moves_in_placement():
    """The claim of an evacuation, with one device in each of two providers.

    :returns: the provider of the device that it takes, where Placement has
        allocated that of the second
    """
    nova.conf.CONF.set_override('alias', [json.dumps({
        'name': 'gpu', 'vendor_id': '10de', 'product_id': '2330',
        'device_type': 'type-PCI'})], 'pci')
    providers = [str(uuid.UUID(int=number)) for number in (1, 2)]
    found = _stats(*({**pool(0), 'rp_uuid': each} for each in providers))
    scheduled = requests().requests
    scheduled[0].request_id = str(uuid.UUID(int=1))
    spec = objects.RequestSpec(
        pci_requests=objects.InstancePCIRequests(requests=scheduled),
        requested_resources=[objects.RequestGroup(
            requester_id=f'{scheduled[0].request_id}-0',
            provider_uuids=providers[1:])])
    taken = []

    def claim(_context, wanted, _topology):
        before = {each['rp_uuid'] for each in found.pools}
        found.apply_requests(wanted.requests, None)
        taken.extend(before - {each['rp_uuid'] for each in found.pools})
        raise ReachedError
    tracker = resource_tracker.ResourceTracker.__new__(
        resource_tracker.ResourceTracker)
    tracker.host = 'host'
    tracker.compute_nodes = {'node': objects.ComputeNode(
        id=1, hypervisor_hostname='node', numa_topology=host(0)._to_json())}
    tracker.pci_tracker = types.SimpleNamespace(
        stats=found, claim_instance=claim)
    tracker.driver = types.SimpleNamespace(get_host_ip_addr=lambda: None)
    compute = manager.ComputeManager.__new__(manager.ComputeManager)
    compute.reportclient = None
    instance = objects.Instance(
        uuid='1', flavor=flavor(1, {'pci_passthrough:alias': 'gpu:1'}),
        pci_requests=objects.InstancePCIRequests(requests=[]))
    with mock.patch.object(objects.Migration, 'save', new=lambda _: None), \
            mock.patch.object(resource_tracker.ResourceTracker, 'disabled',
                              new=lambda *_: False):
        try:
            compute._do_rebuild_instance_with_claim(
                None, instance, None, IMAGE, [], None, {}, None, True, True,
                False, objects.Migration(migration_type='evacuation'), spec,
                {}, tracker.rebuild_claim, 'node', None, [], False, None)
        except ReachedError:
            return [providers.index(each) for each in taken]


def _stats(*pools):
    return stats.PciDeviceStats(
        host(0, 0), stats=pci_device_pool.from_pci_stats(list(pools)),
        dev_filter=whitelist.Whitelist([]))


def fewer_devices():
    """A request for two devices, of which one is near and one is far.

    Each is in a provider with three devices.

    :returns: for each policy, how many devices the claim takes; None if it
        refuses the request
    """
    return {policy: _taken_devices(policy)
            for policy in fields.PCINUMAAffinityPolicy.ALL}


def _taken_devices(policy):
    found = _stats(*({**pool(cell), 'count': 3, 'rp_uuid': provider}
                     for cell, provider in enumerate('AB')))
    for each in found.pools:
        each['devices'] = [objects.PciDevice(dev_type='type-PCI')
                           for _ in range(3)]
    wanted = requests(policy).requests
    wanted[0].count = 2
    wanted[0].spec[0]['rp_uuids'] = 'A,B'
    cells = [objects.InstanceNUMACell(id=0)]
    if not found.support_requests(wanted, None, cells):
        return None
    return len(found.consume_requests(wanted, cells))


def dependents():
    """A PF and a VF, where one card is left.

    :returns: for both orders of the requests, whether the check accepts them,
        and how many devices are free after the claim has failed
    """
    answers = []
    for kinds in (('type-PF', 'type-VF'), ('type-VF', 'type-PF')):
        nova.conf.CONF.set_override(
            'device_spec', [json.dumps({'vendor_id': '15b3'})], 'pci')
        found = stats.PciDeviceStats(host(0))
        card, *functions = (objects.PciDevice(
            compute_node_id=1, vendor_id='15b3', product_id='1019',
            dev_type='type-VF' if number else 'type-PF', numa_node=0,
            parent_addr='0000:81:00.0' if number else None, extra_info={},
            address=f'0000:81:00.{number}') for number in range(3))
        card.child_devices = functions
        for each in functions:
            each.parent_device = card
        for each in (card, *functions):
            found.add_device(each)
        wanted = [objects.InstancePCIRequest(
            count=1, alias_name=kind, request_id=kind, numa_policy=None,
            spec=[{'vendor_id': '15b3', 'dev_type': kind}])
            for kind in kinds]
        supported = found.support_requests(wanted, {})
        try:
            found.consume_requests(wanted)
        except exception.PciDeviceRequestFailed:
            answers.append((supported, sum(
                len(each['devices']) for each in found.pools)))
    return answers


def topologies_read():
    """A request at ten hosts, and one that needs NUMA and socket affinity.

    :returns: how many topologies are deserialized before and after the
        filter, and the hosts that pass
    """
    read = []
    from_json = objects.NUMATopology.obj_from_db_obj
    with mock.patch.object(
            objects.NUMATopology, 'obj_from_db_obj', new=staticmethod(
                lambda text: read.append(text) or from_json(text))):
        return {kind: _filtered(read, request) for kind, request in (
            ('shared', _request(flavor(2))),
            ('dedicated', _request(
                flavor(2, DEDICATED),
                requests(fields.PCINUMAAffinityPolicy.SOCKET))))}


def _filtered(read, request):
    states = [_host_state(number) for number in range(10)]
    before = len(read)
    passed = list(numa_topology_filter.NUMATopologyFilter().filter_all(
        states, request))
    after = len(read)
    del read[:]
    return {'before': before, 'after': after,
            'passed': [state.host for state in passed]}


def topologies_kept():
    """Requests at ten hosts, one after the other.

    :returns: how many topologies are deserialized for the first request, for
        the second, after the usage of one host has changed, and after a guest
        has been placed on a host; and the hosts that pass
    """
    with mock.patch.multiple(
            host_manager.HostManager, _init_aggregates=lambda _: None,
            _init_instance_info=lambda _: None), \
            mock.patch.object(objects.CellMappingList, 'get_all',
                              new=lambda _: []):
        manager = host_manager.HostManager()
    manager._instance_info = {f'host{number}': {
        'instances': {}, 'updated': True} for number in range(10)}
    nodes = [_compute_node(number) for number in range(10)]
    counts = []
    _, passed = _ask(manager, nodes, counts)
    _ask(manager, nodes, counts)
    nodes[3].numa_topology = host(0, 0, 8, 8)._to_json()
    states, _ = _ask(manager, nodes, counts)
    states[0].consume_from_request(_dedicated())
    _, again = _ask(manager, nodes, counts)
    return {'counts': counts, 'passed': [passed, again]}


def _ask(manager, nodes, counts):
    read = []
    from_json = objects.NUMATopology.obj_from_db_obj
    with mock.patch.object(
            objects.NUMATopology, 'obj_from_db_obj', new=staticmethod(
                lambda text: read.append(text) or from_json(text))):
        states = sorted(manager._get_host_states(
            None, {'cell': nodes}, {node.host: {'version': 1}
                                    for node in nodes}),
            key=lambda state: state.host)
        for state in states:
            state.service = {}
            state.allocation_candidates = [{'mappings': {}}]
        passed = [state.host for state in
                  numa_topology_filter.NUMATopologyFilter().filter_all(
                      states, _dedicated())]
    counts.append(len(read))
    return states, passed


def _dedicated():
    return _request(flavor(8, DEDICATED))


def _host_state(number):
    """One of which cell 0 is free and a device is on one of four cells."""
    state = host_manager.HostState(f'host{number}', 'node', '1')
    state.update(compute=_compute_node(number))
    state.allocation_candidates = [{'mappings': {}}]
    return state


def _compute_node(number):
    return objects.ComputeNode(
        host=f'host{number}', uuid=str(uuid.UUID(int=number)), memory_mb=0,
        free_disk_gb=0, local_gb=0, local_gb_used=0, free_ram_mb=0, vcpus=0,
        vcpus_used=0, disk_available_least=None,
        updated_at=None, host_ip=None, hypervisor_type='', cpu_info='',
        hypervisor_hostname='', supported_hv_specs=[], hypervisor_version=1,
        stats={}, metrics=None, cpu_allocation_ratio=1.0,
        ram_allocation_ratio=1.0, disk_allocation_ratio=1.0,
        pci_device_pools=pci_device_pool.from_pci_stats([pool(number % 4)]),
        numa_topology=host(0, 8, 8, 8)._to_json())


def _request(of, pci_requests=None):
    return objects.RequestSpec(
        instance_uuid=str(uuid.UUID(int=1)), flavor=of, image=IMAGE,
        numa_topology=hardware.numa_get_constraints(of, IMAGE),
        pci_requests=pci_requests)


def device_cells():
    """The guest of an instance that wants to see the cells of its devices.

    Its cells are on host cells 3 and 1. Two of its six devices have no cell or
    one that the instance does not use; the last is that of a port.

    :returns: the cells, the controllers and the passed-through devices of the
        XML that the libvirt driver makes
    """
    nova.conf.neutron.register_dynamic_opts(nova.conf.CONF)
    nova.conf.CONF.set_override('num_pcie_ports', 4, 'libvirt')
    wanted = flavor(4, {'hw:pci_numa_topology': 'true'})
    wanted.update({'flavorid': 'hpc', 'description': None})
    devices_of = {bus: objects.PciDevice(
        address=f'0000:{bus}:00.0', numa_node=cell, extra_info={},
        request_id='port' if bus == '86' else 'gpu') for bus, cell in (
            ('81', 1), ('82', 3), ('83', 3), ('84', None), ('85', 0),
            ('86', 1))}
    instance = objects.Instance(
        id=1, uuid=str(uuid.UUID(int=1)), display_name='hpc', project_id='p',
        user_id='u', system_metadata={}, image_ref='', kernel_id='',
        os_type=None, vm_mode=None, resources=None, vcpu_model=None,
        flavor=wanted, pci_requests=objects.InstancePCIRequests(requests=[
            objects.InstancePCIRequest(request_id='gpu', alias_name='gpu'),
            objects.InstancePCIRequest(request_id='port', requester_id='1')]),
        pci_devices=objects.PciDeviceList(objects=list(devices_of.values())),
        numa_topology=objects.InstanceNUMATopology(cells=[
            objects.InstanceNUMACell(id=3, cpuset={0, 1}, memory=512),
            objects.InstanceNUMACell(id=1, cpuset={2, 3}, memory=512)]))
    for cell in instance.numa_topology.cells:
        cell.pcpuset = set()
    port = network_model.VIF(
        id='1', address='52:54:00:00:00:01', type='hw_veb',
        vnic_type='direct', profile={'pci_slot': '0000:86:00.0'},
        details={'vlan': '1'}, network=network_model.Network())
    image = objects.ImageMeta(properties=objects.ImageMetaProps(
        hw_machine_type='q35'))
    with fake_libvirt.LibvirtFixture():
        driver = libvirt_driver.LibvirtDriver(fake.FakeVirtAPI(), True)
        driver._host.get_capabilities().host.topology = (
            fake_libvirt.NUMATopology())
        guest = etree.fromstring(driver._get_guest_config(
            instance, [port], image, {'mapping': {}}).to_xml())
    for each in (*guest, *guest.find('cpu'), *guest.find('devices')):
        if each.tag not in ('cpu', 'numa', 'numatune', 'devices',
                            'controller', 'interface', 'hostdev'):
            each.getparent().remove(each)
    etree.indent(guest)
    return etree.tostring(guest, encoding='unicode') + '\n'


if __name__ == '__main__':
    nova.conf.CONF([], project='nova', default_config_files=[])

    print(json.dumps({'nova': nova.__file__, 'seen': {
        name: globals()[name]() for name in sys.argv[1:]}}))

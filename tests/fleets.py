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

"""Random fleets in use, as the documents that describe them."""

import dataclasses

from hpcvirt import exception
from hpcvirt.fit import pins
from hpcvirt.fit import reasons
from hpcvirt.flavors import catalogue
from hpcvirt.flavors import json_document
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from hpcvirt.fleet import admission
from hpcvirt.fleet import assemble
from hpcvirt.fleet import guest as guests
from hpcvirt.fleet import host_settings
from hpcvirt.fleet import moving
from hpcvirt.fleet import occupancy
from hpcvirt.fleet import state
from tests import hosts

SMALL = profiles.Profile(
    smallest_cores=1, memory_step_mib=64, shared_cores_per_cell=0,
    emulator_threads=None, package_scope=False)


def plan_of(machines, profile=SMALL):
    """Plan a fleet; returns its document and the flavors."""
    plan = planner.plan(machines, profile)
    return (json_document.document(plan),
            [row.flavor for row in plan.flavors])


def machines(dice, number):
    """Create hosts that take only a few instances."""
    cells, cores = dice.choice((1, 2, 2, 3, 4)), dice.choice((2, 4))
    threads = dice.choice((1, 1, 2))
    return [hosts.build(cells=cells, cores=cores, threads=threads, mib=4096,
                        name=f'h{index}') for index in range(number)]


def a_fleet(dice, number, load=0.8, movable=1.0):
    """Create a fleet that has seen instances come and go.

    :returns: the fleet and its flavors; None if nothing can be planned
    """
    found = machines(dice, number)
    try:
        document, flavors = plan_of(found)
    except exception.InvalidInput:
        return None
    settings = host_settings.read(document, 'plan')
    topologies = {host.name: host for host in found}
    instances = []
    for index in range(dice.randrange(6 * number)):
        fleet = assemble.fleet(topologies, settings, instances)
        flavor = dice.choice(flavors)
        guest = guests.of_flavor(flavor)
        host = dice.choice(fleet.hosts)
        placed = admission.admit(guest, host.state, host.packing)
        if not isinstance(placed, reasons.Misfit):
            instances.append(an_instance(
                f'i{index}', flavor, host, placed,
                None if dice.random() < movable else 'stays'))
        elif dice.random() > load and instances:
            instances.remove(dice.choice(instances))
    return assemble.fleet(topologies, settings, instances), flavors


def constrained(dice, fleet, cold=False):
    """Restrict where instances may move, by hosts and server groups.

    :param cold: let some instances be migrated only cold
    """
    names = [host.name for host in fleet.hosts]
    ids = [item.id for host in fleet.hosts for item in host.instances]
    dice.shuffle(ids)
    groups = {}
    while len(ids) > 1 and dice.random() < 0.8:
        members = [ids.pop() for _ in range(min(len(ids), dice.choice(
            (1, 2, 2, 3, 4))))]
        group = state.ServerGroup(dice.choice(list(state.Policy)),
                                  frozenset(members), dice.choice((1, 1, 2)))
        groups.update(dict.fromkeys(members, group))
    return dataclasses.replace(fleet, hosts=tuple(dataclasses.replace(
        host, instances=tuple(dataclasses.replace(
            item, group=groups.get(item.id),
            only_cold='cold' if cold and dice.random() < 0.5 else None,
            hosts=None if dice.random() < 0.6 else frozenset(
                dice.sample(names, dice.randint(1, len(names)))))
            for item in host.instances)) for host in fleet.hosts))


def an_instance(name, flavor, host, placed, stays=None):
    """Write down an instance where the claim places it."""
    guest = guests.of_flavor(flavor)
    cells = {cell.id: cell for cell in host.state.supply.cells}
    cpus = frozenset().union(*(
        pins.choose(demand, cells[number]).taken for number, demand
        in zip(placed.cells, guest.demand.cells, strict=True)))
    return state.Instance(
        name, name, host.name, flavor, guest, placed.cells, cpus,
        placed.pages_kib[0] if placed.pages_kib else None, stays=stays)


def with_devices():
    """Create hosts of one cell with one VF each; the first has an instance.

    :returns: the fleet, and a guest that needs the CPUs of the instance
    """
    found = [hosts.build(cells=1, cores=cores, mib=8192, vfs={0: 1},
                         name=f'h{index}')
             for index, cores in enumerate((4, 2))]
    document, _ = plan_of(found, dataclasses.replace(
        SMALL, devices=profiles.Devices(vendor_id='15b3',
                                        product_id='101e')))
    alias = document['host_config']['h0']['pci_alias'][0]['name']
    flavor = catalogue.Flavor('vf', 2, 256, 0, {
        'hw:cpu_policy': 'dedicated', 'hw:mem_page_size': '2048',
        'pci_passthrough:alias': f'{alias}:1'})
    resident = state.Instance(
        'a', 'a', 'h0', flavor, guests.of_flavor(flavor), (0,),
        frozenset((0, 1)), 2048, ('0000:41:00.1',))
    fleet = assemble.fleet(
        {host.name: host for host in found},
        host_settings.read(document, 'plan'), [resident])
    return fleet, guests.of_flavor(dataclasses.replace(flavor, vcpus=4))


def rebuilt(host, instances):
    """Build a host anew, with other instances."""
    empty = host
    for instance in host.instances:
        empty = moving.leave(instance, empty)
    return state.FleetHost(
        host.name, *occupancy.occupy(empty.state, instances, ()),
        host.packing)

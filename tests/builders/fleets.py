# SPDX-License-Identifier: Apache-2.0

"""Random fleets in use, as the documents that describe them."""

import dataclasses

from hpcvirt import exception
from hpcvirt.fit import admission
from hpcvirt.fit import allocation
from hpcvirt.fit import demand as demands
from hpcvirt.fit import reasons
from hpcvirt.flavors import compiled_flavor
from hpcvirt.flavors import plan_document
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from hpcvirt.fleet import assemble
from hpcvirt.fleet import document as documents
from hpcvirt.fleet import moving
from hpcvirt.fleet import occupancy
from hpcvirt.fleet import state
from hpcvirt.model import flavor as flavor_model
from tests.builders import hosts

SMALL = profiles.Profile(
    smallest_cores=1, memory_step_mib=64, shared_cores_per_cell=0,
    emulator_threads=None, socket_scope=False)


def plan_of(machines, profile=SMALL):
    """Plan a fleet; returns its document and the flavors."""
    plan = planner.plan(machines, profile)
    return (plan_document.dump(plan), [row.flavor for row in plan.flavors])


def fleet_of(machines, document, instances=()):
    """Build the fleet of a plan."""
    return assemble.fleet(
        machines, plan_document.load(document, 'plan').host_config, instances)


def read_instances(records):
    """Read instances as a fleet document has them."""
    return documents.read({'schema_version': 1, 'classes': {},
                           'instances': list(records)}, 'fleet').instances


def flavor(vcpus, ram_mib, specs=None, page_size='2048', name='x'):
    """Make a flavor with dedicated CPUs and pages of a size.

    :param specs: more extra specs
    """
    return flavor_model.Flavor(name, vcpus, ram_mib, 0, {
        'hw:cpu_policy': 'dedicated', 'hw:mem_page_size': page_size,
        **(specs or {})})


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
    settings = plan_document.load(document, 'plan').host_config
    instances = []
    for index in range(dice.randrange(6 * number)):
        fleet = assemble.fleet(found, settings, instances)
        flavor = dice.choice(flavors)
        guest = compiled_flavor.make(flavor)
        host = dice.choice(fleet.hosts)
        placed = admission.predict(guest, host.state)
        if not isinstance(placed, reasons.Misfit):
            instances.append(an_instance(
                f'i{index}', flavor, host, placed,
                None if dice.random() < movable else 'stays'))
        elif dice.random() > load and instances:
            instances.remove(dice.choice(instances))
    return assemble.fleet(found, settings, instances), flavors


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


def hold(cells, cpus, page_kib=2048):
    """Write down what an instance has of its host."""
    return allocation.Holding(
        demands.CellAssignment(cells, (page_kib,) * len(cells)),
        frozenset(cpus))


def an_instance(name, flavor, host, placed, stays=None, guest=None):
    """Write down an instance where the claim places it."""
    guest = guest or compiled_flavor.make(flavor)
    cells = {cell.id: cell for cell in host.state.supply.cells}
    cpus = frozenset().union(*(
        allocation.choose_pins(demand, cells[number]).taken for number, demand
        in zip(placed.cells, guest.demand.cells, strict=True)))
    return state.Instance(
        name, name, host.name, guest,
        allocation.Holding(placed, cpus), stays=stays)


def with_devices():
    """Create hosts of one cell with one VF each; the first has an instance.

    :returns: the fleet, and a guest that needs the CPUs of the instance
    """
    found = [hosts.build(cells=1, cores=cores, mib=8192, vfs={0: 1},
                         name=f'h{index}')
             for index, cores in enumerate((4, 2))]
    document, _ = plan_of(found, dataclasses.replace(
        SMALL, devices=(hosts.VFS,)))
    alias = document['host_config']['h0']['pci_alias'][0]['name']
    own = flavor(2, 256, {'pci_passthrough:alias': f'{alias}:1'}, name='vf')
    resident = state.Instance(
        'a', 'a', 'h0', compiled_flavor.make(own),
        hold((0,), (0, 1)), ('0000:41:00.1',))
    fleet = fleet_of(found, document, [resident])
    return fleet, compiled_flavor.make(dataclasses.replace(own, vcpus=4))


def changed(host, cells=None, **left):
    """Change what a host has left, of some cells and in total."""
    if cells is not None:
        left['supply'] = dataclasses.replace(host.state.supply,
                                             cells=tuple(cells))
    return dataclasses.replace(
        host, state=dataclasses.replace(host.state, **left))


def rebuilt(host, instances):
    """Build a host anew, with other instances."""
    empty = host
    for instance in host.instances:
        empty = moving.leave(instance, empty)
    return state.FleetHost(
        host.name, *occupancy.charge(empty.state, instances, ()))

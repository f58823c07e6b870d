# SPDX-License-Identifier: Apache-2.0

"""Translate instances of Nova into instances of a fleet."""

import typing
from collections.abc import Mapping

import nova.conf
from nova import objects
from nova.compute import vm_states

from hpcvirt import exception
from hpcvirt.fit import allocation
from hpcvirt.fit import demand as demands
from hpcvirt.fit import guest as guests
from hpcvirt.flavors import compiled_flavor
from hpcvirt.fleet import state
from hpcvirt.nova import config
from hpcvirt.nova_live import cloud_flavors

#: Metadata by which the owner of an instance forbids its moves.
OPT_OUT, NEVER = 'hpcvirt_move', 'never'


class Residents:
    """Translates instances, and remembers their flavors and images.

    :param groups: instance -> its server group
    """

    def __init__(self, groups: Mapping[str, state.ServerGroup]) -> None:
        self._groups = groups
        self._follows = config.register().hpcvirt.moves_follow_placement
        self._known: dict[object, guests.Guest] = {}

    def translate(self, instance: typing.Any, host: str,
                  hosts: frozenset[str]) -> state.Instance:
        """Translate an instance.

        :param host: the name of its host
        :param hosts: the hosts to which it may move
        :raises InvalidInput: if its record contradicts itself
        """
        where = f'instance {instance.uuid}'
        guest = self._guest(instance)
        topology = instance.numa_topology
        cells = topology.cells if topology else ()
        if len(cells) != len(guest.demand.cells):
            raise exception.InvalidInput(
                where, f'has {len(cells)} guest cells, but its flavor '
                f'{guest.name} has {len(guest.demand.cells)}')
        cpus: set[int] = set()
        for cell in cells:
            cpus.update((cell.cpu_pinning or {}).values(),
                        cell.cpuset_reserved or ())
        return state.Instance(
            instance.uuid, where, host, guest,
            allocation.Holding(demands.CellAssignment(
                tuple(cell.id for cell in cells),
                tuple(cell.pagesize or None for cell in cells)),
                frozenset(cpus)),
            tuple(device.address for device in instance.pci_devices or ()),
            _stays(instance), hosts, self._groups.get(instance.uuid),
            _only_cold(instance), instance.project_id, self._follows)

    def _guest(self, instance: typing.Any) -> guests.Guest:
        image = cloud_flavors.image_properties(instance.system_metadata)
        flavor = instance.flavor
        key = (flavor.name, flavor.vcpus, flavor.memory_mb, flavor.root_gb,
               flavor.ephemeral_gb, flavor.swap, bool(instance.image_ref),
               tuple(sorted(flavor.extra_specs.items())),
               tuple(sorted(image.items())))
        if key not in self._known:
            own = cloud_flavors.translate(flavor, image,
                                          from_volume=not instance.image_ref)
            self._known[key] = compiled_flavor.make(own)
        return self._known[key]


def groups(context: typing.Any) -> dict[str, state.ServerGroup]:
    """Return the server groups, by the UUIDs of their instances."""
    found: dict[str, state.ServerGroup] = {}
    for group in objects.InstanceGroupList.get_all(context):
        rules = group.rules or {}
        own = state.ServerGroup(
            state.Policy(group.policy), frozenset(group.members),
            int(rules.get('max_server_per_host', 1)))
        found |= dict.fromkeys(group.members, own)
    return found


def _stays(instance: typing.Any) -> str | None:
    if instance.locked:
        return 'is locked'
    if instance.metadata.get(OPT_OUT) == NEVER:
        return f'has the metadata {OPT_OUT}={NEVER}'
    if instance.task_state is not None:
        return f'has the task {instance.task_state}'
    if instance.vm_state not in (vm_states.ACTIVE, vm_states.PAUSED,
                                 vm_states.STOPPED):
        return f'is {instance.vm_state}'
    if instance.vm_state == vm_states.PAUSED and instance.pci_devices:
        return 'is paused and has PCI devices'
    return None


def _only_cold(instance: typing.Any) -> str | None:
    if instance.vm_state == vm_states.STOPPED:
        return 'is stopped'
    flavor = instance.flavor
    local = flavor.ephemeral_gb or flavor.swap or (
        flavor.root_gb and instance.image_ref)
    if local and nova.conf.CONF.libvirt.images_type != 'rbd':
        return 'has a local disk'
    return None

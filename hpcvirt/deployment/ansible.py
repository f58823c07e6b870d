# SPDX-License-Identifier: Apache-2.0

"""Write inventories, and variables for the role ``hpcvirt.hpc.host``."""

import dataclasses
import re
from collections.abc import Callable
from collections.abc import Hashable
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

from hpcvirt import exception
from hpcvirt.deployment import host_files
from hpcvirt.deployment import site_settings
from hpcvirt.deployment import tree
from hpcvirt.flavors import kernel_settings
from hpcvirt.flavors import planned as plans

GROUP = 'hpcvirt_hosts'

#: A name that is safe as a folder, in YAML and in an inventory.
_NAME = re.compile('[A-Za-z0-9][A-Za-z0-9._-]{0,252}')


@dataclasses.dataclass(frozen=True, slots=True)
class HostGroup:
    """Hosts that need the same configuration.

    :ivar name: a name that Ansible takes for a group, after the class of the
        fleet document, or after the first host
    """

    name: str
    hosts: tuple[plans.PlannedHost, ...]

    @property
    def first(self) -> plans.PlannedHost:
        """Return the host that stands for all."""
        return self.hosts[0]

    @property
    def words(self) -> str:
        """Name the hosts."""
        return ', '.join(host.name for host in self.hosts)


def group_hosts(plan: plans.Plan,
                need: Callable[[plans.PlannedHost, plans.Plan], Hashable],
                ) -> tuple[HostGroup, ...]:
    """Group hosts by what they need, in the order of the first ones."""
    found: dict[Hashable, list[plans.PlannedHost]] = {}
    for host in plan.hosts:
        found.setdefault(need(host, plan), []).append(host)
    taken: dict[str, tuple[plans.PlannedHost, ...]] = {}
    for members in found.values():
        first = members[0]
        of_class = {host.fleet_class for host in members} == {
            first.fleet_class}
        subject = first.fleet_class if of_class else ''
        base = 'hpcvirt_' + re.sub('[^a-z0-9]', '_',
                                   (subject or first.name).lower())
        name, number = base, 1
        while name in taken or name == GROUP:
            number += 1
            name = f'{base}_{number}'
        taken[name] = tuple(members)
    return tuple(HostGroup(name, members) for name, members in taken.items())


def files(plan: plans.Plan) -> tuple[tree.File, ...]:
    """Write the inventory, the variables and a playbook."""
    found = group_hosts(plan, host_files.files)
    return (
        inventory('inventory/hpcvirt.yml', found),
        *(tree.make_yaml_file(
            f'inventory/group_vars/{group.name}.yml',
            f'The configuration of {group.words}.',
            variables(group.first, host_files.files(group.first, plan)))
          for group in found),
        playbook('hpcvirt.yml'))


def inventory(path: str, groups: Iterable[HostGroup]) -> tree.File:
    """Write which hosts are alike."""
    return tree.make_yaml_file(
        path, 'Hosts that are alike share a group. Give it to Ansible besides '
        'the inventory that says how to reach the hosts.',
        {GROUP: {'children': {
            group.name: {'hosts': {host.name: {} for host in group.hosts}}
            for group in groups}}})


def class_inventory(classes: Mapping[str, Iterable[str]]) -> str:
    """Write the hosts of a fleet, each with its class.

    The user chooses the file, so that it has no mark, by which ``host config
    --remove`` would take it back.

    :raises InvalidInput: if a name cannot be in an inventory
    """
    hosts: dict[str, dict[str, str]] = {}
    for name, members in classes.items():
        hosts |= {host: {'hpcvirt_fleet_class': name} for host in members}
    for name in (*classes, *hosts):
        check_name(name)
    about = tree.comment(
        'The hosts of a fleet document, by "hpcvirt fleet show". Give it to '
        'the playbooks of the collection hpcvirt.hpc besides the inventory '
        'that says how to reach the hosts.')
    return '\n'.join((*about, tree.dump_yaml({GROUP: {'hosts': hosts}})))


def check_name(name: str) -> None:
    """Check that a host or a class can be in an inventory.

    :raises InvalidInput: if it cannot
    """
    if not _NAME.fullmatch(name):
        raise exception.InvalidInput(
            name, 'cannot be the name of a folder or of a host in an '
            'inventory; give it another name, as NAME=PATH does for a host')


def variables(planned: plans.PlannedHost,
              files_: Iterable[tree.File]) -> dict[str, Any]:
    """Write the variables of the role for a host."""
    wanted = {file.path: file for file in files_}
    state = kernel_settings.make_state(planned)
    return {
        'hpcvirt_host_kernel_parameters': host_files.command_line(state),
        'hpcvirt_host_parameter_pattern': site_settings.parameter_pattern(
            state),
        'hpcvirt_host_site_files': [
            {'folder': f'/{item.path}'.rpartition('/')[0],
             'names': item.path.rpartition('/')[2], 'after': item.after,
             'pattern': item.pattern, 'why': item.why,
             'notify': list(item.activate), 'replacement': item.replacement}
            for item in site_settings.list_site_files(state)],
        'hpcvirt_host_files': [
            {'path': f'/{path}', 'notify': list(file.activate),
             'content': file.text} for path, file in wanted.items()],
        'hpcvirt_host_absent': [
            f'/{path}' for path in host_files.OPTIONAL if path not in wanted],
    }


def playbook(path: str) -> tree.File:
    """Write the playbook that applies the role."""
    return tree.make_yaml_file(
        path,
        'Apply the role of the collection hpcvirt.hpc, which is in the folder '
        'ansible of the source of hpcvirt.',
        [{'name': 'Configure compute hosts for the flavors of hpcvirt',
          'hosts': GROUP, 'become': True, 'gather_facts': True,
          'serial': "{{ hpcvirt_host_serial | default('100%') }}",
          'roles': [{'role': 'hpcvirt.hpc.host'}]}])

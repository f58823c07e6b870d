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

"""Write an inventory and variables for the Ansible role ``hpcvirt_host``."""

from collections.abc import Iterable
from typing import Any

from hpcvirt.deployment import alike
from hpcvirt.deployment import host_files
from hpcvirt.deployment import kernel
from hpcvirt.deployment import provider
from hpcvirt.deployment import tree
from hpcvirt.deployment import yaml_text
from hpcvirt.flavors import host_state
from hpcvirt.flavors import planned as plans

GROUP = 'hpcvirt_hosts'


def files(plan: plans.Plan) -> tuple[tree.File, ...]:
    """Write the inventory, the variables and a playbook."""
    found = alike.groups(plan.hosts,
                         lambda host: host_files.files(host, plan))
    return (
        inventory('inventory/hpcvirt.yml', found),
        *(tree.File(
            f'inventory/group_vars/{group.name}.yml', yaml_text.file(
                f'The configuration of {group.words}.',
                variables(group.first, host_files.files(group.first, plan),
                          plan)))
          for group in found),
        playbook('hpcvirt.yml'))


def inventory(path: str, groups: Iterable[alike.Group]) -> tree.File:
    """Write which hosts are alike."""
    return tree.File(path, yaml_text.file(
        'Hosts that are alike share a group. Give it to Ansible besides the '
        'inventory that says how to reach the hosts.',
        {GROUP: {'children': {
            group.name: {'hosts': {host.name: {} for host in group.hosts}}
            for group in groups}}}))


def variables(planned: plans.PlannedHost, files_: Iterable[tree.File],
              plan: plans.Plan) -> dict[str, Any]:
    """Write the variables of the role for a host."""
    wanted = tuple(files_)
    paths = {file.path for file in wanted}
    state = host_state.of(planned, plan.profile)
    return {
        'hpcvirt_host_kernel_parameters': kernel.command_line(state),
        'hpcvirt_host_files': [
            {'path': f'/{file.path}', 'notify': list(file.activate),
             'content': file.text} for file in wanted],
        'hpcvirt_host_absent': [
            f'/{path}' for path in host_files.OPTIONAL
            if path not in paths],
    }


def playbook(path: str) -> tree.File:
    """Write the playbook that applies the role."""
    return tree.File(path, yaml_text.file(
        'Apply the role of hpcvirt, which is in ansible/roles of its source.',
        [{'name': 'Configure compute hosts for the flavors of hpcvirt',
          'hosts': GROUP, 'become': True, 'gather_facts': True,
          'roles': [{'role': 'hpcvirt_host'}]}]))


def system_groups(plan: plans.Plan) -> tuple[alike.Group, ...]:
    """Group hosts of which the operating system and traits are the same."""
    return alike.groups(plan.hosts, lambda host: (
        tuple(host_files.system(host, plan.profile)),
        str(provider.document(host, plan))))

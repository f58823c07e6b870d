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

"""Write what EDPM node sets of Red Hat OpenStack Services on OpenShift need.

``edpm_kernel_hugepages`` has one number of pages for the whole host, which the
kernel divides evenly among all cells with memory. It is used where that is
what the plan says. Otherwise the pages of each cell are on the kernel command
line, which the kernel of the hosts must understand (Linux 5.16).
"""

from collections.abc import Iterator
from typing import Any

from hpcvirt.deployment import alike
from hpcvirt.deployment import host_files
from hpcvirt.deployment import kernel
from hpcvirt.deployment import nova_conf
from hpcvirt.deployment import provider
from hpcvirt.deployment import tree
from hpcvirt.deployment import yaml_text
from hpcvirt.flavors import host_state
from hpcvirt.flavors import planned as plans
from hpcvirt.model import cpuset


def files(plan: plans.Plan) -> tuple[tree.File, ...]:
    """Write a file for each group of hosts that are alike."""
    found = alike.groups(plan.hosts,
                         lambda host: host_files.files(host, plan))
    return tuple(_file(group, plan) for group in found)


def _file(group: alike.Group, plan: plans.Plan) -> tree.File:
    state = host_state.of(group.first, plan.profile)
    about = (
        f'For the node set of {group.words}: the variables belong in '
        'spec.nodeTemplate.ansible.ansibleVars, and the ConfigMap in the '
        'dataSources of its service for Nova. '
        + _about_pages(state) + ' ' + _about_rest(group.first, plan))
    return tree.File(
        f'{group.name}.yaml', yaml_text.file(
            about, _node_set(group, state), _config_map(group, plan)))


def _node_set(group: alike.Group,
              state: host_state.HostState) -> dict[str, Any]:
    return {
        'apiVersion': 'dataplane.openstack.org/v1beta1',
        'kind': 'OpenStackDataPlaneNodeSet',
        'metadata': {'name': _dashed(group.name)},
        'spec': {'nodeTemplate': {'ansible': {
            'ansibleVars': variables(state)}}}}


def variables(state: host_state.HostState) -> dict[str, Any]:
    """Write the variables of the roles edpm_kernel and edpm_tuned."""
    # The profile cpu-partitioning adds its parameters itself.
    elsewhere = {'Tuned-Partitioning'}
    if _even(state):
        elsewhere.add(kernel.PAGES_SOURCE)
    found: dict[str, Any] = {
        'edpm_kernel_args': kernel.command_line(state, elsewhere)}
    if _even(state):
        cells = list(state.pages.values())
        found['edpm_kernel_hugepages'] = {
            str(size): {'count': cells[0][size] * len(cells),
                        'default': size == state.default_page_kib}
            for size in cells[0] if cells[0][size]}
    found['edpm_kernel_enable_ksm'] = False
    found['edpm_kernel_sysctl_extra_settings'] = {
        item.name: {'value': int(item.value)} for item in state.sysctls}
    if state.housekeeping:
        found['edpm_tuned_profile'] = 'cpu-partitioning'
        found['edpm_tuned_isolated_cores'] = cpuset.render(state.isolated)
    else:
        found['edpm_tuned_profile'] = 'virtual-host'
    return found


def _even(state: host_state.HostState) -> bool:
    """Tell whether one number of pages for the host says the same."""
    cells = list(state.pages.values())
    return state.default_page_kib is not None and all(
        cell == cells[0] for cell in cells)


def _about_pages(state: host_state.HostState) -> str:
    if state.default_page_kib is None:
        return 'Guests have normal pages.'
    if _even(state):
        return ('edpm_kernel_hugepages has the pages of all cells together, '
                'which the kernel divides evenly, as the plan does.')
    return ('Cells have different numbers of pages, which '
            'edpm_kernel_hugepages cannot say: do not set it beside '
            'edpm_kernel_args. The kernel must be 5.16 or newer, or know '
            'hugepages=CELL:NUMBER; an older one reserves none.')


def _about_rest(planned: plans.PlannedHost, plan: plans.Plan) -> str:
    words = ('Roles of EDPM have no variable for the options of modules '
             '(nested paging is on by default).')
    if planned.settings.devices and any(
            True for _ in host_files.vf_rules(planned, plan.profile)):
        counts = ', '.join(f'{item.device.address} {item.count}'
                           for item in planned.settings.devices)
        words += (' Virtual functions belong in edpm_network_config_template '
                  f'as numvfs of type sriov_pf: {counts}.')
    return words


def _config_map(group: alike.Group, plan: plans.Plan) -> dict[str, Any]:
    # The role copies *nova*.conf and provider*.yaml.
    data = {'90-nova-hpcvirt.conf': '\n'.join(_nova(group.first, plan)) + '\n'}
    document = provider.document(group.first, plan)
    if document is not None:
        data['provider-hpcvirt.yaml'] = yaml_text.file(
            'Traits that the planned flavors require.', document)
    return {'apiVersion': 'v1', 'kind': 'ConfigMap',
            'metadata': {'name': f'nova-{_dashed(group.name)}'},
            'data': data}


def _nova(planned: plans.PlannedHost, plan: plans.Plan) -> Iterator[str]:
    yield tree.MARK
    yield from nova_conf.compute(planned, plan.profile)


def _dashed(name: str) -> str:
    """Write a name as Kubernetes takes it."""
    return name.replace('_', '-').strip('-')[:200]

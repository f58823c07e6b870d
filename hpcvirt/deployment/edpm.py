# SPDX-License-Identifier: Apache-2.0

"""Write what EDPM node sets of Red Hat OpenStack Services on OpenShift need.

The pages are in ``edpm_kernel_args``. The role turns the sizes of
``edpm_kernel_hugepages``, which are in KiB, into parameters without a unit,
and the kernel reserves no page for ``hugepagesz=2048``. Where all cells have
the same pages, their sum is written, which every kernel divides evenly;
otherwise those of each cell, which the kernel of the hosts must understand
(Linux 5.16).
"""

import dataclasses
from typing import Any

from hpcvirt.deployment import ansible
from hpcvirt.deployment import host_files
from hpcvirt.deployment import nova_conf
from hpcvirt.deployment import tree
from hpcvirt.flavors import kernel_settings
from hpcvirt.flavors import planned as plans
from hpcvirt.model import cpuset

#: Variables of the roles that conflict with those of hpcvirt.
UNWANTED = ('edpm_kernel_hugepages', 'edpm_tuned_isolated_cores',
            'edpm_tuned_custom_profile')


def files(plan: plans.Plan) -> tuple[tree.File, ...]:
    """Write a file for each group of hosts that are alike."""
    return tuple(_file(group, plan) for group in find_groups(plan))


def find_groups(plan: plans.Plan) -> tuple[ansible.HostGroup, ...]:
    """Group the hosts that are alike."""
    return ansible.group_hosts(plan.hosts,
                               lambda host: host_files.files(host, plan))


def _file(group: ansible.HostGroup, plan: plans.Plan) -> tree.File:
    state = kernel_settings.make_state(group.first)
    about = (
        f'For the node set of {group.words}: the variables belong in '
        'spec.nodeTemplate.ansible.ansibleVars, and the ConfigMap in the '
        'dataSources of its service for Nova. '
        + _about_pages(state) + ' ' + _about_rest(group.first))
    return tree.File(
        f'{group.name}.yaml', tree.yaml_text(
            about, _node_set(group, state), _config_map(group, plan)))


def _node_set(group: ansible.HostGroup,
              state: kernel_settings.KernelSettings) -> dict[str, Any]:
    return {
        'apiVersion': 'dataplane.openstack.org/v1beta1',
        'kind': 'OpenStackDataPlaneNodeSet',
        'metadata': {'name': _dashed(group.name)},
        'spec': {'nodeTemplate': {'ansible': {
            'ansibleVars': make_variables(state)}}}}


def make_variables(state: kernel_settings.KernelSettings) -> dict[str, Any]:
    """Write the variables of the roles edpm_kernel and edpm_tuned."""
    if _even(state):
        state = dataclasses.replace(state, parameters=tuple(
            dataclasses.replace(item, value=_sum(item.value))
            if item.name == 'hugepages' else item
            for item in state.parameters))
    found: dict[str, Any] = {
        # The profile cpu-partitioning adds its parameters itself.
        'edpm_kernel_args': host_files.command_line(
            state, {'Tuned-Partitioning'}),
        'edpm_kernel_enable_ksm': False,
        'edpm_kernel_sysctl_extra_settings': {
            item.name: {'value': int(item.value)} for item in state.sysctls}}
    if state.housekeeping:
        found['edpm_tuned_profile'] = 'cpu-partitioning'
        found['edpm_tuned_isolated_cores'] = cpuset.render(state.isolated)
    else:
        found['edpm_tuned_profile'] = host_files.PROFILE
        found['edpm_tuned_custom_profile'] = host_files.write_tuned()
    return found


def _sum(counts: str) -> str:
    """Add the pages of all cells: ``0:2,1:2`` becomes ``4``."""
    return str(sum(int(item.partition(':')[2])
                   for item in counts.split(',')))


def _even(state: kernel_settings.KernelSettings) -> bool:
    """Tell whether one number of pages for the host says the same."""
    cells = list(state.pages.values())
    return state.default_page_kib is not None and all(
        cell == cells[0] for cell in cells)


def _about_pages(state: kernel_settings.KernelSettings) -> str:
    if state.default_page_kib is None:
        return 'Guests have normal pages.'
    words = ('Do not set edpm_kernel_hugepages: the role gives the kernel '
             'its sizes without a unit, for which it reserves no page. ')
    if _even(state):
        return words + ('hugepages= has the pages of all cells together, '
                        'which the kernel divides evenly, as the plan does.')
    return words + ('Cells have different numbers of pages: the kernel must '
                    'be 5.16 or newer, or know hugepages=CELL:NUMBER; an '
                    'older one reserves none.')


def _about_rest(planned: plans.PlannedHost) -> str:
    words = ('Roles of EDPM have no variable for the options of modules '
             '(nested paging is on by default).')
    if any(True for _ in host_files.vf_rules(planned)):
        counts = ', '.join(f'{item.device.address} {item.count}'
                           for item in planned.offered)
        words += (' Virtual functions belong in edpm_network_config_template '
                  f'as numvfs of type sriov_pf: {counts}.')
    return words


def _config_map(group: ansible.HostGroup, plan: plans.Plan) -> dict[str, Any]:
    # The role copies *nova*.conf and provider*.yaml.
    data = {'90-nova-hpcvirt.conf': '\n'.join(
        (tree.MARK, *nova_conf.compute(group.first, plan), ''))}
    document = nova_conf.make_provider(group.first, plan)
    if document is not None:
        data['provider-hpcvirt.yaml'] = tree.yaml_text(
            'Traits that the planned flavors require.', document)
    return {'apiVersion': 'v1', 'kind': 'ConfigMap',
            'metadata': {'name': f'nova-{_dashed(group.name)}'},
            'data': data}


def _dashed(name: str) -> str:
    """Write a name as Kubernetes takes it."""
    return name.replace('_', '-').strip('-')[:200]

# SPDX-License-Identifier: Apache-2.0

"""Write what EDPM node sets of Red Hat OpenStack Services on OpenShift need.

The pages are in ``edpm_kernel_args``. The role turns the sizes of
``edpm_kernel_hugepages``, which are in KiB, into parameters without a unit,
and the kernel reserves no page for ``hugepagesz=2048``. Where all cells have
the same pages, their sum is written, which every kernel divides evenly;
otherwise those of each cell, which the kernel of the hosts must understand
(Linux 5.16).
"""

import re
from collections.abc import Iterator
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
    return tuple(_write(group, plan)
                 for group in ansible.group_hosts(plan, host_files.files))


def _write(group: ansible.HostGroup, plan: plans.Plan) -> tree.File:
    state = kernel_settings.make_state(group.first)
    cells = list(state.pages.values())
    # Whether one number of pages for the host says the same.
    even = all(cell == cells[0] for cell in cells)
    name = group.name.replace('_', '-').strip('-')[:200]  # for Kubernetes
    # The role copies *nova*.conf and provider*.yaml.
    data = {'90-nova-hpcvirt.conf': '\n'.join(
        (tree.MARK, *nova_conf.compute(group.first, plan), ''))}
    document = nova_conf.make_provider(group.first, plan)
    if document is not None:
        provider = tree.make_yaml_file(
            'provider-hpcvirt.yaml',
            'Traits that the planned flavors require.', document)
        data[provider.path] = provider.text
    return tree.make_yaml_file(f'{group.name}.yaml', (
        f'For the node set of {group.words}: the variables belong in '
        'spec.nodeTemplate.ansible.ansibleVars, and the ConfigMap in the '
        'dataSources of its service for Nova. '
        + ' '.join(_describe(group.first, state, even))), {
            'apiVersion': 'dataplane.openstack.org/v1beta1',
            'kind': 'OpenStackDataPlaneNodeSet',
            'metadata': {'name': name},
            'spec': {'nodeTemplate': {'ansible': {
                'ansibleVars': _list_variables(state, even)}}},
        }, {'apiVersion': 'v1', 'kind': 'ConfigMap',
            'metadata': {'name': f'nova-{name}'}, 'data': data})


def _describe(planned: plans.PlannedHost,
              state: kernel_settings.KernelSettings,
              even: bool) -> Iterator[str]:
    """Describe what the site must know of the variables, as sentences."""
    if state.default_page_kib is None:
        yield 'Guests have normal pages.'
    else:
        yield ('Do not set edpm_kernel_hugepages: the role gives the kernel '
               'its sizes without a unit, for which it reserves no page.')
        yield ('hugepages= has the pages of all cells together, which the '
               'kernel divides evenly, as the plan does.' if even else
               'Cells have different numbers of pages: the kernel must be '
               '5.16 or newer, or know hugepages=CELL:NUMBER; an older one '
               'reserves none.')
    yield ('Roles of EDPM have no variable for the options of modules '
           '(nested paging is on by default).')
    if host_files.vf_rules(planned):
        counts = ', '.join(f'{item.device.address} {item.count}'
                           for item in planned.offered)
        yield ('Virtual functions belong in edpm_network_config_template as '
               f'numvfs of type sriov_pf: {counts}.')


def _list_variables(state: kernel_settings.KernelSettings,
                    even: bool) -> dict[str, Any]:
    """Write the variables of the roles edpm_kernel and edpm_tuned.

    :param even: whether the pages of all cells are written as their sum
    """
    # The profile cpu-partitioning adds its parameters itself.
    words = [
        f'hugepages={sum(map(int, re.findall(":([0-9]+)", item.value)))}'
        if even and item.name == 'hugepages' else str(item)
        for item in state.parameters if item.source != 'Tuned-Partitioning']
    return {
        'edpm_kernel_args': ' '.join(words),
        'edpm_kernel_enable_ksm': False,
        'edpm_kernel_sysctl_extra_settings': {
            item.name: {'value': int(item.value)} for item in state.sysctls},
        **({'edpm_tuned_profile': 'cpu-partitioning',
            'edpm_tuned_isolated_cores': cpuset.render(state.isolated)}
           if state.housekeeping else
           {'edpm_tuned_profile': host_files.PROFILE,
            'edpm_tuned_custom_profile': host_files.write_tuned('').text})}

# SPDX-License-Identifier: Apache-2.0

"""The forms in which the configuration of hosts can be had.

kolla-ansible merges ``nova/HOST/nova.conf`` and ``nova/SERVICE.conf`` of its
folder for configuration into the file of each service: an option there takes
the place of all values of files before. A site has options of its own in the
same files. The Ansible role sets up the operating system.

In EDPM node sets of Red Hat OpenStack Services on OpenShift, the pages are in
``edpm_kernel_args``. The role turns the sizes of ``edpm_kernel_hugepages``,
which are in KiB, into parameters without a unit, and the kernel reserves no
page for ``hugepagesz=2048``. Where all cells have the same pages, their sum is
written, which every kernel divides evenly; otherwise those of each cell, which
the kernel of the hosts must understand (Linux 5.16).
"""

import re
from collections.abc import Callable
from collections.abc import Hashable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

from hpcvirt.deployment import ansible
from hpcvirt.deployment import host_files
from hpcvirt.deployment import nova_conf
from hpcvirt.deployment import tree
from hpcvirt.flavors import device_choice
from hpcvirt.flavors import kernel_settings
from hpcvirt.flavors import planned as plans
from hpcvirt.model import cpuset

#: The folder of the files of controllers, and that of Nova in it.
CONTROLLERS = 'controllers'
CONTROLLER = f'{CONTROLLERS}/nova.conf'

SOURCE = 'nova-base-plugin-hpcvirt'

#: Where the source of hpcvirt is on the machine that builds images.
SOURCE_PLACE = '/opt/hpcvirt-source'

#: Variables of the roles of EDPM that conflict with those of hpcvirt.
EDPM_UNWANTED = ('edpm_kernel_hugepages', 'edpm_tuned_isolated_cores',
                 'edpm_tuned_custom_profile')


def write_hosts(plan: plans.Plan) -> tuple[tree.File, ...]:
    """Write the files of each host, below a folder of its name."""
    found: list[tree.File] = []
    for planned in plan.hosts:
        found += [
            tree.File(f'{planned.name}/{file.path}', file.text, file.activate)
            for file in host_files.files(planned, plan)]
    return (*found, *_controller_files(plan))


def _controller_files(plan: plans.Plan) -> tuple[tree.File, ...]:
    """Write what the controllers need."""
    found = []
    for name, about, lines in (
            ('nova', ('Options of nova-api, nova-scheduler and '
                      'nova-conductor.'), nova_conf.controller(plan)),
            ('placement', 'Options of Placement.',
             nova_conf.placement(plan))):
        if lines:
            found.append(tree.make_file(f'{CONTROLLERS}/{name}.conf', about,
                                        '\n'.join(lines)))
    return tuple(found)


def kolla_files(plan: plans.Plan) -> tuple[tree.File, ...]:
    """Write the files, relative to /etc/kolla."""
    groups = ansible.group_hosts(plan, _need)
    return (
        *_nova_files('config', plan),
        ansible.inventory('inventory/hpcvirt.yml', groups),
        *(tree.make_yaml_file(
            f'inventory/group_vars/{group.name}.yml',
            f'The configuration of {group.words}.', {
                **_nova_variables(group.first, plan),
                **ansible.variables(group.first,
                                    host_files.system(group.first))})
          for group in groups),
        ansible.playbook('hpcvirt.yml'),
        tree.make_file(
            'kolla-build-hpcvirt.conf',
            'Install hpcvirt in the images of Nova: kolla-build --config-file '
            '/etc/kolla/kolla-build.conf --config-file '
            '/etc/kolla/kolla-build-hpcvirt.conf nova. The location is a '
            'clone of hpcvirt, or its unpacked source archive.',
            f'[{SOURCE}]\ntype = local\nlocation = {SOURCE_PLACE}',
            activate=('kolla-build nova',)))


def kayobe_files(plan: plans.Plan) -> tuple[tree.File, ...]:
    """Write the files of kayobe and of the kolla-ansible below it."""
    groups = ansible.group_hosts(plan, _need)
    found = [*_nova_files('kolla/config', plan),
             ansible.inventory('inventory/hpcvirt.yml', groups),
             ansible.inventory('kolla/inventory/hpcvirt.yml', groups)]
    for group in groups:
        state = kernel_settings.make_state(group.first)
        sysctls = {item.name: item.value for item in state.sysctls}
        found += [
            tree.make_yaml_file(
                f'inventory/group_vars/{group.name}/hpcvirt.yml',
                f'The configuration of {group.words}.', {
                    'tuned_active_builtin_profile': host_files.PROFILE,
                    'sysctl_parameters':
                    '{{ compute_sysctl_parameters | combine('
                    f'{sysctls}) }}}}',
                    # kayobe has a variable for sysctls; two could contradict.
                    **ansible.variables(group.first, (
                        file for file in host_files.system(group.first)
                        if file.path != host_files.SYSCTL))}),
            tree.make_yaml_file(
                f'kolla/inventory/group_vars/{group.name}/hpcvirt.yml',
                f'Traits and containers of {group.words}.',
                _nova_variables(group.first, plan))]
    return (
        *found,
        ansible.playbook('ansible/hpcvirt.yml'),
        tree.make_yaml_file(
            'hpcvirt.yml',
            'Install hpcvirt in the images of Nova. If kolla.yml has '
            'kolla_sources, add the second entry there and remove this file: '
            'the later file counts as a whole. The location is a clone of '
            'hpcvirt, or its unpacked source archive.', {
                'kolla_sources': {
                    'bifrost-base': {
                        'type': 'git',
                        'location': '{{ kolla_bifrost_source_url }}',
                        'reference': '{{ kolla_bifrost_source_version }}'},
                    SOURCE: {'type': 'local', 'location': SOURCE_PLACE}}}))


def _need(planned: plans.PlannedHost, plan: plans.Plan) -> Hashable:
    """Return what is equal on the hosts of a group.

    Each host has a file for its options of Nova.
    """
    return (tuple(host_files.system(planned)),
            str(nova_conf.make_provider(planned, plan)))


def _nova_files(folder: str, plan: plans.Plan) -> Iterator[tree.File]:
    """Write the parts of nova.conf that kolla-ansible merges."""
    parts = [(f'{planned.name}/nova', 'Options of Nova on this host.',
              nova_conf.compute(planned, plan)) for planned in plan.hosts]
    common = nova_conf.controller(plan)
    placement = nova_conf.placement(plan)
    if common:
        parts += [(service, (f'Options of {service} that must be those of '
                             'the hosts.'), common)
                  for service in ('nova-api', 'nova-scheduler', *((
                      'nova-conductor', 'nova-super-conductor')
                      if placement else ()))]
    for path, about, lines in parts:
        yield tree.make_file(
            f'{folder}/nova/{path}.conf', about, '\n'.join(lines),
            activate=('kolla-ansible reconfigure --tags nova',), shared=True)
    if placement:
        yield tree.make_file(
            f'{folder}/placement.conf', 'Options of Placement.',
            '\n'.join(placement), shared=True,
            activate=('kolla-ansible reconfigure --tags placement',))


def _nova_variables(planned: plans.PlannedHost,
                    plan: plans.Plan) -> dict[str, Any]:
    """Write the traits, and the CPUs of all containers.

    Without traits, a document takes former ones away: kolla-ansible leaves the
    file of a variable that is no longer defined. libvirt takes guests out of
    the CPUs of its container. Podman runs containers beside the guests, in
    machine.slice.
    """
    found: dict[str, Any] = {
        'nova_cell_compute_provider_config':
        nova_conf.make_provider(planned, plan)
        or {'meta': {'schema_version': '1.0'}}}
    own = kernel_settings.make_state(planned).housekeeping
    if own:
        found['default_container_dimensions'] = (
            '{{ (default_container_dimensions_docker if kolla_container_engine'
            " == 'docker' else default_container_dimensions_podman)"
            f" | combine({{'cpuset_cpus': '{cpuset.render(own)}'}}) }}}}")
    return found


def edpm_files(plan: plans.Plan) -> tuple[tree.File, ...]:
    """Write a file for each group of hosts that are alike."""
    return tuple(_write_node_set(group, plan)
                 for group in ansible.group_hosts(plan, host_files.files)
                 ) + _controller_files(plan)


def _write_node_set(group: ansible.HostGroup, plan: plans.Plan) -> tree.File:
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
                           for item in planned.offered
                           if item.wanted.kind is device_choice.DeviceKind.VF)
        yield ('Virtual functions belong in edpm_network_config_template as '
               f'numvfs of type sriov_pf: {counts}.')
    commands = kernel_settings.format_network_commands(planned.profile,
                                                       'DEVICE')
    if commands:
        yield ('What these commands set on network devices belongs there as '
               f'ethtool_opts: {commands}.')


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


FORMATS: Mapping[str, Callable[[plans.Plan], tuple[tree.File, ...]]] = {
    'files': write_hosts,
    'kolla': kolla_files,
    'kayobe': kayobe_files,
    'edpm': edpm_files,
    'ansible': lambda plan: ansible.files(plan) + _controller_files(plan),
}

# SPDX-License-Identifier: Apache-2.0

"""Write what kolla-ansible, kolla-build and kayobe need.

kolla-ansible merges ``nova/HOST/nova.conf`` and ``nova/SERVICE.conf`` of its
folder for configuration into the file of each service: an option there takes
the place of all values of files before. A site has options of its own in the
same files. The Ansible role sets up the operating system.
"""

from collections.abc import Hashable
from collections.abc import Iterator
from typing import Any

from hpcvirt.deployment import ansible
from hpcvirt.deployment import host_files
from hpcvirt.deployment import nova_conf
from hpcvirt.deployment import tree
from hpcvirt.flavors import kernel_settings
from hpcvirt.flavors import planned as plans
from hpcvirt.model import cpuset

SOURCE = 'nova-base-plugin-hpcvirt'
#: Where the source of hpcvirt is on the machine that builds images.
SOURCE_PLACE = '/opt/hpcvirt-source'


def files(plan: plans.Plan) -> tuple[tree.File, ...]:
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
    if common:
        parts += [(service, (f'Options of {service} that must be those of '
                             'the hosts.'), common)
                  for service in ('nova-api', 'nova-scheduler')]
    for path, about, lines in parts:
        yield tree.make_file(
            f'{folder}/nova/{path}.conf', about, '\n'.join(lines),
            activate=('kolla-ansible reconfigure --tags nova',), shared=True)


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

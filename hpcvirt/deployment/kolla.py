# SPDX-License-Identifier: Apache-2.0

"""Write what kolla-ansible, kolla-build and kayobe need.

kolla-ansible merges ``nova/HOST/nova.conf`` and ``nova/SERVICE.conf`` of its
folder for configuration into the file of each service: an option there takes
the place of all values of files before. A site has options of its own in the
same files. The Ansible role sets up the operating system.
"""

from collections.abc import Iterable
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
_RECONFIGURE = ('kolla-ansible reconfigure --tags nova',)


def files(plan: plans.Plan) -> tuple[tree.File, ...]:
    """Write the files, relative to /etc/kolla."""
    groups = ansible.system_groups(plan)
    return (
        *nova_files('config', plan),
        ansible.inventory('inventory/hpcvirt.yml', groups),
        *(tree.File(
            f'inventory/group_vars/{group.name}.yml', tree.yaml_text(
                f'The configuration of {group.words}.', {
                    **provider_variable(group.first, plan),
                    **dimensions(group.first),
                    **ansible.variables(
                        group.first,
                        host_files.system(group.first))}))
          for group in groups),
        ansible.playbook('hpcvirt.yml'),
        tree.File('kolla-build-hpcvirt.conf', tree.text(
            'Install hpcvirt in the images of Nova: kolla-build --config-file '
            '/etc/kolla/kolla-build.conf --config-file '
            '/etc/kolla/kolla-build-hpcvirt.conf nova. The location is a '
            'clone of hpcvirt, or its unpacked source archive.',
            f'[{SOURCE}]\ntype = local\nlocation = {SOURCE_PLACE}'),
            ('kolla-build nova',)))


def nova_files(folder: str, plan: plans.Plan) -> Iterator[tree.File]:
    """Write the parts of nova.conf that kolla-ansible merges."""
    def write(path: str, about: str, lines: Iterable[str]) -> tree.File:
        text = '\n'.join(lines)
        return tree.File(
            f'{folder}/nova/{path}',
            f'{tree.text(about, text)}\n{tree.END}',
            _RECONFIGURE, shared=True)

    for planned in plan.hosts:
        yield write(f'{planned.name}/nova.conf',
                    'Options of Nova on this host.',
                    nova_conf.compute(planned, plan))
    common = list(nova_conf.controller(plan))
    for service in ('nova-api', 'nova-scheduler') if common else ():
        yield write(f'{service}.conf', f'Options of {service} that must be '
                    'those of the hosts.', common)


def provider_variable(planned: plans.PlannedHost,
                      plan: plans.Plan) -> dict[str, Any]:
    """Write the traits; without any, a document that takes former ones away.

    kolla-ansible leaves the file of a variable that is no longer defined.
    """
    document = nova_conf.make_provider(planned, plan)
    return {'nova_cell_compute_provider_config':
            document or {'meta': {'schema_version': '1.0'}}}


def dimensions(planned: plans.PlannedHost) -> dict[str, Any]:
    """Write the CPUs of all containers; libvirt takes guests out of its own.

    Podman runs containers beside the guests, in machine.slice.
    """
    own = kernel_settings.make_state(planned).housekeeping
    if not own:
        return {}
    return {'default_container_dimensions':
            "{{ (default_container_dimensions_docker if kolla_container_engine"
            " == 'docker' else default_container_dimensions_podman)"
            f" | combine({{'cpuset_cpus': '{cpuset.render(own)}'}}) }}}}"}


def kayobe_files(plan: plans.Plan) -> tuple[tree.File, ...]:
    """Write the files of kayobe and of the kolla-ansible below it."""
    groups = ansible.system_groups(plan)
    found = [*nova_files('kolla/config', plan),
             ansible.inventory('inventory/hpcvirt.yml', groups),
             ansible.inventory('kolla/inventory/hpcvirt.yml', groups)]
    for group in groups:
        state = kernel_settings.make_state(group.first)
        # kayobe has variables for these, and a second file could contradict.
        own = [file for file in host_files.system(group.first)
               if file.path != host_files.SYSCTL]
        sysctls = {item.name: item.value for item in state.sysctls}
        found += [
            tree.File(f'inventory/group_vars/{group.name}/hpcvirt.yml',
                      tree.yaml_text(f'The configuration of {group.words}.', {
                          'tuned_active_builtin_profile': host_files.PROFILE,
                          'sysctl_parameters':
                          '{{ compute_sysctl_parameters | combine('
                          f'{sysctls}) }}}}',
                          **ansible.variables(group.first, own)})),
            tree.File(f'kolla/inventory/group_vars/{group.name}/hpcvirt.yml',
                      tree.yaml_text(
                          f'Traits and containers of {group.words}.', {
                              **provider_variable(group.first, plan),
                              **dimensions(group.first)}))]
    return (
        *found,
        ansible.playbook('ansible/hpcvirt.yml'),
        tree.File('hpcvirt.yml', tree.yaml_text(
            'Install hpcvirt in the images of Nova. If kolla.yml has '
            'kolla_sources, add the second entry there and remove this file: '
            'the later file counts as a whole. The location is a clone of '
            'hpcvirt, or its unpacked source archive.', {
                'kolla_sources': {
                    'bifrost-base': {
                        'type': 'git',
                        'location': '{{ kolla_bifrost_source_url }}',
                        'reference': '{{ kolla_bifrost_source_version }}'},
                    SOURCE: {'type': 'local',
                             'location': SOURCE_PLACE}}})))

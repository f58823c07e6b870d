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

"""Write what kolla-ansible and kolla-build need.

kolla-ansible merges ``nova/HOST/nova.conf`` and ``nova/SERVICE.conf`` of its
folder for configuration into the file of each service: an option there takes
the place of all values of files before. The operating system is the matter of
the Ansible role.
"""

from collections.abc import Iterator
from typing import Any

from hpcvirt.deployment import ansible
from hpcvirt.deployment import host_files
from hpcvirt.deployment import nova_conf
from hpcvirt.deployment import provider
from hpcvirt.deployment import tree
from hpcvirt.deployment import yaml_text
from hpcvirt.flavors import planned as plans

SOURCE = 'nova-base-plugin-hpcvirt'
#: Where the source of hpcvirt is on the machine that builds images.
SOURCE_PLACE = '/opt/hpcvirt'
_RECONFIGURE = ('kolla-ansible reconfigure --tags nova',)


def files(plan: plans.Plan) -> tuple[tree.File, ...]:
    """Write the files, relative to /etc/kolla."""
    groups = ansible.system_groups(plan)
    return (
        *nova_files('config', plan),
        ansible.inventory('inventory/hpcvirt.yml', groups),
        *(tree.File(
            f'inventory/group_vars/{group.name}.yml', yaml_text.file(
                f'The configuration of {group.words}.', {
                    **provider_variable(group.first, plan),
                    **ansible.variables(
                        group.first,
                        host_files.system(group.first, plan.profile), plan)}))
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
    for planned in plan.hosts:
        yield tree.File(
            f'{folder}/nova/{planned.name}/nova.conf', tree.text(
                'Options of Nova on this host.', '\n'.join(
                    nova_conf.compute(planned, plan.profile))), _RECONFIGURE)
    common = '\n'.join(nova_conf.controller(plan.hosts[0], plan.profile))
    for service in ('nova-api', 'nova-scheduler') if common else ():
        yield tree.File(f'{folder}/nova/{service}.conf', tree.text(
            f'Options of {service} that must be those of the hosts.', common),
            _RECONFIGURE)


def provider_variable(planned: plans.PlannedHost,
                      plan: plans.Plan) -> dict[str, Any]:
    """Write the traits; without any, a document that takes former ones away.

    kolla-ansible leaves the file of a variable that is no longer defined.
    """
    document = provider.document(planned, plan)
    return {'nova_cell_compute_provider_config':
            document or {'meta': {'schema_version': '1.0'}}}

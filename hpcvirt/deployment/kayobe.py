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

"""Write what kayobe needs, relative to ``$KAYOBE_CONFIG_PATH``."""

from hpcvirt.deployment import ansible
from hpcvirt.deployment import host_files
from hpcvirt.deployment import kernel
from hpcvirt.deployment import kolla
from hpcvirt.deployment import services
from hpcvirt.deployment import tree
from hpcvirt.deployment import yaml_text
from hpcvirt.flavors import host_state
from hpcvirt.flavors import planned as plans


def files(plan: plans.Plan) -> tuple[tree.File, ...]:
    """Write the files of kayobe and of the kolla-ansible below it."""
    groups = ansible.system_groups(plan)
    found = [*kolla.nova_files('kolla/config', plan),
             ansible.inventory('inventory/hpcvirt.yml', groups),
             ansible.inventory('kolla/inventory/hpcvirt.yml', groups)]
    for group in groups:
        state = host_state.of(group.first, plan.profile)
        # kayobe has variables for these, and a second file could contradict.
        own = [file for file in host_files.system(group.first, plan.profile)
               if file.path != kernel.SYSCTL]
        sysctls = {item.name: item.value for item in state.sysctls}
        found += [
            tree.File(f'inventory/group_vars/{group.name}/hpcvirt.yml',
                      yaml_text.file(f'The configuration of {group.words}.', {
                          'tuned_active_builtin_profile': services.PROFILE,
                          'sysctl_parameters':
                          '{{ compute_sysctl_parameters | combine('
                          f'{sysctls}) }}}}',
                          **ansible.variables(group.first, own, plan)})),
            tree.File(f'kolla/inventory/group_vars/{group.name}/hpcvirt.yml',
                      yaml_text.file(
                          f'The traits of {group.words}.',
                          kolla.provider_variable(group.first, plan)))]
    return (
        *found,
        ansible.playbook('ansible/hpcvirt.yml'),
        tree.File('hpcvirt.yml', yaml_text.file(
            'Install hpcvirt in the images of Nova. If kolla.yml has '
            'kolla_sources, add the second entry there and remove this file: '
            'the later file counts as a whole. The location is a clone of '
            'hpcvirt, or its unpacked source archive.', {
                'kolla_sources': {
                    'bifrost-base': {
                        'type': 'git',
                        'location': '{{ kolla_bifrost_source_url }}',
                        'reference': '{{ kolla_bifrost_source_version }}'},
                    kolla.SOURCE: {'type': 'local',
                                   'location': kolla.SOURCE_PLACE}}})))

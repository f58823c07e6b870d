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

"""The forms in which the configuration of hosts can be had."""

from collections.abc import Callable
from collections.abc import Mapping

from hpcvirt.deployment import ansible
from hpcvirt.deployment import edpm
from hpcvirt.deployment import host_files
from hpcvirt.deployment import kayobe
from hpcvirt.deployment import kolla
from hpcvirt.deployment import tree
from hpcvirt.flavors import planned as plans


def of_hosts(plan: plans.Plan) -> tuple[tree.File, ...]:
    """Write the files of each host, below a folder of its name."""
    return tuple(
        tree.File(f'{planned.name}/{file.path}', file.text, file.activate)
        for planned in plan.hosts
        for file in host_files.files(planned, plan))


FORMATS: Mapping[str, Callable[[plans.Plan], tuple[tree.File, ...]]] = {
    'files': of_hosts,
    'kolla': kolla.files,
    'kayobe': kayobe.files,
    'edpm': edpm.files,
    'ansible': ansible.files,
}

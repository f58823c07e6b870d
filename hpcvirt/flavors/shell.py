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

"""Write a plan as ``openstack`` commands to paste into a shell."""

import shlex
from collections.abc import Iterator

from hpcvirt.flavors import catalogue
from hpcvirt.flavors import planned as plans


def commands(plan: plans.Plan) -> Iterator[str]:
    """Write a command for each flavor, after the warnings as comments."""
    for item in plan.warnings:
        yield f'# {item.code}: {item.message}'
    for planned in plan.flavors:
        yield command(planned.flavor)
        for project in planned.flavor.projects or ():
            yield shlex.join(['openstack', 'flavor', 'set', '--project',
                              project, planned.flavor.name])


def command(flavor: catalogue.Flavor) -> str:
    """Write the command that creates a flavor; Nova assigns its id."""
    words = ['openstack', 'flavor', 'create',
             '--vcpus', str(flavor.vcpus), '--ram', str(flavor.ram_mib),
             '--disk', str(flavor.disk_gib)]
    if flavor.projects is not None:
        words.append('--private')
    for key, value in flavor.extra_specs.items():
        words += ['--property', f'{key}={value}']
    return shlex.join([*words, flavor.name])

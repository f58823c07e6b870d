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

"""Write the files that configure one host.

Each is a file of hpcvirt's own in a folder that its consumer reads besides the
files of others, so that foreign settings stay as they are.
"""

from collections.abc import Iterator

import yaml

from hpcvirt.deployment import kernel
from hpcvirt.deployment import nova_conf
from hpcvirt.deployment import provider
from hpcvirt.deployment import services
from hpcvirt.deployment import tree
from hpcvirt.flavors import host_state
from hpcvirt.flavors import planned as plans
from hpcvirt.flavors import profile as profiles

NOVA_CONF = 'etc/nova/nova.conf.d/90-hpcvirt.conf'
PROVIDER = 'etc/nova/provider_config/hpcvirt.yaml'
VFS = 'etc/udev/rules.d/70-hpcvirt-vfs.rules'
#: Files that some hosts and profiles need and others do not.
OPTIONAL = (PROVIDER, VFS, *kernel.PAGES, services.AFFINITY)
_RESTART = ('restart nova-compute',)


def files(planned: plans.PlannedHost,
          plan: plans.Plan) -> tuple[tree.File, ...]:
    """Write all files of a host, those of Nova first."""
    return (*nova(planned, plan), *system(planned, plan.profile))


def nova(planned: plans.PlannedHost, plan: plans.Plan) -> Iterator[tree.File]:
    """Write the files of nova-compute."""
    yield tree.File(NOVA_CONF, nova_text(planned, plan.profile), _RESTART)
    document = provider.document(planned, plan)
    if document is not None:
        yield tree.File(PROVIDER, tree.text(
            'Traits that the planned flavors require. nova-compute reads this '
            'when it starts; a trait that is taken out stays in Placement '
            'until "openstack resource provider trait delete".',
            yaml.safe_dump(document, sort_keys=False),
            source='Nova-Providers'), _RESTART)


def nova_text(planned: plans.PlannedHost, profile: profiles.Profile) -> str:
    """Write the options of nova-compute as a file."""
    return tree.text(
        'Options of nova-compute on this host. An option that a file of the '
        'command line of nova-compute sets too (--config-file) has the value '
        'of that file.', '\n'.join(nova_conf.compute(planned, profile)))


def system(planned: plans.PlannedHost,
           profile: profiles.Profile) -> Iterator[tree.File]:
    """Write the files of the operating system."""
    state = host_state.of(planned, profile)
    yield from kernel.files(state)
    yield from services.files(state)
    rules = '\n'.join(vf_rules(planned, profile))
    if rules:
        yield tree.File(VFS, tree.text(
            'Create the virtual functions when the driver of a device is '
            'bound. SR-IOVVirtualFunctions= of systemd.link or a profile of '
            'NetworkManager do the same; use only one of them.',
            rules, source='Nova-Devices'), ('reboot',))


def vf_rules(planned: plans.PlannedHost,
             profile: profiles.Profile) -> Iterator[str]:
    """Write the udev rules that create virtual functions at boot."""
    if profile.devices and profile.devices.kind is profiles.Kind.VF:
        for item in planned.settings.devices:
            # Only a bound driver can create virtual functions.
            yield (f'ACTION=="bind", SUBSYSTEM=="pci", '
                   f'KERNEL=="{item.device.address}", '
                   f'ATTR{{sriov_numvfs}}="{item.count}"')

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

"""Options of the group ``[hpcvirt]`` in tempest.conf.

A test that needs an option which is not set is skipped, and the reason names
the option.
"""

from oslo_config import cfg

GROUP = cfg.OptGroup(
    'hpcvirt', title='hpcvirt',
    help='What the cloud under test has for instances with a topology.')

OPTIONS = [
    cfg.StrOpt('plan_file', help="""
The plan that the cloud's flavors and hosts were made from: the output of
``hpcvirt flavor plan --format json``. The tests create flavors of their own
from it and compare the cloud's answers with what it promises: how many
instances a host holds, and which CPUs and pages each gets. The hosts' names
in it are those of the compute services.

Without it the tests of generated flavors, of scheduling and of moves are
skipped.
"""),
    cfg.ListOpt('hosts', default=[], help="""
Compute services that the scheduling tests may fill to the last CPU. They must
be empty and serve nobody else meanwhile; the tests delete what they create.

If empty, the scheduling tests are skipped.
"""),
    cfg.ListOpt('twin_hosts', default=[], help="""
Two or more of ``hosts`` that are alike, so that what runs on one also fits on
another. The tests of moves and of weighers need them; with fewer than two
these are skipped.
"""),
    cfg.StrOpt('topology_dir', help="""
A directory with one file HOST.json for each of ``hosts``: the output of
``hpcvirt topology show --format json``. It tells the tests which cells share a
package and on which cell the devices are. Without it these tests are skipped.
"""),
    cfg.StrOpt('pci_alias', help="""
An alias of ``[pci]alias`` in nova.conf for virtual functions, which ``hosts``
have as their topologies say. Without it the tests with devices are skipped.
"""),
    cfg.StrOpt('scheduling_image_ref', help="""
The image for scheduling tests and moves; the guest need not boot.
``[compute]image_ref`` if it is not set.
"""),
    cfg.StrOpt('guest_image_ref', help="""
The image for guest tests: Linux with an SSH server that takes the key of the
instance, and the user ``[validation]image_ssh_user``. ``[compute]image_ref``
if it is not set.
"""),
    cfg.StrOpt('guest_plan_file', help="""
A plan, as ``plan_file``, whose flavors guests really boot with. Without it the
guest tests are skipped.
"""),
    cfg.StrOpt('guest_network', help="""
The network that guests are reached in from where Tempest runs, by their fixed
address. ``[compute]fixed_network_name`` if it is not set.
"""),
    cfg.StrOpt('guest_pci_alias', help="""
An alias of ``[pci]alias`` for virtual functions that real guests can get.
Without it the guest tests with devices are skipped.
"""),
    cfg.StrOpt('libvirt_uri', help="""
libvirt of the hypervisor, where Tempest runs beside it, for example
``qemu:///system``. The tests read the domain's definition by ``virsh``.
Without it the tests from the host's side are skipped.
"""),
    cfg.StrOpt('stop_compute_command', help="""
A command that stops nova-compute on ``{host}``, for example
``ssh {host} sudo systemctl stop devstack@n-cpu``. It is split as a shell
would, and run without one. Evacuation is skipped without it.
"""),
    cfg.StrOpt('start_compute_command', help="""
The command that starts nova-compute on ``{host}`` again.
"""),
    cfg.BoolOpt('live_migration', default=False, help="""
Whether ``twin_hosts`` can live-migrate instances with a NUMA topology.
"""),
    cfg.BoolOpt('weighers', default=True, help="""
Whether ``hpcvirt.nova.weights.all_weighers`` is among ``weight_classes``.
"""),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the group and its options."""
    conf.register_group(GROUP)
    conf.register_opts(OPTIONS, group=GROUP)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """List the options for the documentation."""
    return [(GROUP, list(OPTIONS))]

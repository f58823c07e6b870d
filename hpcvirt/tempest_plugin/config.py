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
    cfg.ListOpt('benchmarks', default=[], help="""
Benchmarks to run in a guest of each flavor of ``guest_plan_file`` and natively
on its host CPUs, as ``NAME`` or ``NAME/VARIANT``; ``hpcvirt bench list`` names
them. The guest and the native machine have to have the programs. A guest
beyond its bounds fails the test.

If empty, these tests are skipped.
"""),
    cfg.ListOpt('benchmark_settings', default=[], help="""
Sizes, ranks, threads and paths, each as ``NAME:KEY=VALUE``, for example
``hpcc:N=20000``; ``hpcvirt bench describe NAME`` lists the keys. What is not
set follows the definition's rule from the CPUs and the memory of the guest.
"""),
    cfg.IntOpt('benchmark_pairs', default=10, min=5, max=1000, help="""
Pairs of a native and a guest run that count. From fewer than 5 nothing can be
said, from more a smaller difference.
"""),
    cfg.IntOpt('benchmark_time_limit', min=1, help="""
Seconds that one run of a benchmark may take, in either arm; one that takes
longer is ended, and the result is INVALID. The definition's own if it is not
set, which is hours for some.
"""),
    cfg.StrOpt('benchmark_image_ref', help="""
The image for benchmarks: Linux with the programs and an SSH server, as
``tools/guest_image/build`` makes it. ``guest_image_ref`` if it is not set.
"""),
    cfg.StrOpt('native', help="""
Where the native runs are made: ``ssh://[user@]host[:port][?key=FILE]``, in
which ``{host}`` stands for the compute service of the guest, or ``local``
where Tempest runs on the compute host itself. Without ``{host}`` the plan may
have one host only. The guest's own CPUs are taken, by ``numactl`` or
``taskset``, so that nothing else may run on them.

Without it the tests that compare are skipped.
"""),
    cfg.StrOpt('inconclusive', default='fail', choices=[
        ('fail', 'the demand is not shown to be met, so the test fails'),
        ('skip', 'the test is skipped, and says why'),
    ], help="""
What becomes of a test whose figures are too noisy to say whether the guest is
within its bounds. Choose ``skip`` where the machine is known to be disturbed
and a change must not be held up by it.
"""),
    cfg.StrOpt('results_store', help="""
A database for all that is measured, as SQLAlchemy names it; SQLite in
``results_dir`` if it is not set.
"""),
    cfg.StrOpt('results_dir', help="""
The directory for the outputs of the benchmarks as they were printed;
``hpcvirt bench report --data DIR`` shows what is in it. That of ``hpcvirt
bench`` if it is not set.
"""),
    cfg.StrOpt('mpi_benchmark', help="""
A benchmark of two MPI ranks that is run over two guests, through the network
of the tests: ``netpipe``, ``mpi4py-pingpong`` or ``osu-latency``. The guests
need Open MPI and ``ssh``. Without it this test is skipped.
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

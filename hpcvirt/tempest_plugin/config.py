# SPDX-License-Identifier: Apache-2.0

"""Options of the group ``[hpcvirt]`` in tempest.conf.

A test that needs an option is skipped if it is not set, with a reason that
names the option.
"""

from oslo_config import cfg

GROUP = cfg.OptGroup(
    'hpcvirt', title='hpcvirt',
    help='What the cloud under test offers to instances with a NUMA topology.')

OPTIONS = [
    cfg.StrOpt('plan_file', help="""
The plan from which the flavors and hosts of the cloud were configured: the
output of ``hpcvirt flavor plan --format json``. The tests create its flavors
under random names and compare the cloud with the plan: how many instances a
host holds, and which CPUs and pages each instance gets. The hosts in the plan
must have the names of the compute services.

If it is not set, the tests of generated flavors, of scheduling and of moves
are skipped.
"""),
    cfg.ListOpt('hosts', default=[], help="""
Compute services that the scheduling tests may fill completely. They must be
empty, and must not be used by others while the tests run. The tests delete
what they create.

If it is empty, the scheduling tests are skipped.
"""),
    cfg.ListOpt('twin_hosts', default=[], help="""
Two or more of ``hosts`` with the same hardware and configuration, so that an
instance of one also fits on another. With fewer than two, the tests of moves
and of weighers are skipped.
"""),
    cfg.StrOpt('topology_dir', help="""
A directory with one file ``HOST.json`` for each of ``hosts``: the output of
``hpcvirt host show --format json``. From it the tests read which host
cells share a socket and which host cell each device is on. If it is not set,
these tests are skipped.
"""),
    cfg.StrOpt('pci_alias', help="""
An alias of ``[pci]alias`` in nova.conf for virtual functions that ``hosts``
have according to their topologies. If it is not set, the scheduling tests with
devices are skipped.
"""),
    cfg.StrOpt('scheduling_image_ref', help="""
The image for the tests of scheduling and of moves. The guest need not boot. If
it is not set, ``[compute]image_ref`` is used.
"""),
    cfg.StrOpt('guest_image_ref', help="""
The image for the guest tests: Linux with the user
``[validation]image_ssh_user`` and an SSH server that accepts the key pair of
the instance. If it is not set, ``[compute]image_ref`` is used.
"""),
    cfg.StrOpt('guest_plan_file', help="""
A plan in the format of ``plan_file`` whose flavors the guest tests boot. If it
is not set, the guest tests are skipped.
"""),
    cfg.StrOpt('guest_network', help="""
The network in which Tempest reaches guests at their fixed addresses. If it is
not set, ``[compute]fixed_network_name`` is used.
"""),
    cfg.StrOpt('guest_pci_alias', help="""
An alias of ``[pci]alias`` in nova.conf for virtual functions that guests can
use. If it is not set, the guest tests with devices are skipped.
"""),
    cfg.StrOpt('libvirt_uri', help="""
The URI of libvirt on the hypervisor, for example ``qemu:///system`` if Tempest
runs on the compute host. The tests read the definition of the domain with
``virsh``. If it is not set, the tests of guests on the hypervisor are skipped.
"""),
    cfg.StrOpt('stop_compute_command', help="""
A command that stops nova-compute on ``{host}``, for example
``ssh {host} sudo systemctl stop devstack@n-cpu``. It is split into words as a
shell would do, but no shell runs it. If it is not set, the test of evacuation
is skipped.
"""),
    cfg.StrOpt('start_compute_command', help="""
A command that starts nova-compute on ``{host}`` again. If it is not set, the
test of evacuation is skipped.
"""),
    cfg.ListOpt('benchmarks', default=[], help="""
Benchmarks to run in a guest of each flavor of ``guest_plan_file`` and natively
on the same host CPUs, as ``NAME`` or ``NAME/VARIANT``; ``hpcvirt bench list``
lists them. Their programs must be installed in the guest and on the native
machine. A guest outside the bounds of a benchmark fails the test.

If it is empty, these tests are skipped.
"""),
    cfg.ListOpt('benchmark_settings', default=[], help="""
Sizes, ranks, threads and paths, each as ``NAME:KEY=VALUE``, for example
``hpcc:N=20000``; ``hpcvirt bench list NAME`` lists the keys. The
definition of the benchmark derives other values from the CPUs and the memory
of the guest.
"""),
    cfg.IntOpt('benchmark_pairs', default=16, min=5, max=1000, help="""
The number of pairs of a native and a guest run, without warm-ups. More pairs
show smaller differences. With 16, a guest passes that is as good as in the
study that its bound comes from. With fewer than a guest needs to pass, which
depends on the bounds, the test fails before it starts one.
"""),
    cfg.IntOpt('benchmark_time_limit', min=1, help="""
The time limit in seconds of one run of a benchmark, natively or in the guest.
A run that takes longer is stopped, and the result is INVALID. If it is not
set, the limit of the benchmark's definition is used, which may be hours.
"""),
    cfg.StrOpt('benchmark_image_ref', help="""
The image for benchmarks: Linux with the programs and an SSH server, as
``contrib/guest_image/build`` builds it. If it is not set, ``guest_image_ref``
is used.
"""),
    cfg.StrOpt('native', help="""
Where benchmarks run natively: ``ssh://[user@]host[:port][?key=FILE]``, in
which ``{host}`` stands for the compute service of the guest, or ``local`` if
Tempest runs on the compute host. Without ``{host}`` the plan must have only
one host. The runs are confined to the host CPUs of the guest with ``numactl``
or ``taskset``; nothing else may run on these CPUs.

If it is not set, the tests that compare a guest with its host are skipped.
"""),
    cfg.StrOpt('native_host_key', default='known', choices=[
        ('known', 'a key in ``known_hosts`` of the user or of the system'),
        ('accept-new', 'the first key of a server without a known key'),
    ], help="""
The ssh host keys of ``native`` that are trusted. For a guest, the keys that it
prints on its console are trusted, or its first key if it prints none.
"""),
    cfg.StrOpt('inconclusive', default='fail', choices=[
        ('fail', 'the test fails, because the guest may miss its bounds'),
        ('skip', 'the test is skipped, with the reason'),
    ], help="""
The outcome of a test whose figures are too noisy to show whether the guest is
within its bounds. Choose ``skip`` if the machine is known to be noisy and must
not block changes.
"""),
    cfg.StrOpt('results_store', secret=True, help="""
The SQLAlchemy URL of the database for all results. If it is not set, an SQLite
file in ``results_dir`` is used.
"""),
    cfg.StrOpt('results_dir', help="""
The directory of the raw outputs of the benchmarks. ``hpcvirt bench report
--data DIR`` shows its content. If it is not set, the default directory of
``hpcvirt bench`` is used.
"""),
    cfg.StrOpt('mpi_benchmark', help="""
A benchmark with two MPI ranks to run over two guests in ``guest_network``:
``netpipe``, ``mpi4py-pingpong`` or ``osu-latency``. The guests need Open MPI
and ``ssh``. If it is not set, this test is skipped.
"""),
    cfg.BoolOpt('live_migration', default=False, help="""
Whether ``twin_hosts`` can live-migrate instances with a NUMA topology.
"""),
    cfg.BoolOpt('weighers', default=True, help="""
Whether ``hpcvirt.nova.weights.all_weighers`` is in ``weight_classes`` of the
scheduler.
"""),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the group and its options."""
    conf.register_group(GROUP)
    conf.register_opts(OPTIONS, group=GROUP)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """Return the options for the documentation."""
    return [(GROUP, list(OPTIONS))]

# SPDX-License-Identifier: Apache-2.0

"""Options of the weighers, in the group ``[hpcvirt]`` of nova.conf.

nova-scheduler reads them.
"""

from oslo_config import cfg

from hpcvirt.conf import group

_OPTS = [
    cfg.FloatOpt(
        'numa_fragmentation_weight_multiplier', default=20.0,
        help="""
Multiplier of the weight of hosts that keep room for what is requested.

NUMAFragmentationWeigher predicts the host cells that a guest with a NUMA
topology will get. It gives the highest weight to the host where the guest
takes the least room from the guests that the scheduler has seen requested.
Room that is scarce among the hosts counts more. For guests without a NUMA
topology, it gives all hosts the same weight.

The weights of the hosts of a request range from 0 to 1, as for Nova's own
weighers; the best host is at least 0.5 ahead of the next one. Three of Nova's
weighers (CPU, RAM and disk) spread guests over hosts, with a multiplier of 1.0
each.

Possible values:

* 0: the weigher is off.
* A positive number: guests go to hosts on which they leave the most room. With
  a value above 6.0, the smallest difference outweighs Nova's three spreading
  weighers; with the default, soft affinity decides only between hosts of equal
  weight.
* A negative number: guests go to hosts on which they leave the least room,
  which is useful only in tests.

This option can be overridden for the hosts of an aggregate by aggregate
metadata of the same name.

Related options:

* ``[filter_scheduler] weight_classes`` must name
  ``hpcvirt.nova.weights.all_weighers`` in addition to Nova's weighers.
* ``[filter_scheduler] cpu_weight_multiplier``, ``ram_weight_multiplier`` and
  ``disk_weight_multiplier`` spread guests (positive) or pack them (negative).
* ``[compute] packing_host_numa_cells_allocation_strategy`` determines the
  cells of a host on which a guest starts. True is recommended, on
  nova-scheduler and on every nova-compute.
"""),
    cfg.FloatOpt(
        'device_locality_weight_multiplier', default=20.0,
        help="""
Multiplier of the weight of hosts with PCI devices on the guest's cells.

DeviceLocalityWeigher predicts the host cells that a guest will get, and gives
the highest weight to hosts on which the PCI devices of the guest are on these
cells. It matters for PCI NUMA affinity policies that allow devices of other
cells: ``preferred``, ``socket``, and ``legacy`` for devices that report no
NUMA cell. With ``required`` all hosts have the same weight.

Possible values:

* 0: the weigher is off.
* A positive number: hosts with local devices are preferred. If local devices
  leave less room for other guests, the larger of this option and
  ``numa_fragmentation_weight_multiplier`` decides.
* A negative number: hosts with local devices are avoided.

This option can be overridden for the hosts of an aggregate by aggregate
metadata of the same name.

Related options:

* ``[filter_scheduler] weight_classes``
* ``[filter_scheduler] pci_weight_multiplier``
"""),
    cfg.FloatOpt(
        'device_set_weight_multiplier', default=50.0,
        help="""
Multiplier of the weight of hosts on which few whole sets of devices break.

DeviceSetWeigher gives the highest weight to the host on which the PCI devices
of the guest break the fewest and smallest sets that have been free as a whole
(``hpcvirt_device_sets`` in ``[pci] device_spec``), so that whole sets are left
for guests that need them. For guests without PCI devices, and if no host has
sets, it gives all hosts the same weight.

Possible values:

* 0: the weigher is off.
* A positive number: devices are taken from broken sets first. The best host is
  at least half of this number ahead. With more than twice
  ``numa_fragmentation_weight_multiplier``, whole sets thus count more than
  room for CPUs and memory.
* A negative number: whole sets are broken first, which is useful only in
  tests.

This option can be overridden for the hosts of an aggregate by aggregate
metadata of the same name.

Related options:

* ``[filter_scheduler] weight_classes``
* ``[filter_scheduler] pci_weight_multiplier``
"""),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options; registering them again changes nothing."""
    conf.register_group(group.GROUP)
    conf.register_opts(_OPTS, group=group.GROUP)


def list_opts() -> list[cfg.Opt]:
    """List the options for sample files and documentation."""
    return list(_OPTS)

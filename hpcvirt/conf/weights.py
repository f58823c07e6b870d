# SPDX-License-Identifier: Apache-2.0

"""Options of the weigher, in the group ``[hpcvirt]`` of nova.conf.

nova-scheduler reads them.
"""

from oslo_config import cfg

from hpcvirt.conf import group

_OPTS = [
    cfg.FloatOpt(
        'topology_weight_multiplier', default=20.0,
        help="""
Multiplier of the weight of hosts on which a guest takes little from others.

HPCTopologyWeigher predicts the host cells that a guest with a NUMA topology
will get. It gives the highest weight to the host where the guest takes the
least room from the guests that the scheduler has seen requested. Room that is
scarce among the hosts counts more. Of hosts that are equal in this, it prefers
those that have the PCI devices of the guest on its cells, then those on which
the guest breaks the fewest whole sets of devices (``hpcvirt_device_sets`` in
``[pci] device_spec``), then the fullest. For guests without a NUMA topology,
only sets of devices count; without these, all hosts have the same weight.

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
* ``[filter_scheduler] pci_weight_multiplier`` keeps guests without devices off
  the hosts that have some, whatever room is lost.
* ``[compute] packing_host_numa_cells_allocation_strategy`` determines the
  cells of a host on which a guest starts. True is recommended, on
  nova-scheduler and on every nova-compute.
"""),
    cfg.FloatOpt(
        'far_device_cost', default=0.0, min=0.0,
        help="""
The room that a guest may take from others to have its PCI devices near.

It is a multiple of the room that the guest takes at least on any host. It
matters for PCI NUMA affinity policies that allow devices of other cells than
those of the guest: ``preferred``, ``socket``, and ``legacy`` for devices that
report no NUMA cell. With ``required``, devices are always near.

Possible values:

* 0: devices decide only between hosts on which the guest takes the same room.
* A positive number: where all devices of the guest are far, the least room
  that the guest takes on any host counts once more, times this number. If
  every guest has a virtual function of the only network card of its host, 1.0
  already loses more room than packing with Nova's weighers does.
* ``inf``: hosts with near devices come first, and room decides between equal
  ones.

``hpcvirt simulate --compare hpcvirt,hpcvirt+far=1,hpcvirt+far=inf`` shows what
a value gains in local guests and loses in room.

Related options:

* ``[hpcvirt] topology_weight_multiplier``
"""),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options; registering them again changes nothing."""
    conf.register_group(group.GROUP)
    conf.register_opts(_OPTS, group=group.GROUP)


def list_opts() -> list[cfg.Opt]:
    """List the options for sample files and documentation."""
    return list(_OPTS)

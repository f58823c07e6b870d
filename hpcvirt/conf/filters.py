# SPDX-License-Identifier: Apache-2.0

"""Options of the filter, in the group ``[hpcvirt]`` of nova.conf."""

from oslo_config import cfg

from hpcvirt.conf import group

ENFORCE = 'enforce'
SHADOW = 'shadow'

_OPTS = [
    cfg.StrOpt(
        'filter_mode', default=ENFORCE, choices=[
            (ENFORCE, 'HPCTopologyFilter decides which hosts pass.'),
            (SHADOW, 'HPCTopologyFilter passes every host.'),
        ],
        help="""
Whether HPCTopologyFilter decides, or only logs what it would decide.

In shadow mode it passes every host and changes nothing. It writes a line at
INFO level for each instance with a NUMA topology or with PCI devices: on which
hosts its decision differs from that of Nova's NUMATopologyFilter (and
PciPassthroughFilter, if that is enabled), and why. ``hpcvirt explain
--scheduler-log FILE`` summarizes these lines.

Use shadow mode to see what the filter would change in a cloud before it
decides anything there. Meanwhile Nova's filters must stay enabled after
HPCTopologyFilter: they alone decide.

Shadow mode runs Nova's filters once more for each host, which takes as long as
these filters take. It stops after two seconds for each instance, and leaves
out hosts for which Nova would try thousands of arrangements of cells. An error
in the comparison is logged and has no consequences.

Related options:

* ``[filter_scheduler] enabled_filters``
"""),
    cfg.BoolOpt(
        'moves_follow_placement', default=False,
        help="""
Whether moves take the PCI devices that Placement has allocated.

In Nova 32 to 34, the claim of a cold migration, a resize or an evacuation
takes any devices that match. The patch
``0006-Claim-allocated-PCI-devices-in-moves.patch`` in ``contrib/nova`` of
hpcvirt fixes this in nova-compute. nova-scheduler cannot see whether
nova-compute is patched.

Possible values:

* False: HPCTopologyFilter refuses these moves for an instance whose flavor has
  ``hpcvirt:device_set``, because the instance would get devices of different
  sets. For other instances it predicts which devices the claim takes.
* True: HPCTopologyFilter judges the devices that Placement has allocated. Set
  it only if every nova-compute has the patch: without it, a moved instance
  gets devices of different sets, and Placement holds other devices than it
  has.

Moves to another Nova cell are refused for such an instance in either case,
because their claim is another one.

Related options:

* ``[filter_scheduler] pci_in_placement``
"""),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options; registering them again changes nothing."""
    conf.register_group(group.GROUP)
    conf.register_opts(_OPTS, group=group.GROUP)


def list_opts() -> list[cfg.Opt]:
    """List the options for sample files and documentation."""
    return list(_OPTS)

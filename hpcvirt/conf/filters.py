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
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options; registering them again changes nothing."""
    conf.register_group(group.GROUP)
    conf.register_opts(_OPTS, group=group.GROUP)


def list_opts() -> list[cfg.Opt]:
    """List the options for sample files and documentation."""
    return list(_OPTS)

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
PciPassthroughFilter, if that is enabled), and why. ``hpcvirt explain --log
FILE`` summarizes these lines.

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

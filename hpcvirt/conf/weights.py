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

"""Options of the weighers, in the group ``[hpcvirt]`` of nova.conf.

They are read by nova-scheduler. The group is our own, so that Nova's
``[filter_scheduler]`` stays Nova's.
"""

from oslo_config import cfg

GROUP = cfg.OptGroup(
    'hpcvirt', title='hpcvirt in the scheduler',
    help="How hpcvirt's scheduler plug-ins weigh hosts. Read by "
         'nova-scheduler from nova.conf.')

_OPTS = [
    cfg.FloatOpt(
        'numa_fragmentation_weight_multiplier', default=20.0,
        help="""
How much the room that a placement destroys counts in the choice of a host.

NUMAFragmentationWeigher predicts the host cells that a guest with a NUMA
topology will get, and gives the most weight to the host that loses least room
for larger guests: whole cells, packages, hosts, and cells with free PCI
devices. It says nothing about guests without a NUMA topology.

Its weights run from 0 to 1 over the hosts of a request, as those of Nova's
own weighers do. Three of these (CPU, RAM, disk) spread guests over hosts with
a multiplier of 1.0 each.

Possible values:

* 0: the weigher is off.
* A positive number: guests go where they destroy least room. Above 3.0 a
  clear difference outweighs Nova's spreading; the default also lets most
  small differences win and leaves soft affinity to the ties. Raise it if
  large flavors are refused while the fleet has free CPUs.
* A negative number: guests go where they destroy most room, which has no use
  but in tests.

It can be set for the hosts of an aggregate by metadata of the same name.

Related options:

* ``[filter_scheduler] weight_classes`` must name
  ``hpcvirt.nova.weights.all_weighers`` beside Nova's own.
* ``[filter_scheduler] cpu_weight_multiplier``, ``ram_weight_multiplier`` and
  ``disk_weight_multiplier`` spread guests (positive) or pack them (negative).
* ``[compute] packing_host_numa_cells_allocation_strategy`` decides on which
  cells of a host a guest starts.
"""),
    cfg.FloatOpt(
        'device_locality_weight_multiplier', default=20.0,
        help="""
How much it counts that a guest's PCI devices sit on the cells of its CPUs.

DeviceLocalityWeigher matters where the PCI affinity policy allows devices of
other cells (``preferred``, ``legacy`` for devices that report no cell,
``socket``): it gives the most weight to hosts where the devices are on the
host cells that the guest is predicted to get. Under ``required`` all hosts
are equal to it.

Possible values:

* 0: the weigher is off.
* A positive number: hosts with local devices are preferred. Compare it with
  ``numa_fragmentation_weight_multiplier``: whichever is larger wins where
  local devices cost room.
* A negative number: hosts with local devices are avoided.

It can be set for the hosts of an aggregate by metadata of the same name.

Related options:

* ``[filter_scheduler] weight_classes``
* ``[filter_scheduler] pci_weight_multiplier``
"""),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options; a second time changes nothing."""
    conf.register_group(GROUP)
    conf.register_opts(_OPTS, group=GROUP)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """List the options for sample files and documentation."""
    return [(GROUP, list(_OPTS))]

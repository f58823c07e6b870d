# SPDX-License-Identifier: Apache-2.0

"""Plans of hosts whose devices are offered in sets."""

import collections
import dataclasses

from hpcvirt.fit import device_sets
from hpcvirt.flavors import device_choice
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from hpcvirt.model import shape
from tests.builders import hosts

NEAR = device_choice.Nearness
#: GPUs in sets that are linked, and the functions of near NICs.
GPUS = dataclasses.replace(
    hosts.GPU, product_id='2330', sets=device_choice.SetRule.LINK,
    sizes=(1, 2, 4, 8), affinity=shape.PCIAffinity.REQUIRED)
VFS = dataclasses.replace(hosts.VFS, alias='ib', per_instance=None,
                          near=NEAR.SWITCH)


def plan(*machines, entries=(GPUS, VFS), **choices):
    """Plan hosts whose devices are those of the entries."""
    return planner.plan(machines, dataclasses.replace(
        profiles.DENSE, devices=entries, all_host_steps=False, **choices))


def read_sets(config):
    """Read the sets and the traits of each address, as Nova gets them."""
    sets = collections.defaultdict(set)
    for spec in config.pci_device_spec:
        for each in device_sets.parse(spec[device_sets.TAG]):
            sets[each].add(spec['address'])
    return sets

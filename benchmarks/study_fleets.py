# SPDX-License-Identifier: Apache-2.0

"""The fleets of the study of weighers (benchmarks/replay.py)."""

import dataclasses
import pathlib
from collections.abc import Mapping
from collections.abc import Sequence

import yaml

from hpcvirt.flavors import device_choice
from hpcvirt.flavors import planned
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from hpcvirt.fleet import assemble
from hpcvirt.fleet import state
from hpcvirt.model import flavor as flavor_model
from hpcvirt.model import host as host_model
from hpcvirt.model import shape
from hpcvirt.topology import collection

ETC = pathlib.Path(__file__).parent.parent / 'etc' / 'hpcvirt'

PREFERRED = shape.PCIAffinity.PREFERRED
REQUIRED = shape.PCIAffinity.REQUIRED
SOCKET = shape.PCIAffinity.SOCKET

#: The vendor and the product of the VFs of network cards.
VENDOR, PRODUCT = '8086', '154c'


@dataclasses.dataclass(frozen=True)
class StudyFleet:
    """A fleet, and the devices that are requested.

    :ivar hosts: topology file -> number of hosts
    :ivar share: the share of the requests that get a virtual function
    :ivar nics: the cells with a network card, on each host
    :ivar vfs: the number of virtual functions of each of them
    :ivar every: every how manieth host has them
    :ivar affinity: the affinity policy of the virtual functions
    :ivar base: the profile of the flavors, to which the devices are added
    :ivar profile: a file of profiles, whose devices are requested instead
    """

    hosts: Mapping[str, int]
    share: float = 0.0
    nics: tuple[int, ...] = ()
    vfs: int = 64
    every: int = 1
    affinity: shape.PCIAffinity = PREFERRED
    base: profiles.Profile = profiles.DENSE
    profile: str | None = None


_TWO_CELLS = {'intel-2s-16c-smt': 10}
_FOUR_CELLS = {'xeon-2s-24c-snc2-1g': 8}
_EIGHT_CELLS = {'epyc-2s-64c-nps4': 6}
_MIXED = {'hs06-2s-16c': 10, 'opteron-4s-12c': 6, 'epyc-2s-64c-nps4': 4,
          'intel-2s-16c-smt': 6}

FLEETS: Mapping[str, StudyFleet] = {
    '2 cells': StudyFleet({'hs06-2s-16c': 24}),
    '4 cells': StudyFleet({'xeon-2s-24c-snc2-1g': 14}),
    '8 cells': StudyFleet({'epyc-2s-64c-nps4': 10}),
    'mixed': StudyFleet(_MIXED),
    '2 kinds': StudyFleet({'hs06-2s-16c': 40, 'xeon-2s-24c-snc2-1g': 20}),
    'VF 100 %': StudyFleet(_TWO_CELLS, 1.0, (1,)),
    'VF 100 %, small flavors': StudyFleet(
        _TWO_CELLS, 1.0, (1,), vfs=8, base=dataclasses.replace(
            profiles.DEFAULT, smallest_cores=3, pack_cells=True)),
    'VF 75 %': StudyFleet(_TWO_CELLS, 0.75, (1,)),
    'VF 50 %': StudyFleet(_TWO_CELLS, 0.5, (1,)),
    'VF 25 %': StudyFleet(_TWO_CELLS, 0.25, (1,)),
    'VF 50 %, required': StudyFleet(_TWO_CELLS, 0.5, (1,),
                                    affinity=REQUIRED),
    'VF 100 %, two NICs': StudyFleet(_TWO_CELLS, 1.0, (0, 1)),
    'VF 50 %, half the hosts': StudyFleet({'intel-2s-16c-smt': 20}, 0.5, (1,),
                                          every=2),
    'VF 25 %, half, required': StudyFleet(
        {'intel-2s-16c-smt': 20}, 0.25, (1,), every=2, affinity=REQUIRED),
    'VF 100 %, 4 cells': StudyFleet(_FOUR_CELLS, 1.0, (0,)),
    'VF 100 %, 4 cells, socket': StudyFleet(_FOUR_CELLS, 1.0, (0, 2),
                                            affinity=SOCKET),
    'VF 100 %, 8 cells': StudyFleet(_EIGHT_CELLS, 1.0, (5,)),
    'VF 50 %, mixed': StudyFleet(_MIXED, 0.5, (1,)),
    'GPU sets': StudyFleet({'xeon-2s-20c-smt-8gpu': 8},
                           profile='gpu-nic.yaml'),
}


def build(name: str) -> tuple[state.Fleet, Sequence[flavor_model.Flavor]]:
    """Plan flavors for the hosts of a fleet.

    :returns: the fleet, and the flavors that the model requests; those with
        virtual functions come from the share of the requests
    """
    study = FLEETS[name]
    machines = [_read(kind, study) for kind in study.hosts]
    if study.profile is not None:
        profile = profiles.build(yaml.safe_load(
            (ETC / 'profiles' / study.profile).read_text()), study.profile)
        plan = planner.plan(machines, profile)
        hosts = _repeat(study, machines, plan, plan)
        flavors = [item.flavor for item in plan.flavors]
        return state.Fleet(hosts, {}, flavors=tuple(flavors)), flavors
    plan = planner.plan(machines, study.base)
    flavors = [item.flavor for item in plan.flavors]
    if not study.share:
        hosts = _repeat(study, machines, plan, plan)
        return state.Fleet(hosts, {}, flavors=tuple(flavors)), flavors
    with_vf = planner.plan(machines, dataclasses.replace(
        study.base, devices=(device_choice.Devices(
            affinity=study.affinity, vendor_id=VENDOR, product_id=PRODUCT,
            vfs_per_device=study.vfs),)))
    hosts = _repeat(study, machines, plan, with_vf)
    return state.Fleet(hosts, {}, flavors=(
        *flavors, *[item.flavor for item in with_vf.flavors])), flavors


def _read(kind: str, study: StudyFleet) -> host_model.Host:
    """Read a topology, with the network cards of the study."""
    machine = collection.read_source(str(ETC / 'topologies' / f'{kind}.json'))
    if study.profile is not None:
        return machine
    return dataclasses.replace(machine, devices=tuple(
        host_model.Device(f'0000:{0x17 + cell:02x}:00.0', VENDOR, '1572', cell,
                          study.vfs, 'i40e', PRODUCT) for cell in study.nics))


def _repeat(study: StudyFleet, machines: Sequence[host_model.Host],
            plain: planned.Plan, with_devices: planned.Plan,
            ) -> tuple[state.FleetHost, ...]:
    """Make the hosts; the first of each number of hosts has devices."""
    hosts = []
    for kind, own, other in zip(
            study.hosts, _empty_hosts(machines, with_devices),
            _empty_hosts(machines, plain), strict=True):
        count = study.hosts[kind]
        for number in range(count):
            host = other if number % study.every else own
            hosts.append(dataclasses.replace(
                host, name=f'{own.name}-{number}' if count > 1 else own.name))
    return tuple(hosts)


def _empty_hosts(machines: Sequence[host_model.Host], plan: planned.Plan,
                 ) -> Sequence[state.FleetHost]:
    return assemble.fleet(machines, {
        host.name: host.settings for host in plan.hosts}, ()).hosts

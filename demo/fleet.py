# SPDX-License-Identifier: Apache-2.0

"""The fleet of the demonstration: the hosts, and the plans for them."""

import dataclasses
import pathlib
from collections.abc import Sequence

from hpcvirt import topology
from hpcvirt.model import host as host_model

ROOT = pathlib.Path(__file__).resolve().parents[1]
TOPOLOGIES = ROOT / 'etc' / 'hpcvirt' / 'topologies'
PROFILES = pathlib.Path(__file__).resolve().parent / 'profiles'

#: The physical network behind every virtual function.
PHYSNET = 'hpc0'

#: Virtual functions to create on each card, as in the profile.
VFS_PER_DEVICE = 8

#: Host to its topology file.
HOSTS = {
    'smt-1': 'intel-2s-16c-smt',
    'smt-2': 'intel-2s-16c-smt',
    'nps4-1': 'epyc-2s-64c-nps4',
    'nps4-2': 'epyc-2s-64c-nps4',
    'snc-1': 'xeon-2s-24c-snc2-1g',
    'snc-2': 'xeon-2s-24c-snc2-1g',
}


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """A call of ``hpcvirt flavor``.

    :ivar title: what a guest of these flavors gets
    :ivar profile: the profile, a file in ``demo/profiles``
    :ivar hosts: the hosts that the flavors are for
    """

    title: str
    profile: str
    hosts: tuple[str, ...]

    def arguments(self) -> list[str]:
        """Return the arguments of ``hpcvirt flavor plan`` or ``apply``."""
        return ['--profile', _short(PROFILES / f'{self.profile}.yaml'),
                *(f'{name}={_short(path(name))}' for name in self.hosts)]


PLANS = (
    Plan('2 MiB pages', '2m', ('smt-1', 'smt-2', 'nps4-1', 'nps4-2')),
    Plan('2 MiB pages and a virtual function', '2m-vf',
         ('smt-1', 'smt-2', 'nps4-1', 'nps4-2')),
    Plan('1 GiB pages', '1g', ('snc-1', 'snc-2')),
)


def path(name: str) -> pathlib.Path:
    """Return the topology file of a host."""
    return TOPOLOGIES / f'{HOSTS[name]}.json'


def read(name: str) -> host_model.Host:
    """Read a host, with its name in the fleet."""
    return dataclasses.replace(topology.read(path(name)), name=name)


def kinds(names: Sequence[str]) -> dict[str, list[str]]:
    """Group equal hosts, by the first of each group."""
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(HOSTS[name], []).append(name)
    return {alike[0]: alike for alike in found.values()}


def _short(file: pathlib.Path) -> str:
    """Return the path relative to the root of the repository."""
    return str(file.relative_to(ROOT))

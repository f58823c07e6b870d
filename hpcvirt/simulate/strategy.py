# SPDX-License-Identifier: Apache-2.0

"""The strategies that a replay compares."""

import dataclasses
from collections.abc import Mapping

from hpcvirt import exception
from hpcvirt import words

#: The default multipliers of nova-scheduler. Its other weighers weigh all
#: hosts of a replay equally.
UPSTREAM = {'ram': 1.0, 'cpu': 1.0, 'disk': 1.0, 'pci': 1.0, 'io-ops': -1.0}
#: Multipliers that pack guests with only the weighers of Nova.
PACKING = {**UPSTREAM, 'ram': -1.0, 'cpu': -1.0, 'disk': -1.0}
#: Nova's weighers and those of hpcvirt, with their default multipliers.
HPCVIRT = {**UPSTREAM, 'fragmentation': 20.0, 'locality': 20.0}
#: Takes the host with the fewest free CPUs.
BEST_FIT = {'cpus-left': -1.0}

#: The name of the strategy that an operator's nova.conf configures.
NOVA_CONF = 'nova.conf'

_BASES: Mapping[str, Mapping[str, float]] = {
    'nova': UPSTREAM, 'packing': PACKING, 'best-fit': BEST_FIT,
    'hpcvirt': HPCVIRT}


@dataclasses.dataclass(frozen=True)
class Strategy:
    """A strategy of choosing hosts.

    :ivar multipliers: weigher to multiplier
    :ivar fullest: ``packing_host_numa_cells_allocation_strategy``
    :ivar moves: maximum number of moves of other guests that may make room
        for a refused request
    """

    name: str
    multipliers: Mapping[str, float]
    fullest: bool = False
    moves: int = 0


def parse(text: str, moves: int) -> tuple[Strategy, ...]:
    """Read a list of strategies: ``nova,packing,hpcvirt+moves``.

    ``+moves`` lets refused requests move other guests, and ``+fullest`` lets
    claims use the fullest host cells first.

    :param moves: maximum number of moves for a request with ``+moves``
    :raises InvalidInput: for an unknown or repeated name
    """
    strategies: list[Strategy] = []
    for name in text.split(','):
        base, *more = name.split('+')
        if base not in _BASES or sorted(more) not in (
                [], ['fullest'], ['moves'], ['fullest', 'moves']):
            raise exception.InvalidInput(
                '--compare', f'{name!r} is not a strategy; expected one of '
                f'{", ".join(_BASES)}, with +moves or +fullest'
                + words.nearest(base, _BASES))
        if any(each.name == name for each in strategies):
            raise exception.InvalidInput('--compare', f'{name} is repeated')
        strategies.append(Strategy(
            name, _BASES[base], 'fullest' in more,
            moves if 'moves' in more else 0))
    return tuple(strategies)

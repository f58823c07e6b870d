# SPDX-License-Identifier: Apache-2.0

"""The strategies that a replay compares."""

import dataclasses
import re
from collections.abc import Mapping

from hpcvirt import exception
from hpcvirt import words

#: The default multipliers of nova-scheduler. Its other weighers weigh all
#: hosts of a replay equally.
UPSTREAM = {'ram': 1.0, 'cpu': 1.0, 'disk': 1.0, 'pci': 1.0, 'io-ops': -1.0}
#: Multipliers that pack guests with only the weighers of Nova.
PACKING = {**UPSTREAM, 'ram': -1.0, 'cpu': -1.0, 'disk': -1.0}
#: Nova's weighers and those of hpcvirt, with their default multipliers.
HPCVIRT = {**UPSTREAM, 'fragmentation': 20.0, 'locality': 20.0,
           'device-sets': 50.0}
#: Takes the host with the fewest free CPUs.
BEST_FIT = {'cpus-left': -1.0}

#: The name of the strategy that an operator's nova.conf configures.
NOVA_CONF = 'nova.conf'

#: The memory that a move copies in a second, by default about what a network
#: of 10 Gbit/s carries.
COPY_MIB_PER_S = 1000

_BASES: Mapping[str, Mapping[str, float]] = {
    'nova': UPSTREAM, 'packing': PACKING, 'best-fit': BEST_FIT,
    'hpcvirt': HPCVIRT}
_ADDITION = re.compile(r'(fullest|moves|standing)(?:(?<=g):([1-9]\d{0,5}))?',
                       re.ASCII)


@dataclasses.dataclass(frozen=True)
class Strategy:
    """A strategy of choosing hosts.

    :ivar multipliers: weigher to multiplier
    :ivar fullest: ``packing_host_numa_cells_allocation_strategy``
    :ivar moves: maximum number of moves of other guests that may make room
        for a refused request
    :ivar standing: the number of requests after which room is made for usual
        kinds; 0 for never
    :ivar most_moves: maximum number of these moves for one kind
    :ivar copy_mib_per_s: the memory that one of these moves copies in a second
    """

    name: str
    multipliers: Mapping[str, float]
    fullest: bool = False
    moves: int = 0
    standing: int = 0
    most_moves: int = 0
    copy_mib_per_s: float = COPY_MIB_PER_S


def parse(text: str, moves: int,
          copy_mib_per_s: float = COPY_MIB_PER_S) -> tuple[Strategy, ...]:
    """Read a list of strategies: ``nova,packing,hpcvirt+moves``.

    ``+moves`` lets refused requests move other guests, ``+standing`` makes
    room for usual kinds after every request and ``+standing:N`` after every
    Nth, and ``+fullest`` lets claims use the fullest host cells first.

    :param moves: maximum number of moves for a request with ``+moves``, and
        for a kind with ``+standing``
    :raises InvalidInput: for an unknown or repeated name
    """
    strategies: list[Strategy] = []
    for name in text.split(','):
        base, *more = name.split('+')
        found = {match[1]: int(match[2] or 1) for match in map(
            _ADDITION.fullmatch, more) if match}
        if base not in _BASES or len(found) < len(more):
            raise exception.InvalidInput(
                '--compare', f'{name!r} is not a strategy; expected one of '
                f'{", ".join(_BASES)}, with +moves, +standing, +standing:N or '
                '+fullest' + words.nearest(base, _BASES))
        if any(each.name == name for each in strategies):
            raise exception.InvalidInput('--compare', f'{name} is repeated')
        strategies.append(Strategy(
            name, _BASES[base], 'fullest' in found,
            moves if 'moves' in found else 0, found.get('standing', 0), moves,
            copy_mib_per_s))
    return tuple(strategies)

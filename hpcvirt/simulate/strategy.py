# SPDX-License-Identifier: Apache-2.0

"""The strategies that a replay compares."""

import dataclasses
import math
import re
from collections.abc import Mapping

from hpcvirt import exception
from hpcvirt import words

#: The default multipliers of nova-scheduler. Its other weighers weigh all
#: hosts of a replay equally.
UPSTREAM = {'ram': 1.0, 'cpu': 1.0, 'disk': 1.0, 'pci': 1.0, 'io-ops': -1.0,
            'instances': 0.0}
#: Multipliers that pack guests with only the weighers of Nova.
PACKING = {**UPSTREAM, 'ram': -1.0, 'cpu': -1.0, 'disk': -1.0}
#: Nova's weighers and those of hpcvirt, with their default multipliers.
HPCVIRT = {**UPSTREAM, 'topology': 20.0, 'far': 0.0}
#: Takes the host with the fewest free CPUs.
BEST_FIT = {'cpus-left': -1.0}

#: The memory that a move copies in a second, by default about what a network
#: of 10 Gbit/s carries.
COPY_MIB_PER_S = 1000

_BASES: Mapping[str, Mapping[str, float]] = {
    'nova': UPSTREAM, 'packing': PACKING, 'best-fit': BEST_FIT,
    'hpcvirt': HPCVIRT}
_ADDITION = re.compile(r'(fullest|moves|standing)(?:(?<=g):([1-9]\d{0,5}))?',
                       re.ASCII)
#: The names of the options of weighers that a strategy can change.
_OPTIONS = ('ram', 'cpu', 'pci', 'instances', 'topology', 'far')


@dataclasses.dataclass(frozen=True)
class Strategy:
    """A strategy of choosing hosts.

    :ivar multipliers: weigher to multiplier
    :ivar fullest: ``packing_host_numa_cells_allocation_strategy``; None for
        that of each host, which is ``pack_cells`` of its profile
    :ivar moves: maximum number of moves of other guests that may make room
        for a refused request
    :ivar standing: the number of requests after which room is made for usual
        kinds; 0 for never
    :ivar most_moves: maximum number of these moves for one kind
    :ivar copy_mib_per_s: the memory that one of these moves copies in a second
    """

    name: str
    multipliers: Mapping[str, float]
    fullest: bool | None = None
    moves: int = 0
    standing: int = 0
    most_moves: int = 0
    copy_mib_per_s: float = COPY_MIB_PER_S


def parse(text: str, moves: int,
          copy_mib_per_s: float = COPY_MIB_PER_S) -> tuple[Strategy, ...]:
    """Read a list of strategies: ``nova,packing+pci=0,hpcvirt+moves``.

    ``+moves`` lets refused requests move other guests, ``+standing`` makes
    room for usual kinds after every request and ``+standing:N`` after every
    Nth, ``+fullest`` lets claims use the fullest host cells first, and
    ``+NAME=NUMBER`` changes an option of a weigher.

    :param moves: maximum number of moves for a request with ``+moves``, and
        for a kind with ``+standing``
    :raises InvalidInput: for an unknown or repeated name
    """
    strategies: list[Strategy] = []
    for name in text.split(','):
        if any(each.name == name for each in strategies):
            raise exception.InvalidInput('--compare', f'{name} is repeated')
        strategies.append(_parse_one(name, moves, copy_mib_per_s))
    return tuple(strategies)


def _parse_one(name: str, moves: int, copy_mib_per_s: float) -> Strategy:
    """Read the name of a strategy, such as ``packing+pci=0+fullest``."""
    base, *additions = name.split('+')
    multipliers = dict(_BASES.get(base, {}))
    found: dict[str, int] = {}
    unknown = base not in _BASES
    for addition in additions:
        option, separator, value = addition.partition('=')
        match = _ADDITION.fullmatch(addition)
        if match is not None and match[1] not in found:
            found[match[1]] = int(match[2] or 1)
        elif separator and option in _OPTIONS:
            multipliers[option] = _read_number(name, option, value)
        else:
            unknown = True
    if unknown:
        raise exception.InvalidInput(
            '--compare', f'{name!r} is not a strategy; expected one of '
            f'{", ".join(_BASES)}, with +moves, +standing, +standing:N, '
            f'+fullest or +NAME=NUMBER, where NAME is one of '
            f'{", ".join(_OPTIONS)}' + words.nearest(base, _BASES))
    return Strategy(
        name, multipliers, True if 'fullest' in found else None,
        moves if 'moves' in found else 0, found.get('standing', 0), moves,
        copy_mib_per_s)


def _read_number(name: str, option: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if math.isnan(number) or (math.isinf(number) and option != 'far') or (
            option == 'far' and number < 0):
        raise exception.InvalidInput(
            '--compare', f'{text!r} in {name} is no value of {option}')
    return number

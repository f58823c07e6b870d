# SPDX-License-Identifier: Apache-2.0

"""Choose between unequal guest cells and equal smaller ones.

A socket of 22, 20 and 22 cores is divided into a guest of just these cells.
Nova places its large cells first, wherever there is room, and a socket of the
other order may stay empty. A guest of three cells of 20 cores leaves four
cores of each socket, and fits on every socket. Both are proposed, and the
equal cells are kept only if some host takes more of them.
"""

import dataclasses
from collections.abc import Callable
from collections.abc import Sequence

from hpcvirt.fit import capacity
from hpcvirt.flavors import catalogue
from hpcvirt.flavors import cpu_partition
from hpcvirt.flavors import planned as plans
from hpcvirt.model import shape as shape_model

_Fill = Callable[[shape_model.Shape, plans.PlannedHost], capacity.Filling]


def find_useless(offers: Sequence[catalogue.Offer],
                 hosts: Sequence[plans.PlannedHost],
                 fill: _Fill) -> set[shape_model.Shape]:
    """Find guests of equal cells of which no host takes more.

    :param offers: those that some host takes
    :param fill: fills a host with a guest
    """
    found = set()
    for offer in offers:
        if not _is_trimmed(offer):
            continue
        unequal = [other.guest for other in offers
                   if _stands_for(offer.guest, other.guest)]
        if any(_takes_as_many(hosts, other, offer.guest, fill)
               for other in unequal):
            found.add(offer.guest)
    return found


def _is_trimmed(offer: catalogue.Offer) -> bool:
    return all(share.words.endswith(cpu_partition.EQUAL_CELLS)
               for share in offer.shares.values())


def _stands_for(equal: shape_model.Shape, other: shape_model.Shape) -> bool:
    """Whether the cells of a guest are trimmed to those of an equal one."""
    widths = [cell.cpus for cell in other.cells]
    return (len(set(widths)) > 1 and len(widths) == len(equal.cells)
            and min(widths) == equal.cells[0].cpus
            and other.devices == equal.devices)


def _takes_as_many(hosts: Sequence[plans.PlannedHost],
                   unequal: shape_model.Shape, equal: shape_model.Shape,
                   fill: _Fill) -> bool:
    return all(fill(unequal, host).count >= fill(equal, host).count
               for host in hosts)


def is_same(one: shape_model.Shape, other: shape_model.Shape) -> bool:
    """Whether guests differ at most in their scope."""
    scope = shape_model.NUMAScope.HOST
    return (dataclasses.replace(one, numa_scope=scope)
            == dataclasses.replace(other, numa_scope=scope))

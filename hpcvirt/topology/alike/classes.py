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

"""Group hosts into classes of alike ones, and find the odd ones.

Hosts are alike if their traits are equal and the memory of each cell may be of
the same modules. A class is a variant of a larger one if it is small next to
it and differs in few things; its hosts are odd. Otherwise it is of a kind of
its own: a fleet may have several.

The result depends only on the hosts, not on their order.
"""

import dataclasses
from collections.abc import Iterable
from collections.abc import Sequence

from hpcvirt.model import host as host_model
from hpcvirt.topology.alike import differences
from hpcvirt.topology.alike import traits

#: Hosts of a variant are at most one in so many of the class.
SMALL = 10

#: A variant differs in at most so many subjects from the class, or in one of
#: these, which together make another kind of host.
FEW = 2
_OF_A_KIND = frozenset({'processor', 'packages', 'cores'})


@dataclasses.dataclass(frozen=True)
class Variant:
    """Hosts that differ from a class in the same way.

    :ivar hosts: their names
    """

    hosts: tuple[str, ...]
    differences: tuple[differences.Difference, ...]


@dataclasses.dataclass(frozen=True)
class HostClass:
    """A class of hosts.

    :ivar example: the host with which others are compared
    :ivar hosts: the names of the hosts
    :ivar odd: hosts that should belong to it and differ
    :ivar slots: hosts that belong to it and have devices in other slots
    """

    example: host_model.Host
    hosts: tuple[str, ...]
    odd: tuple[Variant, ...] = ()
    slots: tuple[Variant, ...] = ()


def group(hosts: Iterable[host_model.Host]) -> tuple[HostClass, ...]:
    """Group hosts.

    :returns: the classes, largest first
    """
    alike = sorted(_alike(hosts),
                   key=lambda members: (-len(members), members[0].name))
    main: list[Sequence[host_model.Host]] = []
    odd: dict[str, list[Variant]] = {}
    for members in alike:
        nearest = _nearest(members, main)
        if nearest is None:
            main.append(members)
            continue
        example, found = nearest
        odd.setdefault(example.name, []).append(
            Variant(_names(members), found))
    return tuple(
        HostClass(_example(members), _names(members),
                  tuple(odd.get(_example(members).name, ())), _slots(members))
        for members in main)


def _alike(hosts: Iterable[host_model.Host],
           ) -> Iterable[list[host_model.Host]]:
    """Yield the hosts that are alike, each list sorted by name."""
    equal: dict[traits.Traits, list[host_model.Host]] = {}
    for host in hosts:
        equal.setdefault(traits.of(host), []).append(host)
    for candidates in equal.values():
        yield from _of_equal_memory(candidates)


def _of_equal_memory(candidates: list[host_model.Host],
                     ) -> Iterable[list[host_model.Host]]:
    """Divide hosts that differ in nothing but memory.

    The hosts are taken from least to most memory; each joins the first list
    whose first host has about its memory.
    """
    lists: list[list[host_model.Host]] = []
    for host in sorted(candidates,
                       key=lambda host: (traits.memory(host), host.name)):
        for members in lists:
            if all(map(traits.is_close, traits.memory(members[0]),
                       traits.memory(host))):
                members.append(host)
                break
        else:
            lists.append([host])
    for members in lists:
        yield sorted(members, key=lambda host: host.name)


def _nearest(members: Sequence[host_model.Host],
             main: Iterable[Sequence[host_model.Host]],
             ) -> tuple[host_model.Host,
                        tuple[differences.Difference, ...]] | None:
    """Find the class from which hosts differ least, if they are few."""
    best = None
    for larger in main:
        if len(larger) == 1 or (len(members) > 1
                                and len(members) * SMALL > len(larger)):
            continue
        found = differences.between(members[0], _example(larger))
        subjects = {item.subject for item in found}
        weight = len(subjects) + len(subjects & _OF_A_KIND)
        key = (weight, len(found))
        if weight <= FEW and (best is None or key < best[0]):
            best = key, _example(larger), found
    return best and best[1:]


def _example(members: Sequence[host_model.Host]) -> host_model.Host:
    """Choose the host whose devices are in the usual slots."""
    by_slots = _by_slots(members)
    return max(by_slots, key=len)[0]


def _slots(members: Sequence[host_model.Host]) -> tuple[Variant, ...]:
    usual = _example(members)
    return tuple(
        Variant(_names(others),
                differences.in_other_slots(others[0], usual))
        for others in _by_slots(members)
        if traits.slots(others[0]) != traits.slots(usual))


def _by_slots(members: Sequence[host_model.Host],
              ) -> list[list[host_model.Host]]:
    found: dict[object, list[host_model.Host]] = {}
    for host in members:
        found.setdefault(tuple(sorted(traits.slots(host).items(), key=str)),
                         []).append(host)
    return list(found.values())


def _names(members: Sequence[host_model.Host]) -> tuple[str, ...]:
    return tuple(host.name for host in members)

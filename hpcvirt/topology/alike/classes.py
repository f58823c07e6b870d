# SPDX-License-Identifier: Apache-2.0

"""Group hosts that are alike into classes, and find odd hosts.

Hosts are alike if their features are equal and the memory of each cell may
consist of the same modules. A class is a variant of a larger class if it is
much smaller and differs in few features; its hosts are odd. Any other class is
a kind of its own, and a fleet may have several kinds.

The result does not depend on the order of the hosts.
"""

import dataclasses
from collections.abc import Hashable
from collections.abc import Iterable
from collections.abc import Sequence

from hpcvirt import words
from hpcvirt.model import host as host_model
from hpcvirt.topology.alike import differences
from hpcvirt.topology.alike import hardware_features

#: A variant has at most one host for this number of hosts of its class.
SMALL = 10

#: A variant differs from its class in at most this number of subjects, where
#: each subject _OF_A_KIND counts twice.
FEW = 2
_OF_A_KIND = frozenset({'processor', 'sockets', 'cores'})


@dataclasses.dataclass(frozen=True)
class HostVariant:
    """Hosts that differ from a class in the same way.

    :ivar hosts: their names
    """

    hosts: tuple[str, ...]
    differences: tuple[differences.HostDifference, ...]


@dataclasses.dataclass(frozen=True)
class HostClass:
    """A class of hosts.

    :ivar hosts: the names of the hosts
    :ivar example: the host with which others are compared
    :ivar odd: hosts of its variants
    :ivar slots: hosts of the class that have devices in other slots
    """

    hosts: tuple[str, ...]
    example: host_model.Host
    odd: tuple[HostVariant, ...] = ()
    slots: tuple[HostVariant, ...] = ()


def group(hosts: Iterable[host_model.Host]) -> tuple[HostClass, ...]:
    """Group hosts.

    :returns: the classes, largest first
    """
    alike = sorted(_alike(hosts),
                   key=lambda members: (-len(members), members[0].name))
    main: list[Sequence[host_model.Host]] = []
    odd: dict[str, list[HostVariant]] = {}
    for members in alike:
        nearest = _nearest(members, main)
        if nearest is None:
            main.append(members)
            continue
        example, found = nearest
        odd.setdefault(example.name, []).append(
            HostVariant(_names(members), found))
    return tuple(
        HostClass(_names(members), _example(members),
                  tuple(odd.get(_example(members).name, ())), _slots(members))
        for members in main)


def _alike(hosts: Iterable[host_model.Host],
           ) -> Iterable[list[host_model.Host]]:
    """Yield lists of hosts that are alike, sorted by name."""
    equal: dict[Hashable, list[host_model.Host]] = {}
    for host in hosts:
        equal.setdefault(hardware_features.collect(host), []).append(host)
    for candidates in equal.values():
        yield from _of_equal_memory(candidates)


def _of_equal_memory(candidates: list[host_model.Host],
                     ) -> Iterable[list[host_model.Host]]:
    """Divide hosts that differ in memory only.

    In the order of their memory, each host joins the first list whose first
    host has about the same memory.
    """
    lists: list[list[host_model.Host]] = []
    for host in sorted(candidates,
                       key=lambda host: (hardware_features.memory(host),
                                         host.name)):
        for members in lists:
            if all(map(hardware_features.is_close,
                       hardware_features.memory(members[0]),
                       hardware_features.memory(host))):
                members.append(host)
                break
        else:
            lists.append([host])
    for members in lists:
        yield sorted(members, key=lambda host: words.natural_order(
            host.name))


def _nearest(members: Sequence[host_model.Host],
             main: Iterable[Sequence[host_model.Host]],
             ) -> tuple[host_model.Host,
                        tuple[differences.HostDifference, ...]] | None:
    """Find the class of which hosts are a variant: the most similar one."""
    best = None
    for larger in main:
        if len(larger) == 1 or (len(members) > 1
                                and len(members) * SMALL > len(larger)):
            continue
        found = differences.compare_hosts(members[0], _example(larger))
        subjects = {item.subject for item in found}
        weight = len(subjects) + len(subjects & _OF_A_KIND)
        key = (weight, len(found))
        if weight <= FEW and (best is None or key < best[0]):
            best = key, _example(larger), found
    return best and best[1:]


def _example(members: Sequence[host_model.Host]) -> host_model.Host:
    """Choose the host whose devices are in the typical slots."""
    by_slots = _by_slots(members)
    return max(by_slots, key=len)[0]


def _slots(members: Sequence[host_model.Host]) -> tuple[HostVariant, ...]:
    typical = _example(members)
    return tuple(
        HostVariant(_names(others), found) for others in _by_slots(members)
        if (found := differences.compare_slots(others[0], typical)))


def _by_slots(members: Sequence[host_model.Host],
              ) -> list[list[host_model.Host]]:
    found: dict[Hashable, list[host_model.Host]] = {}
    for host in members:
        found.setdefault(frozenset(hardware_features.slots(host).items()),
                         []).append(host)
    return list(found.values())


def _names(members: Sequence[host_model.Host]) -> tuple[str, ...]:
    return tuple(host.name for host in members)

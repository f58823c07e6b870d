# SPDX-License-Identifier: Apache-2.0

"""Read the tree of objects in hwloc's XML."""

import dataclasses
from collections.abc import Iterator
from xml.etree import ElementTree

from hpcvirt import exception
from hpcvirt.model import cpuset
from hpcvirt.topology import bitmap
from hpcvirt.topology import document

Element = ElementTree.Element


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """An object and the objects that contain it, innermost first."""

    element: Element
    parents: tuple[Element, ...]

    def nearest(self, *types: str) -> Element | None:
        """Find the innermost parent of one of these types."""
        for parent in self.parents:
            if parent.get('type') in types:
                return parent
        return None


class HwlocTree:
    """A machine's objects, and its CPUs that are online and allowed.

    :ivar cpus: CPU number -> its place
    :ivar below: object -> the CPUs inside of it
    :raises InvalidInput: if a CPU has no number or occurs twice
    """

    def __init__(self, machine: Element, where: str) -> None:
        self.machine = machine
        self.where = where
        self.places = list(_walk(machine))
        self.cpus = self._usable()
        self.below: dict[Element, set[int]] = {}
        for cpu, place in self.cpus.items():
            for parent in place.parents:
                self.below.setdefault(parent, set()).add(cpu)

    def of_type(self, *types: str) -> list[Place]:
        """List the objects of some types, in the order of the file."""
        return [place for place in self.places
                if place.element.get('type') in types]

    def number(self, element: Element, most: int) -> int:
        """Read the number that the operating system gives an object."""
        kind = element.get('type', '?')[:40]
        return document.whole(element.get('os_index'), self.where,
                              f'the os_index of a {kind}', most)

    def members(self, element: Element, attribute: str,
                universe: frozenset[int]) -> frozenset[int] | None:
        """Read a bitmap of an object within a universe; None if missing."""
        text = element.get(attribute)
        if text is None:
            return None
        kind = element.get('type', '?')[:40]
        return bitmap.members(
            text, universe, f'{self.where}: {attribute} of a {kind}')

    def _usable(self) -> dict[int, Place]:
        found: dict[int, Place] = {}
        for place in self.of_type('PU'):
            number = self.number(place.element, cpuset.MAX_CPU)
            if number in found:
                raise exception.InvalidInput(
                    f'{self.where}: PU {number}', 'occurs twice')
            found[number] = place
        usable = frozenset(found)
        # cpuset has the online CPUs. The others matter only in files of the
        # whole system; online_cpuset exists only in version 1.
        for attribute in ('cpuset', 'allowed_cpuset', 'online_cpuset'):
            among = self.members(self.machine, attribute, usable)
            usable = usable if among is None else among
        return {cpu: found[cpu] for cpu in sorted(usable)}


def _walk(machine: Element) -> Iterator[Place]:
    """List all objects, parents first, in the order of the file."""
    stack = [Place(machine, ())]
    while stack:
        place = stack.pop()
        yield place
        inside = (place.element, *place.parents)
        stack += [Place(child, inside)
                  for child in reversed(place.element.findall('object'))]

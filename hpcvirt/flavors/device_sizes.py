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

"""Find the sizes of guests with which the devices of a host run out as well.

Whole devices and vGPUs are few, and dear. A guest gets them with the cores
that are their share: of a cell of 20 cores with 4 GPUs a guest with one GPU
has 5 cores, and one with two has 10. Where the policy does not tie devices to
cells, as with vGPUs, those of all cells are shared among all cells. Virtual
functions are many, so that every size gets the same number.
"""

import dataclasses
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.flavors import cpu_partition
from hpcvirt.flavors import given_devices
from hpcvirt.flavors import profile as profiles
from hpcvirt.flavors import sizes
from hpcvirt.model import shape as shape_model


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Part:
    """A guest of one cell, so many of which use up a cell and its devices.

    :ivar devices: of each guest
    """

    cores: int
    devices: int
    guests: int


def parts(partition: cpu_partition.Partition,
          found: Sequence[given_devices.Given],
          wanted: profiles.Devices | None) -> tuple[Part, ...]:
    """List the guests of one cell by which devices and cells run out."""
    if wanted is None or wanted.kind is profiles.Kind.VF:
        return ()
    by_cell = given_devices.per_cell(found)
    cells = len(partition.cells)
    loose = [] if _is_tied(wanted) else [
        (-(-guests // cells), devices)
        for guests, devices in _guests_of_host(found, wanted)
        if guests >= cells and (wanted.per_instance or guests % cells == 0)]
    pairs = set()
    for share in partition.cells:
        tied = [] if wanted.kind is profiles.Kind.VGPU else [
            *_guests(by_cell.get(share.id, 0), wanted)]
        width = len(share.cores)
        pairs |= {Part(width // guests, devices, guests)
                  for guests, devices in (*tied, *loose)
                  if 0 < guests <= width}
    return tuple(sorted(pairs))


def numbers(partition: cpu_partition.Partition, size: sizes.Size,
            found: Sequence[given_devices.Given],
            wanted: profiles.Devices | None,
            ) -> Mapping[int, int | None]:
    """List the numbers of devices that a guest of a size may get.

    Cells or packages with different numbers of devices give it different
    numbers.

    :returns: number -> the guests that use up a cell, None if its cores alone
        say how many
    """
    if wanted is None:
        return {0: None}
    if wanted.kind is profiles.Kind.VF:
        return {wanted.per_instance or 1: None}
    if len(size.cores) == 1:
        return {part.devices: part.guests
                for part in parts(partition, found, wanted)
                if part.cores == size.cores[0]}
    return dict.fromkeys(sorted(_of_several_cells(partition, size, found,
                                                  wanted)))


def _of_several_cells(partition: cpu_partition.Partition, size: sizes.Size,
                      found: Sequence[given_devices.Given],
                      wanted: profiles.Devices) -> Iterator[int]:
    by_cell = given_devices.per_cell(found)
    for group in _groups(partition, size):
        ids = {share.id for share in group}
        devices = (sum(by_cell.get(cell, 0) for cell in ids)
                   if len(ids) < len(partition.cells)
                   else sum(by_cell.values()))
        cores = sum(len(share.cores) for share in group)
        number, rest = divmod(devices * sum(size.cores), cores)
        if number and not rest and wanted.per_instance in (None, number):
            yield number


def _groups(partition: cpu_partition.Partition, size: sizes.Size,
            ) -> Iterable[Sequence[cpu_partition.CellShare]]:
    """List the sets of cells of which the guest is a part."""
    if not (size.one_package or size.share.is_package):
        return [partition.cells]
    packages: dict[int, list[cpu_partition.CellShare]] = {}
    for share in partition.cells:
        packages.setdefault(share.package, []).append(share)
    return packages.values()


def _guests(devices: int, wanted: profiles.Devices,
            ) -> Iterator[tuple[int, int]]:
    """Divide devices: yield numbers of guests and of the devices of each."""
    if wanted.per_instance is not None:
        yield devices // wanted.per_instance, wanted.per_instance
        return
    for number in range(1, devices + 1):
        if devices % number == 0:
            yield devices // number, number


def _guests_of_host(found: Sequence[given_devices.Given],
                    wanted: profiles.Devices) -> Iterator[tuple[int, int]]:
    if wanted.kind is profiles.Kind.VGPU:
        number = wanted.per_instance or 1
        yield sum(item.count // number for item in found), number
        return
    yield from _guests(sum(item.count for item in found), wanted)


def _is_tied(wanted: profiles.Devices) -> bool:
    """Whether a guest gets only devices of its own cells."""
    return (wanted.kind is profiles.Kind.WHOLE and wanted.affinity
            is not shape_model.PCIAffinity.PREFERRED)

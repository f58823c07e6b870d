# SPDX-License-Identifier: Apache-2.0

"""The result of a successful fit."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class CellAssignment:
    """The host cells on which a guest is placed.

    :ivar cells: for each guest cell, in guest order, the id of its host cell
    :ivar pages_kib: for each guest cell the page size that it gets; None
        if the guest cell requests none
    :ivar providers: the resource providers of each PCI request's devices, if
        Placement has to allocate certain ones; empty if the claim chooses
    """

    cells: tuple[int, ...]
    pages_kib: tuple[int | None, ...] = ()
    providers: tuple[tuple[str, ...], ...] = ()

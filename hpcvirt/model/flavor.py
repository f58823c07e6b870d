# SPDX-License-Identifier: Apache-2.0

"""The flavor of the model."""

import dataclasses
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True, slots=True)
class Flavor:
    """A flavor as Nova stores it.

    :ivar projects: the projects that may use it; None if it is public
    """

    name: str
    vcpus: int
    ram_mib: int
    disk_gib: int
    extra_specs: Mapping[str, str]
    projects: tuple[str, ...] | None = None

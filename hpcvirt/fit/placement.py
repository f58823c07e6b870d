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

"""The result of a successful fit."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Placement:
    """The host cells on which a guest is placed.

    :ivar cells: for each guest cell, in guest order, the id of its host cell
    :ivar pages_kib: for each guest cell the page size that it gets; None
        if the guest cell requests none
    """

    cells: tuple[int, ...]
    pages_kib: tuple[int | None, ...] = ()

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

"""Where a guest goes."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Placement:
    """The host cells of a guest.

    :ivar cells: for each guest cell, in guest order, the id of its host cell
    :ivar pages_kib: for each guest cell the page size that it gets, None
        where the guest did not ask for one
    """

    cells: tuple[int, ...]
    pages_kib: tuple[int | None, ...] = ()

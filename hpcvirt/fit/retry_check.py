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

"""Decide whether a guest may be built on a host after it failed on another.

After a failed build Nova sets the numbers of all guest cells to -1, and keeps
the page sizes that the claim on the first host chose. It then builds the guest
on an alternate host, without asking the filters again. The claim there cannot
tell the guest cells apart, and may accept a guest whose cells differ without
pinning all of its vCPUs.
"""

import dataclasses
from collections.abc import Iterable

from hpcvirt.fit import claim
from hpcvirt.fit import demand as demands
from hpcvirt.fit import devices
from hpcvirt.fit import reasons
from hpcvirt.fit import supply as supplies

#: The number of every guest cell after a failed build.
NUMBER = -1

#: For each guest cell the page size that it got from a claim.
Pages = tuple[int | None, ...]


def matters(demand: demands.Demand) -> bool:
    """Tell whether it can matter that a build has failed before.

    Equal guest cells cannot be confused, whatever their numbers.
    """
    return len(demand.cells) > 1 and not claim.is_immune(demand)


def pages(demand: demands.Demand, supply: supplies.Supply, packing: bool,
          providers: devices.Providers = ()) -> Pages | None:
    """Predict the page sizes that a guest has if its build fails here.

    :returns: None if the claim refuses the guest
    """
    placed = claim.predict(demand, supply, packing, providers)
    return None if isinstance(placed, reasons.Misfit) else placed.pages_kib


def check(demand: demands.Demand, supply: supplies.Supply, packing: bool,
          possible: Iterable[Pages], providers: devices.Providers = (),
          ) -> reasons.Misfit | None:
    """Say what would be wrong with a guest that failed on another host.

    :param possible: the page sizes that it may have got there
    :returns: None if the claim would refuse it or serve it well
    """
    for sizes in possible:
        misfit = claim.unsound(dataclasses.replace(
            demand, numbers=(NUMBER,) * len(demand.cells), cells=tuple(
                dataclasses.replace(cell, page_kib=size) for cell, size
                in zip(demand.cells, sizes, strict=True))),
            supply, packing, providers)
        if misfit is not None:
            return reasons.Misfit(
                reasons.Code.UNSAFE_ALTERNATE,
                {'defect': reasons.Defect.FAILED_BUILD}, (misfit,))
    return None

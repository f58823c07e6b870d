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

"""What Nova's claim on the compute host will do, defects included.

The claim walks through arrangements of host cells in order
(:mod:`hpcvirt.fit.order`) and remembers which pairs of a guest cell and a
host cell fit. It keys that memory by a number of the guest cell which the
walk itself overwrites, so that one guest cell finds what was remembered of
another: a guest that fits is refused, or gets pins and pages on a cell
where it was never fitted (defects A and B); and a page size asked for by
class is settled by the first host cell tried (defect C). Verified for Nova
32 to 34, ``nova.virt.hardware.numa_fit_instance_to_host``.

:func:`predict` follows that walk, but leaves out arrangements that can only
end as the one before, so that it does not take factorial time (defect D)
where nothing fits.
"""


from hpcvirt.fit import demand as demands
from hpcvirt.fit import devices
from hpcvirt.fit import engine
from hpcvirt.fit import placement as placements
from hpcvirt.fit import reasons
from hpcvirt.fit import supply as supplies

#: Arrangements that are followed before the prediction gives up. Nova needs
#: 1 to 2 ms for each one that has PCI requests, so that its own claim would
#: hold the compute host's resource lock for many seconds.
MOST_ARRANGEMENTS = 4096


def check(demand: demands.Demand, supply: supplies.Supply,
          packing: bool = False,
          providers: devices.Providers = ()) -> reasons.Misfit | None:
    """Say why a guest must not go to a host; None if it may.

    It may if it fits, and if Nova's claim will find a place where it fits.
    """
    if _plain(demand):
        return engine.check(demand, supply, packing, providers)
    predicted = predict(demand, supply, packing, providers)
    return predicted if isinstance(predicted, reasons.Misfit) else None


def predict(demand: demands.Demand, supply: supplies.Supply,
            packing: bool = False, providers: devices.Providers = (),
            ) -> placements.Placement | reasons.Misfit:
    """Foretell the placement that Nova's claim will come to.

    :param packing: ``[compute]packing_host_numa_cells_allocation_strategy``
        of the compute host
    :param providers: what Placement allocated to each PCI request
    :returns: the placement, or why the guest must not go to this host
    """
    return engine.place(demand, supply, packing, providers)


def _plain(demand: demands.Demand) -> bool:
    """No defect of Nova's can touch a guest like this."""
    return (demand.uniform and not demand.selective and
            not demand.pages_by_class)

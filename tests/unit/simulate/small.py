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

"""Hosts and flavors of replays, made by hand."""

from hpcvirt.fit import devices
from hpcvirt.fit import supply as supplies
from hpcvirt.flavors import catalogue
from hpcvirt.fleet import guest as guests
from hpcvirt.model import shape as shape_model
from hpcvirt.simulate import requests

SMALL, HUGE = 4, 2048


def cell(number, cpus=8, memory_mib=8192, huge=0, threads=1, package=None,
         shared=0):
    """Make an empty cell; its huge pages are part of its memory."""
    first = 1000 * number
    own = frozenset(range(first, first + cpus))
    pages = [supplies.PageSupply(SMALL, (memory_mib - 2 * huge) * 256, 0,
                                 (memory_mib - 2 * huge) * 256)]
    if huge:
        pages.append(supplies.PageSupply(HUGE, huge, 0, huge))
    return supplies.CellSupply(
        id=number, package=number if package is None else package,
        dedicated=own, free=own,
        shared=frozenset(range(first + 500, first + 500 + shared)),
        siblings=tuple(frozenset(range(cpu, cpu + threads))
                       for cpu in range(first, first + cpus, threads)),
        cpu_usage=0, memory_mib=memory_mib, memory_used_mib=0,
        pages=tuple(pages))


def host(*cells, vfs=(), **ratios):
    """Make a host.

    :param vfs: for each pool the id of its cell, and the number of VFs
    """
    return supplies.Supply(tuple(cells), tuple(
        devices.pool(where, number, alias='vf') for where, number in vfs),
        **ratios)


def flavor(*cells, memory_mib=1024, page_kib=None, vfs=0, affinity=None,
           shared=False, **more):
    """Make a flavor with so many CPUs on each guest cell."""
    shape = shape_model.Shape(
        tuple(shape_model.GuestCell(
            0 if shared else cpus, cpus if shared else 0, memory_mib,
            page_kib) for cpus in cells),
        cpu_policy=(shape_model.CPUPolicy.SHARED if shared
                    else shape_model.CPUPolicy.DEDICATED),
        devices=(shape_model.DeviceRequest('vf', vfs, affinity=affinity),)
        if vfs else (), **more)
    return requests.Flavor(
        catalogue.Flavor('x', sum(cells), memory_mib * len(cells), 0, {}),
        guests.of_shape(shape, sum(cells), memory_mib * len(cells)))

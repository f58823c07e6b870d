# SPDX-License-Identifier: Apache-2.0

"""Hosts and flavors of replays, made by hand."""

import dataclasses

from hpcvirt.fit import devices
from hpcvirt.fit import guest as guests
from hpcvirt.fit import placement
from hpcvirt.fit import supply as supplies
from hpcvirt.model import flavor as flavor_model
from hpcvirt.model import shape as shape_model
from hpcvirt.simulate import replay
from hpcvirt.simulate import requests
from hpcvirt.simulate import strategy

SMALL, HUGE = 4, 2048


def cell(number, cpus=8, memory_mib=8192, huge=0, threads=1, socket=None,
         shared=0):
    """Make an empty cell; its huge pages are part of its memory."""
    first = 1000 * number
    own = frozenset(range(first, first + cpus))
    pages = [supplies.PageSupply(SMALL, (memory_mib - 2 * huge) * 256, 0,
                                 (memory_mib - 2 * huge) * 256)]
    if huge:
        pages.append(supplies.PageSupply(HUGE, huge, 0, huge))
    return supplies.CellSupply(
        id=number, socket=number if socket is None else socket,
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
        devices=(shape_model.GuestDevices('vf', vfs, affinity=affinity),)
        if vfs else (), **more)
    ram_mib = memory_mib * len(cells)
    return dataclasses.replace(
        guests.compile_shape(shape, sum(cells), ram_mib),
        flavor=flavor_model.Flavor('x', sum(cells), ram_mib, 0, {}))


def asked(flavors, *arrivals):
    """Make requests, each a time, a duration, a flavor and a count."""
    return requests.Requests(
        flavors, tuple(requests.Arrival(*each) for each in arrivals))


def play(fleet, flavors, *arrivals, name='hpcvirt', moves=1):
    """Replay requests with a strategy; see :func:`asked`."""
    return play_requests(fleet, asked(flavors, *arrivals), name, moves)


def play_requests(fleet, requests, name='hpcvirt', moves=1):
    """Replay requests that are made already."""
    return replay.replay(strategy.parse(name, moves)[0], states(fleet),
                         requests)


def states(fleet):
    """Add up the totals of hosts."""
    return list(map(placement.add_up, fleet))

# SPDX-License-Identifier: Apache-2.0

"""Compute the rates of a host between two samples.

There are no rates for an interval in which the host was booted, or that is too
long or not positive. A counter that became smaller has no rate in this
interval. The interrupts of each CPU are counted in 32 bits: their sums are
compared modulo 2^32, unless a CPU went offline or came online, with which its
part of the sum goes and comes.
"""

import enum
from collections.abc import Mapping

from hpcvirt.health import host_sample


class Quantity(enum.StrEnum):
    """The quantities that are computed, with their units."""

    #: Fractions of the time of all CPUs.
    SYSTEM = 'system'
    IOWAIT = 'iowait'
    STEAL = 'steal'
    #: For each CPU and second.
    INTERRUPTS = 'interrupts'
    SHOOTDOWNS = 'shootdowns'
    #: Pages swapped in and out in a second.
    SWAPPED = 'swapped'
    #: The growth of unreclaimable slab, as a fraction of the memory.
    SLAB = 'slab'
    #: The fraction of the time of dedicated CPUs that foreign tasks take.
    FOREIGN_TASKS = 'foreign_tasks'
    #: In a minute.
    ERRORS = 'errors'
    #: For each CPU and minute; all CPUs of a core or package count the same.
    THROTTLES = 'throttles'


#: Unknown quantities are missing.
Rates = Mapping[Quantity, float]

#: Two samples that are further apart are not compared: a rate over a long time
#: hides what happened in it.
LONGEST_S = 900.0

_SHORTEST_S = 0.5
_WRAP = 1 << 32


def seconds(before: host_sample.HostSample,
            after: host_sample.HostSample) -> float | None:
    """Return the time between two samples; None if they cannot be compared.

    The time since boot counts, because the clock may be set.
    """
    if before.boot_id != after.boot_id:
        return None
    length = after.uptime_s - before.uptime_s
    return length if _SHORTEST_S <= length <= LONGEST_S else None


def compute_rates(before: host_sample.HostSample,
                  after: host_sample.HostSample,
                  slab_kib: int | None = None) -> Rates:
    """Compute the rates between two samples.

    :param slab_kib: the unreclaimable slab from which growth is counted
    """
    length = seconds(before, after)
    if length is None:
        return {}
    found: dict[Quantity, float | None] = {
        **_times(before.cpu_time, after.cpu_time),
        Quantity.INTERRUPTS: _part(
            _grown(before.interrupts, after.interrupts), length * after.cpus),
        Quantity.SHOOTDOWNS: _part(
            _wrapped(before, after), length * after.cpus),
        Quantity.SWAPPED: _part(
            _grown(before.swapped_pages, after.swapped_pages), length),
        Quantity.FOREIGN_TASKS: _part(
            _grown(before.foreign_tasks_s, after.foreign_tasks_s),
            length * after.dedicated)
        if before.dedicated == after.dedicated else None,
        Quantity.ERRORS: _part(_grown(
            before.corrected_errors, after.corrected_errors), length / 60),
        Quantity.THROTTLES: _part(
            _grown(before.throttles, after.throttles),
            length / 60 * after.cpus)
        if before.online == after.online else None,
    }
    if slab_kib is not None and after.slab_kib is not None:
        found[Quantity.SLAB] = _part(
            max(0, after.slab_kib - slab_kib), after.memory_kib)
    return {name: value for name, value in found.items() if value is not None}


def _times(before: host_sample.CpuTime | None,
           after: host_sample.CpuTime | None,
           ) -> dict[Quantity, float | None]:
    if before is None or after is None:
        return {}
    total = _grown(before.total, after.total)
    return {
        Quantity.SYSTEM: _part(_grown(before.system, after.system), total),
        Quantity.IOWAIT: _part(_grown(before.iowait, after.iowait), total),
        Quantity.STEAL: _part(_grown(before.steal, after.steal), total)}


def _wrapped(before: host_sample.HostSample,
             after: host_sample.HostSample) -> int | None:
    if (before.shootdowns is None or after.shootdowns is None
            or before.online != after.online):
        return None
    return (after.shootdowns - before.shootdowns) % _WRAP


def _grown(before: float | None, after: float | None) -> float | None:
    if before is None or after is None or after < before:
        return None
    return after - before


def _part(amount: float | None, of: float | None) -> float | None:
    return None if amount is None or not of else amount / of

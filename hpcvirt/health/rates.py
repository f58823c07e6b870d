# SPDX-License-Identifier: Apache-2.0

"""Compute the rates of each unit of a host between two samples.

There are no rates for an interval that is too long or not positive. A counter
that became smaller, or a unit that came or went, has no rate in this interval.
"""

from collections.abc import Mapping

from hpcvirt.health.host_sample import HOST
from hpcvirt.health.host_sample import HostSample
from hpcvirt.health.host_sample import Quantity
from hpcvirt.health.host_sample import Values

#: Two samples that are further apart are not compared: a rate over a long time
#: hides what happened in it.
LONGEST_S = 900.0

#: Rare events are counted over this time.
RARE_S = 1800.0

_LEVELS = frozenset({Quantity.SLAB, Quantity.UNCORRECTED_ERRORS,
                     Quantity.LINK_LOSS})
_RARE = frozenset({Quantity.CORRECTED_ERRORS, Quantity.THROTTLED_S})
#: What CPUs have, and a host as their sum.
CPU_SUMS = frozenset({Quantity.SYSTEM, Quantity.IOWAIT, Quantity.INTERRUPTS,
                      Quantity.SHOOTDOWNS})

#: A CPU that idles may be at any frequency.
_BUSY = 0.9


def compute_rates(earlier: HostSample, before: HostSample,
                  after: HostSample) -> Values:
    """Compute the rates between two samples.

    The time since boot counts, because the clock may be set.

    :param earlier: the sample from which rare events are counted
    """
    length = after.uptime_s - before.uptime_s
    if not 0 < length <= LONGEST_S:
        return {}
    found: dict[Quantity, Mapping[str, float]] = {}
    for quantity, values in after.values.items():
        if quantity in _LEVELS:
            found[quantity] = values
        elif quantity in _RARE:
            found[quantity] = _grow(earlier.values.get(quantity), values, 1.0)
        elif quantity is not Quantity.SLOWDOWN:
            rates = _grow(before.values.get(quantity), values, length)
            if quantity in CPU_SUMS:
                rates[HOST] = sum(rates.values())
            found[quantity] = rates
    frequencies = after.values.get(Quantity.SLOWDOWN)
    busy = found.get(Quantity.BUSY)
    if frequencies is not None and busy is not None:
        found[Quantity.SLOWDOWN] = {
            cpu: max(0.0, 1 - fraction) if busy.get(cpu, 0.0) >= _BUSY else 0.0
            for cpu, fraction in frequencies.items()}
    return found


def _grow(before: Mapping[str, float] | None, after: Mapping[str, float],
          length: float) -> dict[str, float]:
    return {unit: (value - before[unit]) / length
            for unit, value in after.items()
            if before is not None and value >= before.get(unit, value + 1)}

# SPDX-License-Identifier: Apache-2.0

"""Samples of a host, and the rates of its units between two samples.

A sample has the counters and levels of one moment, unit by unit. A unit is
what can be slow by itself: a CPU, a guest, a memory controller, a device. Sums
over a whole host hide one slow unit among many.

There are no rates for an interval that is too long or not positive. A counter
that became smaller, or a unit that came or went, has no rate in this interval.
"""

import dataclasses
import enum
from collections.abc import Mapping

#: The unit of what is known of the host as a whole.
HOST = ''


class Quantity(enum.StrEnum):
    """The quantities, with the units of their rates."""

    #: Fractions of the time of a CPU; of the host, a number of CPUs.
    BUSY = 'busy'
    SYSTEM = 'system'
    IOWAIT = 'iowait'
    STEAL = 'steal'
    #: What foreign tasks take of a dedicated CPU.
    FOREIGN_TASKS = 'foreign_tasks'
    #: In a second, on a CPU or the host.
    INTERRUPTS = 'interrupts'
    #: TLB shoot-downs. Some processors need no interrupts for them, and do
    #: not count them.
    SHOOTDOWNS = 'shootdowns'
    #: Pages that the host swapped in and out in a second.
    SWAPPED = 'swapped'
    #: Major page faults of a guest in a second.
    MAJOR_FAULTS = 'major_faults'
    #: Unreclaimable slab, as a fraction of the memory.
    SLAB = 'slab'
    #: How far the frequency of a busy CPU is below that which its maker
    #: promises, as a fraction. A sample holds the frequency as a fraction.
    SLOWDOWN = 'slowdown'
    #: Seconds for which a core or package was throttled in half an hour.
    THROTTLED_S = 'throttled_s'
    #: Corrected errors of a memory controller in half an hour.
    CORRECTED_ERRORS = 'corrected_errors'
    #: Uncorrected ones since the host was booted.
    UNCORRECTED_ERRORS = 'uncorrected_errors'
    #: What a PCIe link lacks of the bandwidth that both of its ends have.
    LINK_LOSS = 'link_loss'


#: The values of each unit. A quantity that the host does not report is
#: missing.
Values = Mapping[Quantity, Mapping[str, float]]

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


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class HostSample:
    """The state of a host at one moment.

    :ivar time: seconds since 1970; the clock may be set at any time
    :ivar uptime_s: since the host was booted
    :ivar huge_pages: by cell and size in KiB, how many there are and how many
        are free
    :ivar values: counters, in seconds if they are of time, and levels
    """

    time: float
    uptime_s: float
    values: Values
    ksm_pages: int | None = None
    slab_kib: int | None = None
    huge_pages: Mapping[tuple[str, ...], tuple[int, int]] = (
        dataclasses.field(default_factory=dict))


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

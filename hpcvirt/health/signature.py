# SPDX-License-Identifier: Apache-2.0

"""Samples of a host, and how much they look like a slow node.

A sample has the counters and levels of one moment, unit by unit. A unit is
what can be slow by itself: a CPU, a guest, a memory controller, a device. Sums
over a whole host hide one slow unit among many. There are no rates for an
interval that is too long or not positive. A counter that became smaller, or a
unit that came or went, has no rate in this interval.

A unit has a score for each sign: the least of its quantities, each divided by
its limit. At 1 it is at all limits. The sustained score is what the unit
reached for at least ten of the last thirty minutes. A burst therefore does not
count, but a fault that keeps coming and going does. The score of a host is
that of its worst unit.

Whether a score is a reason for quarantine is not decided here, but by
:mod:`hpcvirt.health.supervision`, which knows what is usual for the host and
its class.
"""

import collections
import dataclasses
import enum
import math
import typing
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


#: For how long a unit must have reached its sustained score, within how long.
SUSTAINED_S = 600.0
WINDOW_S = 1800.0

#: Lower scores are 0: they decide nothing.
MIN_SCORE = 0.5

#: A sign without a published source, and one of the sums over many CPUs, must
#: last for longer: it may also be a backup, a hot afternoon or a burst.
LONG_S = 3600.0


@dataclasses.dataclass(frozen=True)
class Sign:
    """A sign of slowness.

    :ivar limits: of all quantities that must be over them
    :ivar of_host: whether they are limits of the host as a whole; sums over
        its CPUs then have limits that grow with the CPUs over 128
    :ivar on_s: how long the sustained score must be over its limit
    :ivar source: the key of a document of the bibliography; None if the
        limits are a choice of this program
    """

    name: str
    limits: Mapping[Quantity, float]
    of_host: bool = False
    on_s: float = LONG_S
    source: str | None = None


#: The published hosts had 32 CPUs, 30 to 50 % system load, over 100,000
#: interrupts per second, most of them TLB shoot-downs, 20 to 30 % iowait while
#: they swapped, and 1.2 of 64 GB in unreclaimable slab [CERN-HEPiX-2015]. The
#: document does not say how many pages they swapped. Load and interrupts
#: fluctuate: the limits are four fifths of the lower end. The same totals on
#: more CPUs may be a burst of a healthy host, and must last for longer.
_LOWER_END = 0.8
_CPUS = 32

#: Hosts of this size and below have the same limits.
_LARGE = 128

SIGNS = (
    Sign('shootdowns', {Quantity.SYSTEM: _LOWER_END * 0.30 * _CPUS,
                        Quantity.INTERRUPTS: _LOWER_END * 100_000,
                        Quantity.SHOOTDOWNS: _LOWER_END * 50_000},
         of_host=True, source='CERN-HEPiX-2015'),
    Sign('cpu-shootdowns',
         {Quantity.SYSTEM: _LOWER_END * 0.30,
          Quantity.SHOOTDOWNS: _LOWER_END * 50_000 / _CPUS},
         on_s=0.0, source='CERN-HEPiX-2015'),
    Sign('swapping', {Quantity.IOWAIT: _LOWER_END * 0.20 * _CPUS,
                      Quantity.SWAPPED: 100.0},
         of_host=True, on_s=0.0, source='CERN-HEPiX-2015'),
    Sign('slab', {Quantity.SLAB: 1.2 / 64},
         of_host=True, on_s=0.0, source='CERN-HEPiX-2015'),
    Sign('guest-swapping', {Quantity.MAJOR_FAULTS: 100.0}),
    Sign('foreign-tasks', {Quantity.FOREIGN_TASKS: 0.20}),
    Sign('interrupts', {Quantity.INTERRUPTS: 15_000.0}),
    Sign('steal', {Quantity.STEAL: 0.10}),
    # Heavy AVX-512 takes up to a third below the base frequency.
    Sign('frequency', {Quantity.SLOWDOWN: 0.40}),
    # 2 % of the time.
    Sign('throttling', {Quantity.THROTTLED_S: 0.02 * RARE_S}),
    Sign('memory-errors', {Quantity.CORRECTED_ERRORS: 10.0}),
    Sign('uncorrected-errors', {Quantity.UNCORRECTED_ERRORS: 1.0}, on_s=0.0),
    Sign('link', {Quantity.LINK_LOSS: 0.20}),
)


class SignScore(typing.NamedTuple):
    """The sustained score of a host for a sign, and the unit that has it."""

    score: float
    unit: str


#: The scores of each host by sign; what is not known is missing.
Readings = Mapping[str, Mapping[str, SignScore]]


def score_units(sign: Sign, found: Values, cpus: int,
                ) -> dict[str, float] | None:
    """Score the units of a host for a sign; None if that is not known."""
    limits = {name: limit * max(1.0, cpus / _LARGE)
              if sign.of_host and name in CPU_SUMS else limit
              for name, limit in sign.limits.items()}
    if not limits.keys() <= found.keys():
        return None
    return {unit: min(found[name].get(unit, 0.0) / limit
                      for name, limit in limits.items())
            for unit in found[next(iter(limits))]
            if (unit == HOST) is sign.of_host}


class UnitScores:
    """The scores of the units of a host for one sign, in the last half hour.

    A unit without a score, such as a guest that has ended, has the score 0.
    """

    def __init__(self) -> None:
        #: The end and the length of each interval, and what was reached.
        self._past: collections.deque[
            tuple[float, float, Mapping[str, float]]] = collections.deque()

    def add(self, now_s: float, length_s: float,
            scores: Mapping[str, float]) -> None:
        """Add the scores of an interval that ends now."""
        self._past.append((now_s, length_s, {
            unit: score for unit, score in scores.items()
            if score >= MIN_SCORE}))
        while self._past[0][0] <= now_s - WINDOW_S:
            self._past.popleft()

    def find_worst(self) -> SignScore:
        """Find the unit with the highest sustained score.

        :returns: the host with 0 if no unit has one
        """
        observed_s = sum(length for _, length, _ in self._past)
        # Intervals are of about the same length.
        number = math.ceil(SUSTAINED_S * len(self._past) / observed_s)
        reached: dict[str, list[float]] = collections.defaultdict(list)
        for *_, scores in self._past:
            for unit, score in scores.items():
                reached[unit].append(score)
        return max((SignScore(sorted(past)[-number], unit)
                    for unit, past in reached.items() if len(past) >= number),
                   default=SignScore(0.0, HOST))

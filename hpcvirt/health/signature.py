# SPDX-License-Identifier: Apache-2.0

"""Decide by the rates of a host whether it has become a slow node.

A host shows a sign of slowness while all quantities of the sign are over their
limits. A sign with a published source comes on after ten minutes. Any other
sign comes on after two hours, because it may also be a backup or a hot
afternoon. A sign goes off when one of its quantities has been well below its
limit for half an hour. In between, and while the quantities are unknown,
nothing changes. A burst therefore does not put a host in quarantine, and one
quiet minute does not release it.

A class of hosts may have more of something than the published hosts, such as
interrupts of its network cards, without being slow. The limit of a quantity
can therefore be learned from recorded samples of the class: it is the median
of all samples plus six times their deviation, which a few slow hosts hardly
change. Learning never lowers a limit.
"""

import dataclasses
import statistics
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.health import host_sample
from hpcvirt.health import rates
from hpcvirt.health.rates import Quantity

SCHEMA_VERSION = 1

#: How long a sign must last before it comes on: with a source, and without.
ON_S = 600.0
LONG_S = 7200.0

#: How long a quantity must be low before a sign goes off.
OFF_S = 1800.0

#: The fraction of a limit below which a quantity is well below it.
WELL_BELOW = 0.7


@dataclasses.dataclass(frozen=True)
class Sign:
    """A sign of slowness.

    :ivar limits: of all quantities that must be over them
    :ivar words: describes the host, with placeholders for quantities
    :ivar on_s: how long it must last
    :ivar source: the key of a document of the bibliography; None if the
        limits are a choice of this program
    """

    name: str
    limits: Mapping[Quantity, float]
    words: str
    on_s: float = LONG_S
    source: str | None = None


#: The published hosts had 32 CPUs, 30 to 50 % system load, over 100,000
#: interrupts per second, most of them TLB shoot-downs, 20 to 30 % iowait while
#: they swapped, and 1.2 of 64 GB in unreclaimable slab [CERN-HEPiX-2015]. The
#: document does not say how many pages they swapped. The signs after these
#: three have no source: their limits were chosen so that the noise of
#: benchmarks/slow_nodes.py stays below them.
SIGNS = (
    Sign('shootdowns',
         {Quantity.SYSTEM: 0.30, Quantity.INTERRUPTS: 100_000 / 32,
          Quantity.SHOOTDOWNS: 50_000 / 32},
         'system time {system:.0%}, {interrupts:.0f} interrupts per second '
         'and CPU, of them {shootdowns:.0f} TLB shoot-downs', ON_S,
         'CERN-HEPiX-2015'),
    Sign('swapping', {Quantity.IOWAIT: 0.20, Quantity.SWAPPED: 100.0},
         'iowait {iowait:.0%} and {swapped:.0f} pages swapped per second',
         ON_S, 'CERN-HEPiX-2015'),
    Sign('slab', {Quantity.SLAB: 0.02},
         'unreclaimable slab has grown by {slab:.1%} of the memory',
         ON_S, 'CERN-HEPiX-2015'),
    Sign('foreign-tasks', {Quantity.FOREIGN_TASKS: 0.20},
         'foreign tasks take {foreign_tasks:.0%} of the dedicated CPUs'),
    Sign('steal', {Quantity.STEAL: 0.10}, 'steal time {steal:.0%}'),
    Sign('memory-errors', {Quantity.ERRORS: 1.0},
         '{errors:.0f} corrected memory errors per minute'),
    Sign('throttling', {Quantity.THROTTLES: 1.0},
         'CPUs throttled {throttles:.1f} times per minute'),
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SignProgress:
    """The progress of a sign towards coming on or going off.

    :ivar over_s: how long it has lasted
    :ivar below_s: how long it has been gone
    :ivar words: what the host did when the sign came on
    """

    over_s: float = 0.0
    below_s: float = 0.0
    on: bool = False
    words: str = ''


@dataclasses.dataclass(frozen=True, kw_only=True)
class HostHealth:
    """The state of the watch over a host; it outlives the program.

    :ivar last: the last sample
    :ivar slab_kib: the least unreclaimable slab since the host was booted
    :ivar observed_s: for how long the host was observed
    :ivar signs: by name
    :ivar held: whether the host was put in quarantine; None if that is not
        known
    """

    schema_version: int = SCHEMA_VERSION
    last: host_sample.HostSample | None = None
    slab_kib: int | None = None
    observed_s: float = 0.0
    signs: Mapping[str, SignProgress] = dataclasses.field(default_factory=dict)
    held: bool | None = None

    @property
    def reason(self) -> str:
        """Say what is wrong with the host; empty if nothing is."""
        return '; '.join(progress.words for progress in self.signs.values()
                         if progress.on)

    @property
    def wanted(self) -> bool | None:
        """Whether the host belongs in quarantine; None if it is too early.

        If it is not known whether the host is in quarantine, it is not
        released before it was observed for as long as a sign needs to go.
        """
        if self.reason:
            return True
        return (False if self.held is not None or self.observed_s >= OFF_S
                else None)


def follow(state: HostHealth, sample: host_sample.HostSample,
           signs: Sequence[Sign] = SIGNS) -> tuple[HostHealth, rates.Rates]:
    """Take a sample into account.

    :returns: the new state, and the rates since the last sample
    """
    last = state.last
    rebooted = last is None or last.boot_id != sample.boot_id
    known = [value for value in (None if rebooted else state.slab_kib,
                                 sample.slab_kib) if value is not None]
    slab_kib = min(known, default=None)
    length = None if last is None else rates.seconds(last, sample)
    found: rates.Rates = {}
    progress = dict(state.signs)
    if last is not None and length is not None:
        found = rates.compute_rates(last, sample, slab_kib)
        progress = {sign.name: _advance(
            sign, state.signs.get(sign.name, SignProgress()), found, length)
            for sign in signs}
    elif rebooted:
        # Earlier faults may be over; that takes time to be seen.
        progress = {name: dataclasses.replace(each, over_s=0.0, below_s=0.0)
                    for name, each in progress.items()}
    return dataclasses.replace(
        state, last=sample, slab_kib=slab_kib, signs=progress,
        observed_s=state.observed_s + (length or 0.0)), found


def _advance(sign: Sign, before: SignProgress, found: rates.Rates,
             length: float) -> SignProgress:
    values = [(found.get(name), limit)
              for name, limit in sign.limits.items()]
    if any(value is not None and value < WELL_BELOW * limit
           for value, limit in values):
        below_s = before.below_s + length
        on = before.on and below_s < OFF_S
        return SignProgress(below_s=below_s, on=on,
                            words=before.words if on else '')
    if all(value is not None and value >= limit for value, limit in values):
        over_s = before.over_s + length
        if before.on or over_s < sign.on_s:
            return dataclasses.replace(before, over_s=over_s, below_s=0.0)
        return SignProgress(over_s=over_s, on=True,
                            words=sign.words.format(**{
                            name.value: value
                            for name, value in found.items()}))
    return before


#: Deviations over the median that are still usual.
DEVIATIONS = 6.0

#: What makes the median absolute deviation comparable with the standard
#: deviation of a normal distribution.
_TO_SIGMA = 1.4826

#: Fewer samples say too little about what is usual.
MIN_SAMPLES = 100


def learn_signs(recordings: Iterable[Sequence[host_sample.HostSample]],
                ) -> tuple[Sign, ...]:
    """Raise the limits to what is usual for a class of hosts.

    :param recordings: the samples of each host of the class
    """
    seen: dict[rates.Quantity, list[float]] = {}
    for recording in recordings:
        state = HostHealth()
        for sample in recording:
            state, found = follow(state, sample, ())
            for name, value in found.items():
                seen.setdefault(name, []).append(value)
    usual = {name: _most(values) for name, values in seen.items()
             if len(values) >= MIN_SAMPLES}
    return tuple(dataclasses.replace(sign, limits={
        name: max(limit, usual.get(name, 0.0))
        for name, limit in sign.limits.items()}) for sign in SIGNS)


def _most(values: Sequence[float]) -> float:
    median = statistics.median(values)
    deviation = statistics.median(abs(value - median) for value in values)
    return median + DEVIATIONS * _TO_SIGMA * deviation

# SPDX-License-Identifier: Apache-2.0

"""Watch a host: take and score samples, export the scores, survive failures.

Nothing is decided here, and no cloud is reached: a compute host holds no
account.
"""

import collections
import threading
from collections.abc import Callable
from collections.abc import Mapping

from hpcvirt import exception
from hpcvirt.health import sampler
from hpcvirt.health import signature
from hpcvirt.health.signature import Quantity

#: What reports a quantity, for those that many hosts do not know.
_SOURCES = {
    Quantity.FOREIGN_TASKS: 'no CPUs are isolated or without a timer tick; '
                            'name those of guests with --dedicated',
    Quantity.SLOWDOWN: 'cpufreq shows no frequency, or no nominal one',
    Quantity.THROTTLED_S: 'the kernel counts no throttled time',
    Quantity.CORRECTED_ERRORS: 'no EDAC driver is loaded',
    Quantity.UNCORRECTED_ERRORS: 'no EDAC driver is loaded',
    Quantity.LINK_LOSS: 'no device shows a PCIe link',
    Quantity.SHOOTDOWNS: 'the processor does not count TLB shoot-downs',
}


class HostWatch:
    """The host that is watched.

    :ivar latest: the last sample, if any
    :ivar scores: the sustained score of each sign and its unit; a sign that
        is not known is missing
    :ivar worst: what that unit did since the sample before, by sign; if
        there is none, the worst unit of that time
    """

    def __init__(self, complain: Callable[[str], None]) -> None:
        """Watch a host from now on.

        :param complain: prints a line about what failed, or is not known
        """
        self._complain = complain
        self._samples: collections.deque[signature.HostSample] = (
            collections.deque())
        self._histories = {sign.name: signature.UnitScores()
                           for sign in signature.SIGNS}
        self._observed_s = 0.0
        self.latest: signature.HostSample | None = None
        self.scores: Mapping[str, signature.SignScore] = {}
        self.worst: Mapping[str, Mapping[Quantity, float]] = {}

    def run(self, source: sampler.HostSampler, interval_s: float,
            stop: threading.Event, export: Callable[[], None]) -> None:
        """Take samples until the end; one that fails is left out.

        :param export: called after each sample
        """
        while True:
            try:
                self.take(source.take())
                export()
            except exception.HpcvirtError as exc:
                self._complain(str(exc))
            if stop.wait(interval_s):
                return

    def take(self, sample: signature.HostSample) -> None:
        """Score a sample."""
        if self.latest is None:
            self._say_unknown(sample)
        before, self.latest = self.latest, sample
        self._samples.append(sample)
        while sample.uptime_s - self._samples[0].uptime_s > signature.RARE_S:
            self._samples.popleft()
        if before is not None and (found := signature.compute_rates(
                self._samples[0], before, sample)):
            self.score(sample.uptime_s, sample.uptime_s - before.uptime_s,
                       found)

    def score(self, now_s: float, length_s: float,
              found: signature.Values) -> None:
        """Score the rates of an interval that ends now."""
        cpus = len(found.get(Quantity.BUSY, ()))
        self._observed_s += length_s
        scores, worst = {}, {}
        for sign in signature.SIGNS:
            units = signature.score_units(sign, found, cpus)
            if units is None:
                continue
            history = self._histories[sign.name]
            history.add(now_s, length_s, units)
            score = history.find_worst()
            unit = score.unit or max(units, key=lambda each: units[each],
                                     default=signature.HOST)
            worst[sign.name] = {
                name: found[name][unit] for name in sign.limits
                if unit in found[name]}
            # Until then a healthy host cannot be told from a slow one.
            if self._observed_s >= signature.SUSTAINED_S:
                scores[sign.name] = score
        self.scores, self.worst = scores, worst

    def _say_unknown(self, sample: signature.HostSample) -> None:
        for sign in signature.SIGNS:
            missing = [name for name in sign.limits
                       if name not in sample.values]
            if missing:
                self._complain(f'{sign.name} cannot be known here: '
                               + _SOURCES.get(missing[0], missing[0]))

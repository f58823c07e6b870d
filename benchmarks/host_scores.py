# SPDX-License-Identifier: Apache-2.0

"""Compute the scores of ``hpcvirt host watch`` for many minutes at once.

The program scores minute by minute, which is slow for hundreds of days of
hosts with hundreds of CPUs. A test compares these scores with the program's.
"""

import math
from collections.abc import Iterator

import host_rates
import numpy

from hpcvirt.health import signature
from hpcvirt.health.signature import HOST

_MINUTES = int(signature.WINDOW_S / host_rates.INTERVAL_S)
_SUSTAINED = int(signature.SUSTAINED_S / host_rates.INTERVAL_S)

#: The scores of a minute by sign.
Scores = dict[str, signature.SignScore]

NOTHING: Scores = {sign.name: signature.SignScore(0.0, HOST)
                   for sign in signature.SIGNS}


class HostScores:
    """The scores of a host, which continue from call to call."""

    def __init__(self, cpus: int) -> None:
        self._limits = {sign.name: _find_limits(sign, cpus)
                        for sign in signature.SIGNS}
        #: What the units reached in the last half hour, by sign.
        self._past: dict[str, numpy.ndarray] = {}
        self._observed = 0

    def score(self, arrays: host_rates.Arrays) -> list[Scores]:
        """Score some minutes."""
        minutes = len(next(iter(arrays.values())))
        found = [NOTHING] * minutes
        for number in range(min(minutes, _SUSTAINED - 1 - self._observed)):
            found[number] = {}
        self._observed = min(_SUSTAINED, self._observed + minutes)
        for sign in signature.SIGNS:
            for minute, score in self._score_sign(sign, arrays):
                if found[minute] is NOTHING:
                    found[minute] = dict(NOTHING)
                found[minute][sign.name] = score
        return found

    def _score_sign(self, sign: signature.Sign, arrays: host_rates.Arrays,
                    ) -> Iterator[tuple[int, signature.SignScore]]:
        """Yield the minutes in which the sustained score is not 0."""
        units = [HOST]
        scores = numpy.array(math.inf)
        for quantity, limit in self._limits[sign.name].items():
            values = arrays[quantity]
            if values.ndim == 1:
                units = [HOST if sign.of_host else host_rates.UNITS[quantity]]
                values = values[:, None]
            elif sign.of_host:
                values = values.sum(axis=1, keepdims=True)
            else:
                units = [f'cpu{cpu}' for cpu in range(values.shape[1])]
            scores = numpy.minimum(scores, values / limit)
        scores[scores < signature.MIN_SCORE] = 0.0
        past = self._past.get(sign.name, numpy.zeros(
            (_MINUTES - 1, len(units))))
        scores = numpy.concatenate((past, scores))
        self._past[sign.name] = scores[1 - _MINUTES:]
        # In most minutes, no unit was over the least score for long enough.
        counts = numpy.cumsum(scores > 0, axis=0, dtype=numpy.int32)
        counts[_MINUTES:] -= counts[:-_MINUTES].copy()
        lasting = counts[_MINUTES - 1:] >= _SUSTAINED
        columns = numpy.nonzero(lasting.any(axis=0))[0]
        rows = numpy.nonzero(lasting.any(axis=1))[0]
        if not len(rows):
            return
        best = numpy.zeros((len(rows), len(columns)))
        for place, column in enumerate(columns):
            windows = numpy.lib.stride_tricks.sliding_window_view(
                scores[:, column], _MINUTES)[rows]
            best[:, place] = numpy.partition(
                windows, _MINUTES - _SUSTAINED, axis=1)[
                    :, _MINUTES - _SUSTAINED]
        names = [units[column] for column in columns]
        for row, values in zip(rows.tolist(), best, strict=True):
            most = values.max()
            yield row, signature.SignScore(float(most), max(
                names[place] for place in numpy.nonzero(values == most)[0]))


def _find_limits(sign: signature.Sign, cpus: int) -> dict:
    """Return the limits of a sign, which the program scales to the host."""
    unit = HOST if sign.of_host else 'unit'
    found = {}
    for name in sign.limits:
        scores = signature.score_units(sign, {
            other: {unit: 1.0 if other is name else math.inf}
            for other in sign.limits}, cpus)
        found[name] = 1.0 / scores[unit]
    return found

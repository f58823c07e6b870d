# SPDX-License-Identifier: Apache-2.0

"""Add the pairs of earlier attempts on the same subject to those of a run.

If a run is repeated until its verdict is welcome, the verdict will be wrong
sooner or later. Therefore a run does not replace earlier measurements of the
same subject (:mod:`hpcvirt.bench.run.identity`). Its pairs are added to those
of the earlier attempts, and all of them are judged together. The first verdict
is that of a single run. All later verdicts share RESERVE, a further part of
the chance of an error: the second takes one half of it, the third one sixth,
the fourth one twelfth, and so on. For any noise and any number of attempts,
the chances add up to less than the promised 5 %.
"""

import collections
import dataclasses
from collections.abc import Iterator
from collections.abc import Sequence

from hpcvirt.bench.analysis import sample_pairs
from hpcvirt.bench.analysis import stats
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import record

#: The most earlier attempts whose pairs count. A decision needs fewer; without
#: a limit, a host that is measured every day would collect ever more of them.
MAX_ATTEMPTS = record.KNOWN_ATTEMPTS // 2

#: The chance of a false PASS, and of a false FAIL, of all attempts except the
#: first.
RESERVE = 0.0075

_ORDINALS = dict(enumerate((
    'first', 'second', 'third', 'fourth', 'fifth', 'sixth', 'seventh',
    'eighth', 'ninth', 'tenth')))
_COUNTS = dict(enumerate((
    'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine',
    'ten'), 1))


@dataclasses.dataclass(frozen=True)
class Evidence:
    """What a run is judged by.

    :ivar run: the run, with the pairs of the earlier attempts before its own
    :ivar share: the share of a single run's chance of an error
    :ivar before: number of pairs of the earlier attempts
    :ivar failed: numbers of native and of guest samples that failed in the
        earlier attempts and belong to no pair
    """

    run: record.Run
    share: float = 1.0
    before: int = 0
    failed: tuple[int, int] = (0, 0)


def gather(run: record.Run) -> Evidence:
    """Add the pairs of earlier attempts to those of a run.

    Only complete and valid pairs count, and only those of attempts that ran
    the same thing according to their outputs. If the verdict is about one
    launch of the guest, only pairs of that launch count. Failed samples count
    as stragglers; otherwise a guest with some hanging jobs would pass if it is
    measured until none hangs. An attempt after which there were enough pairs
    for a verdict uses up its part of the errors, even if it was interrupted.
    """
    own = next((sample for sample in run.samples if not sample.warm_up), None)
    if own is None or run.purpose is record.Purpose.UNPAIRED:
        return Evidence(run)
    boots = {'', *map(_boot, run.samples)} if run.of_launch else set()
    samples: list[record.Sample] = []
    failed_sides: list[record.Side] = []
    pairs = 0
    verdicts = run.omitted + len(run.earlier[:-MAX_ATTEMPTS])
    for attempt in run.earlier[-MAX_ATTEMPTS:]:
        found = [(native, guest) for native, guest in _pairs(attempt, own)
                 if not boots or _boot(guest) in boots]
        for number, both in enumerate(found, pairs):
            samples += [dataclasses.replace(sample, pair=number)
                        for sample in both]
        pairs += len(found)
        verdicts += bool(found) and pairs >= sample_pairs.MIN_PAIRS
        failed_sides += [sample.side for sample in attempt.samples
                         if not sample.outcome.valid
                         and (not boots or _boot(sample) in boots)]
    failed = (failed_sides.count(record.Side.NATIVE),
              failed_sides.count(record.Side.GUEST))
    if not pairs:
        return Evidence(run, failed=failed)
    samples += [sample if sample.warm_up else
                dataclasses.replace(sample, pair=pairs + sample.pair)
                for sample in run.samples]
    return Evidence(
        dataclasses.replace(run, samples=tuple(samples), earlier=(),
                            planned_pairs=pairs + run.planned_pairs),
        share(verdicts + 1), pairs, failed)


def share(number: int) -> float:
    """Return the share of the errors that a verdict takes.

    :param number: the number of the verdict on this subject, from 1
    :returns: the share of the errors of a single run
    """
    if number == 1:
        return 1.0
    return RESERVE / stats.ALPHA / (number * (number - 1))


def list_attempts(run: record.Run) -> Iterator[record.Run]:
    """Yield the latest attempts on the subject of a run, as runs."""
    first = len(run.earlier[:-MAX_ATTEMPTS])
    for number, attempt in enumerate(run.earlier[first:], first):
        yield dataclasses.replace(
            run, id=attempt.id, samples=attempt.samples,
            planned_pairs=attempt.planned_pairs,
            started_at=attempt.started_at, earlier=run.earlier[:number])


def describe_attempt(earlier: Sequence[judgement.VerdictResult],
                     omitted: int = 0) -> str:
    """Describe which attempt this is, and how the earlier ones ended.

    :param earlier: the results of earlier attempts, at least one, oldest first
    :param omitted: number of attempts before these
    """
    nth = name(omitted + len(earlier))
    if omitted:
        nth += f'; of the last {len(earlier)}'
    elif len(earlier) == 1:
        return f'{nth}; the first was {earlier[0]}'
    counts = ', '.join(
        f'{_COUNTS.get(count, count)} {"was" if count == 1 else "were"} {word}'
        for word, count in collections.Counter(earlier).items())
    return f'{nth}{"," if omitted else ";"} {counts}'


def name(earlier: int) -> str:
    """Name an attempt: ``third attempt``.

    :param earlier: number of attempts before it
    """
    return f'{_ORDINALS.get(earlier, f"{earlier + 1}th")} attempt'


def _boot(sample: record.Sample) -> str:
    """Return the boot id of a guest sample, empty for a native one."""
    return (sample_pairs.boot(sample.environment)
            if sample.side is record.Side.GUEST else '')


def _pairs(attempt: record.Attempt,
           own: record.Sample) -> list[tuple[record.Sample, record.Sample]]:
    """Return the pairs of an attempt that count."""
    sides: dict[record.Side, dict[int, record.Sample]] = {
        side: {} for side in record.Side}
    for sample in attempt.samples:
        if (sample.outcome.valid and not sample.control
                and sample.pair < attempt.planned_pairs
                and sample_pairs.disagreement((own, sample)) is None):
            sides[sample.side][sample.pair] = sample
    native, guest = sides[record.Side.NATIVE], sides[record.Side.GUEST]
    return [(native[pair], guest[pair])
            for pair in sorted(native.keys() & guest.keys())]

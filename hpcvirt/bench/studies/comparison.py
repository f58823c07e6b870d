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

"""What a site measured, beside what a study published.

The newest run of each benchmark on each host counts. A figure that the study
averages is averaged as it was there: slowdowns (guest / native of a time, or
native / guest of a rate), by their arithmetic mean. A free benchmark that
stands in for the study's keeps its own figures; its ratio is turned to the
direction of the published one.
"""

import dataclasses
import math
import statistics
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence

from hpcvirt.bench.analysis import bounds
from hpcvirt.bench.analysis import sample_pairs
from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record
from hpcvirt.bench.studies import preconditions
from hpcvirt.bench.studies import study

#: A study's unit by the program's own.
FACTORS = {('Tflop/s', 'Gflop/s'): 1000.0}


@dataclasses.dataclass(frozen=True)
class Part:
    """One of several figures: a kernel of an average, a message size.

    :ivar size_bytes: the message size, None for another part
    :ivar interval: in the part's own direction, None if it has none
    """

    name: str
    unit: str
    direction: outcome.Direction
    native: float | None
    guest: float | None
    interval: judgement.Interval | None
    size_bytes: int | None = None


@dataclasses.dataclass(frozen=True)
class Own:
    """What one host of the site did.

    :ivar benchmark: with its variant, and ``cold`` if its guest was
    :ivar stand_in: it is not the benchmark of the study
    :ivar native: None for what is made of parts
    :ivar interval: in the direction of the published figure
    :ivar pairs: the fewest of any part
    :ivar parts: what was averaged; empty for a single figure
    :ivar reason: why there is no ratio, or what is missing of it
    :ivar unmet: what was not as the case wants it
    """

    host: str
    shape: str
    benchmark: str
    stand_in: bool
    started_at: str
    unit: str
    pairs: int = 0
    native: float | None = None
    guest: float | None = None
    interval: judgement.Interval | None = None
    parts: tuple[Part, ...] = ()
    reason: str = ''
    unmet: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Beside:
    """A published figure with the site's own.

    :ivar row: None for a case of which the study prints no figure
    :ivar own: empty if the site has not run it
    """

    case: study.Case
    row: study.Row | None
    own: tuple[Own, ...]


def compare(made: study.Study,
            runs: Iterable[record.Run]) -> tuple[Beside, ...]:
    """Put the runs of a study beside its figures.

    :param runs: any; those of other studies are passed over
    :returns: the rows in their order, then the cases that have none
    """
    cases = {case.id: case for case in made.cases}
    ours: dict[str, list[record.Run]] = {name: [] for name in cases}
    for run in _newest(run for run in runs if run.study == made.id
                       and run.purpose is not record.Purpose.AA):
        # A guest in the other state is another question.
        if run.case in cases and (
                cases[run.case].launch in ('', run.launch)):
            ours[run.case].append(run)
    found = [Beside(cases[row.case], row,
                    tuple(_of_row(cases[row.case], row, ours[row.case])))
             for row in made.rows]
    shown = {row.case for row in made.rows}
    found += [Beside(case, None, tuple(_plain(ours[case.id])))
              for case in made.cases if case.id not in shown]
    return tuple(found)


def _newest(runs: Iterable[record.Run]) -> Iterator[record.Run]:
    """One run of each question: the newest that has a ratio, if any has."""
    newest: dict[tuple[str | None, ...], record.Run] = {}
    for run in sorted(runs, key=lambda run: (
            any(made.interval for made in verdict.describe(run)),
            run.started_at)):
        newest[run.case, run.launch, run.host, run.shape, run.benchmark,
               run.variant] = run
    yield from sorted(newest.values(), key=lambda run: (
        run.host, run.shape, run.benchmark, run.variant, _cold(run)))


def _of_row(case: study.Case, row: study.Row,
            runs: Sequence[record.Run]) -> Iterator[Own]:
    fitting = [run for run in runs if _stands_for(case, row, run)]
    if row.benchmark not in catalogue.FAMILIES:
        for run in fitting:
            yield _single(row, run)
        return
    hosts: dict[tuple[str, str, bool], list[record.Run]] = {}
    for run in fitting:
        hosts.setdefault((run.host, run.shape, _cold(run)), []).append(run)
    for together in hosts.values():
        yield _average(case, row, together)


def _stands_for(case: study.Case, row: study.Row, run: record.Run) -> bool:
    if row.benchmark in (run.benchmark,
                         catalogue.get(run.benchmark).parser):
        return True
    return any(use.benchmark == row.benchmark
               and run.benchmark in use.instead for use in case.uses)


def _single(row: study.Row, run: record.Run) -> Own:
    """A figure of one run, or the mean over its message sizes."""
    found = [made for made in verdict.describe(run)
             if _wanted(row, made.metric)]
    if not found:
        found = list(_primary(run))
    blank = _blank(run, run.benchmark != row.benchmark)
    if not found:
        return _without(blank, run)
    if bounds.split(found[0].metric)[1] is None:
        return _figure(blank, found[0], row)
    found = [made for made in found
             if _in_range(row, bounds.split(made.metric)[1] or 0)]
    parts = tuple(_part(made.metric, made) for made in found)
    turned = [_turned(part.interval, part.direction, row.direction)
              for part in parts if part.interval]
    if not turned or len(turned) < len(parts):
        return dataclasses.replace(
            blank, parts=parts, pairs=min(
                (made.pairs for made in found), default=0),
            reason=next((made.reason for made in found
                         if made.reason), None) or 'no such message size')
    # Sizes are measured together: their errors may all go one way.
    return dataclasses.replace(
        blank, parts=parts, unit=parts[0].unit,
        pairs=min(made.pairs for made in found),
        interval=judgement.Interval(
            statistics.fmean(one.ratio for one in turned),
            statistics.fmean(one.low for one in turned),
            statistics.fmean(one.high for one in turned)))


def _average(case: study.Case, row: study.Row,
             runs: Sequence[record.Run]) -> Own:
    """The mean slowdown of several benchmarks of one host.

    Its interval is that of a sum of independent figures, each known within
    limits of its own [Zou-Donner-2008].
    """
    parts, turned, pairs = [], [], []
    for run in runs:
        made = next(_primary(run), None)
        if made is None or made.interval is None:
            continue
        parts.append(_part(f'{run.benchmark} {run.variant}', made))
        turned.append(_turned(made.interval, made.direction, row.direction))
        pairs.append(made.pairs)
    blank = dataclasses.replace(
        _blank(runs[0], False), benchmark=_label(row.benchmark, runs[0]),
        unmet=preconditions.unmet(*runs))
    if not parts:
        return _without(blank, runs[0])
    mean = statistics.fmean(one.ratio for one in turned)
    below = math.hypot(*(one.ratio - one.low for one in turned))
    above = math.hypot(*(one.high - one.ratio for one in turned))
    reason = blank.reason
    if len(parts) < len(case.uses):
        reason = f'{len(parts)} of {len(case.uses)} benchmarks'
    return dataclasses.replace(
        blank, parts=tuple(parts), pairs=min(pairs), reason=reason,
        interval=judgement.Interval(mean, mean - below / len(parts),
                                    mean + above / len(parts)))


def _plain(runs: Iterable[record.Run]) -> Iterator[Own]:
    """The figures of a case without published ones."""
    for run in runs:
        blank = _blank(run, False)
        figures: dict[str, list[judgement.Judgement]] = {}
        for made in _primary(run):
            figures.setdefault(bounds.split(made.metric)[0], []).append(made)
        if not figures:
            yield _without(blank, run)
        for found in figures.values():
            if bounds.split(found[0].metric)[1] is None:
                yield _figure(blank, found[0], None)
            else:
                yield dataclasses.replace(
                    blank, unit=found[0].unit,
                    pairs=min(made.pairs for made in found),
                    parts=tuple(_part(made.metric, made) for made in found))


def _primary(run: record.Run) -> Iterator[judgement.Judgement]:
    """What the benchmark is known by."""
    primary = {figure.name for figure in catalogue.get(run.benchmark).metrics
               if figure.primary}
    for made in verdict.describe(run):
        if bounds.split(made.metric)[0] in primary:
            yield made


def _wanted(row: study.Row, metric: str) -> bool:
    return bounds.split(metric)[0] == row.metric


def _in_range(row: study.Row, size: int) -> bool:
    if row.below_bytes is not None and size >= row.below_bytes:
        return False
    return row.from_bytes is None or size >= row.from_bytes


def _blank(run: record.Run, stand_in: bool) -> Own:
    unpaired = run.purpose is record.Purpose.UNPAIRED
    return Own(run.host, run.shape,
               _label(f'{run.benchmark} {run.variant}', run), stand_in,
               run.started_at, '',
               reason='unpaired' if unpaired else '',
               unmet=preconditions.unmet(run))


def _label(name: str, run: record.Run) -> str:
    return f'{name} cold' if _cold(run) else name


def _cold(run: record.Run) -> bool:
    return run.launch is record.Launch.COLD


def _without(blank: Own, run: record.Run) -> Own:
    return dataclasses.replace(
        blank, reason=sample_pairs.invalid(run) or 'has no such figure')


def _figure(blank: Own, made: judgement.Judgement,
            row: study.Row | None) -> Own:
    factor = FACTORS.get((made.unit, row.unit)) if row else None
    interval = made.interval
    if interval and row:
        interval = _turned(interval, made.direction, row.direction)
    return dataclasses.replace(
        blank, unit=row.unit if row and factor else made.unit,
        pairs=made.pairs, native=_times(made.native, factor),
        guest=_times(made.guest, factor), interval=interval,
        reason=blank.reason if interval else made.reason or '')


def _part(name: str, made: judgement.Judgement) -> Part:
    return Part(name, made.unit, made.direction, made.native, made.guest,
                made.interval, bounds.split(made.metric)[1])


def _times(value: float | None, factor: float | None) -> float | None:
    return value if value is None or factor is None else value * factor


def _turned(interval: judgement.Interval, given: outcome.Direction,
            wanted: outcome.Direction) -> judgement.Interval:
    if given is wanted:
        return interval
    return dataclasses.replace(
        interval, ratio=1 / interval.ratio, low=1 / interval.high,
        high=1 / interval.low)

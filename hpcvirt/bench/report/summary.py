# SPDX-License-Identifier: Apache-2.0

"""Write the summary of a report: the verdicts, and the next steps."""

import collections
import dataclasses
import functools
import re
import textwrap
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence

from hpcvirt import text_table
from hpcvirt.bench.analysis import attempts
from hpcvirt.bench.analysis import stats
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import metric_definition
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record
from hpcvirt.bench.report import next_step
from hpcvirt.bench.report import text


@dataclasses.dataclass(frozen=True)
class ReportSubject:
    """The subject of a result, as texts.

    :ivar benchmarks: names with variants, and the programs that the user named
    :ivar flavors: names of flavors or shapes, empty if they are unknown
    :ivar paths: a text for each program or input that the user named
    :ivar machines: CPU, kernel and pages, a text for each side, or one text
        if both are equal
    """

    benchmarks: str
    flavors: str
    hosts: str
    paths: tuple[str, ...]
    machines: tuple[str, ...]


def make_subject(result: record.Result) -> ReportSubject:
    """Describe the subject of a result."""
    samples: list[record.Sample] = []
    flavors: list[str] = []
    paths: list[str] = []
    for run in result.runs:
        samples += run.samples
        flavors.append(run.shape)
        flavors += record.list_facts(run.samples, 'server.flavor')
        paths += [f'{name}: {path}' for name, path in run.paths.items()]
    machines = {side: _machine(sample for sample in samples
                               if sample.side is side) for side in record.Side}
    native, guest = (machines[side] for side in record.Side)
    return ReportSubject(
        _joined(f'{run.benchmark} {run.variant} {run.program}'.rstrip()
                for run in result.runs),
        _joined(flavors),
        _joined(run.host for run in result.runs),
        tuple(dict.fromkeys(paths)),
        (native,) if native and native == guest else tuple(
            f'{side.value}: {text}' for side,
            text in machines.items() if text))


def _machine(samples: Iterable[record.Sample]) -> str:
    samples = list(samples)
    parts = []
    for name, words in (('cpu.model', '{}'), ('kernel', 'kernel {}'),
                        ('pages', '{} pages')):
        found = _joined(record.list_facts(samples, name))
        if found:
            parts.append(words.format(found))
    choices: list[str] = []
    for value in record.list_facts(samples, 'pages.thp'):
        chosen = re.search(r'\[(\w+)\]', value)
        if chosen:
            choices.append(chosen[1])
    thp = _joined(choices)
    if thp:
        parts.append(f'transparent huge pages {thp}')
    return ', '.join(parts)


def _joined(words: Iterable[str]) -> str:
    return ', '.join(word for word in dict.fromkeys(words) if word)


#: Verdicts in the order of the summary: what needs attention comes first.
ORDER = ('FAIL', 'INVALID', 'INCONCLUSIVE', '', 'PASS')
NOT_JUDGED = 'not judged'


@dataclasses.dataclass(frozen=True)
class Shown:
    """One judged result of a report.

    :ivar finished: False while samples are missing
    :ivar continued: a later result includes its evidence
    """

    id: str
    result: record.Result
    started_at: str
    finished: bool
    continued: bool = False

    @functools.cached_property
    def subject(self) -> ReportSubject:
        return make_subject(self.result)

    @property
    def word(self) -> str:
        """The verdict, empty if there is none."""
        verdict = self.result.verdict
        judged = any(run.purpose is not record.Purpose.UNPAIRED
                     for run in self.result.runs)
        return verdict.result.value if verdict and judged else ''

    @property
    def p_pass(self) -> float:
        """The p-value of a PASS: that of its worst figure."""
        verdict = self.result.verdict
        return max((1.0 if each.p_pass is None else each.p_pass for each in (
            verdict.judgements if verdict else ())), default=1.0)

    @property
    def attempt(self) -> str:
        """The attempt, such as ``third attempt``; empty for the first."""
        most = max((run.attempts_before for run in self.result.runs),
                   default=0)
        return attempts.name(most) if most else ''

    @property
    def states(self) -> tuple[str, ...]:
        """What distinguishes the result from a finished first attempt."""
        return tuple(filter(None, (
            self.attempt, '' if self.finished else 'unfinished',
            'continued' if self.continued else '')))

    @functools.cached_property
    def failed(self) -> tuple[str, ...]:
        """The figures that failed, each with its ratio and bound."""
        verdict = self.result.verdict
        return tuple(_failed(verdict.judgements)) if verdict else ()

    @property
    def reason(self) -> str:
        """The reason of the verdict, empty if there is none."""
        verdict = self.result.verdict
        return verdict.reason or '' if verdict and self.word else ''

    @property
    def differences(self) -> tuple[str, ...]:
        """The differences between the sides that may explain a FAIL."""
        verdict = self.result.verdict
        return verdict.differences if verdict and self.word == 'FAIL' else ()

    @functools.cached_property
    def steps(self) -> tuple[tuple[str, str], ...]:
        """The recommended steps: names of figures, and what to do."""
        return tuple(
            (text.abridge([each.metric for each in figures]), step)
            for step, figures in next_step.find_steps(self.result).items())


def lines(shown: Iterable[Shown]) -> list[Shown]:
    """Sort results by verdict, those that need attention first, and by time.

    Attempts come last if a later result includes their evidence.
    """
    newest = sorted(shown, key=lambda each: each.started_at, reverse=True)
    continued: set[str] = set()
    for each in newest:
        for run in each.result.runs:
            continued.update(attempt.id for attempt in run.earlier)
    return sorted((dataclasses.replace(each, continued=all(
        run.id in continued for run in each.result.runs)) for each in newest),
        key=lambda line: (line.continued, ORDER.index(line.word)))


def count(summary: Iterable[Shown]) -> str:
    """Count the verdicts: ``3 results: 1 FAIL, 2 PASS``."""
    summary = list(summary)
    numbers = collections.Counter(
        line.word for line in summary if not line.continued)
    total = sum(numbers.values())
    earlier = len(summary) - total
    words = [f'{numbers[word]} {word or NOT_JUDGED}' for word in ORDER
             if numbers[word]]
    return (f'{total} result{"s" * (total != 1)}: {", ".join(words)}' + (
        f'; {earlier} earlier attempt{"s" * (earlier != 1)}'
        if earlier else ''))


def describe_selection(summary: Iterable[Shown]) -> str:
    """Describe which PASS hold for the best of several hosts or flavors.

    Each result is judged by itself. Choosing the best of several results
    multiplies the chance of a false PASS, and therefore its p-value.

    :returns: empty if only one host and flavor was judged
    """
    judged = [line for line in summary if line.word and not line.continued]
    if len({(line.subject.hosts, line.subject.flavors)
            for line in judged}) < 2:
        return ''
    passed = [line for line in judged if line.word == 'PASS']
    alone = [line.id for line in passed
             if line.p_pass * len(judged) > stats.ALPHA]
    found = (f'each of the {len(judged)} results is judged by itself; the '
             'best of as many guests that are exactly at their bounds passes '
             f'in up to {1 - (1 - stats.PROMISED) ** len(judged):.0%} of all '
             'cases')
    if not passed:
        return found
    return (f'{found}; {len(passed) - len(alone)} of {len(passed)} PASS hold '
            'for the best of them as well' + (
                f', not {text.abridge(alone)}' if alone else ''))


def table(summary: Sequence[Shown], width: int | None) -> str:
    """Draw the summary for a terminal.

    :param width: columns of the terminal, None for no limit
    """
    selection = describe_selection(summary)
    return (f'{count(summary)}\n' + textwrap.fill(
        selection, width or 100, break_long_words=False) + '\n' * bool(
            selection)) + text_table.draw(
        ('Verdict', 'Started', 'Result', 'Benchmark', 'Flavor', 'Host'),
        [(line.word or NOT_JUDGED, minute(line.started_at),
          ', '.join(filter(None, (line.id, *line.states))),
          line.subject.benchmarks, line.subject.flavors or '-',
          line.subject.hosts or '-') for line in summary],
        # Right-aligned columns are not wrapped.
        {'Started'}, width)


def minute(time: str) -> str:
    """Format an ISO 8601 time to the minute."""
    return time[:16].replace('T', ' ')


def _failed(judgements: Iterable[judgement.Judgement]) -> Iterator[str]:
    """Yield the figures that failed; of several message sizes the worst."""
    groups: dict[tuple[str, str, float | None],
                 list[judgement.Judgement]] = {}
    for judged in judgements:
        if judged.result is judgement.VerdictResult.FAIL:
            name, _ = metric_definition.split(judged.metric)
            groups.setdefault((judged.label, name, judged.limit),
                              []).append(judged)
    for group in groups.values():
        worst = max(group, key=slowdown)
        more = len(group) - 1
        yield (f'{worst.metric} {text.interval(worst.interval)} against '
               f'{text.bound(worst)}' + (
                   f' and {more} more message size{"s" * (more > 1)}'
                   if more else ''))


def slowdown(judged: judgement.Judgement) -> float:
    """Return how much slower the guest is, 1 for equal."""
    if judged.interval is None:
        return 0.0
    ratio = judged.interval.ratio
    return 1 / ratio if judged.direction is outcome.Direction.UP else ratio

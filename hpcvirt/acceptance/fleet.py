# SPDX-License-Identifier: Apache-2.0

"""Find the classes of hosts, and report who is slow and what differs.

The hosts of a class can be compared: they have runs of the same benchmark with
the same settings and binaries, in as many instances of the same flavor, with
the same CPU model and the same software. Runs on hosts themselves, without
guests, need only the same measurement, CPU model and binaries: what else
differs may be the reason why one of them is slow.

Tests of pairs of hosts show who is slow in a leaf of a fabric. A host that is
slow in most of its pairs is slow itself; a pair that is slower than both of
its hosts has a bad link.
"""

import collections
import dataclasses
import itertools
import json
import math
import re
import statistics
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.bench.analysis import sample_pairs
from hpcvirt.bench.analysis import stats
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import metric_definition
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record

#: What is equal for a class -> the last valid run on each host.
Classes = Mapping[str, Mapping[str, record.Run]]
Facts = Mapping[str, str]
Pair = tuple[str, ...]

#: Facts in which peer hosts may differ, since they depend on the firmware.
_MAY_DIFFER = ('cpu.microcode', 'mitigation.')
#: Facts in which hosts without guests must not differ.
_OF_HOSTS = ('cpu.model', 'program.')

#: What differs between all hosts.
_UUID = re.compile('[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}')
_SERIAL = 'serial number'
#: Of longer texts only the words that differ are named.
_LONGEST = 60

#: A host, or a link, is slow if it is by more than both of these: a loss, and
#: a number of robust standard deviations of the others.
_LOSS = math.log(1.1)
_FAR = 5.0
#: The median of fewer pairs of a host says nothing about one of them.
_MIN_PAIRS = 3


@dataclasses.dataclass(frozen=True)
class ReportedHost:
    """A host in the report, or a link ``A - B``.

    :ivar result: PASS, FAIL, INCONCLUSIVE or INVALID, against its class
    :ivar slower: how many percent longer ``figure`` takes than in its class
    :ivar low: the lower end of the interval of ``slower``
    :ivar high: the upper end
    :ivar figure: the figure in which it is slowest, empty if none is known
    :ivar differs: what a host that fails has unlike most hosts that do not
    """

    host: str
    result: judgement.VerdictResult
    reason: str | None
    slower: float | None
    low: float | None
    high: float | None
    figure: str
    differs: tuple[str, ...] = ()


def find_classes(stored: Iterable[record.Run]) -> Classes:
    """Find the last valid run on each host, for each class of hosts."""
    found: dict[str, dict[str, record.Run]] = {}
    for run in stored:
        if (not run.host or run.purpose is record.Purpose.AA
                or sample_pairs.explain_invalid(run) is not None
                or len(list_counted(run)) < sample_pairs.MIN_PAIRS):
            continue
        hosts = found.setdefault(find_class(run), {})
        before = hosts.get(run.host)
        if before is None or before.started_at <= run.started_at:
            hosts[run.host] = run
    return found


def find_class(run: record.Run) -> str:
    """Return what is equal for the runs on all hosts of a class."""
    identity = {
        name: value for name, value in run.identity.items()
        if not name.startswith(f'{record.Side.NATIVE} ')
        and not name.partition(' ')[2].startswith(_MAY_DIFFER)}
    if run.launch is None:
        identity = {
            name: value for name, value in identity.items()
            if not name.startswith(f'{record.Side.GUEST} ')
            or name.partition(' ')[2].startswith(_OF_HOSTS)}
    return json.dumps([run.benchmark, run.variant, run.shape, run.launch,
                       dict(run.parameters), identity], sort_keys=True)


def list_counted(run: record.Run) -> list[record.Sample]:
    """List the samples of guests, or of hosts without guests, that count."""
    return [sample for sample in run.samples
            if sample.side is record.Side.GUEST and not sample.warm_up]


def report_hosts(verdicts: Mapping[str, judgement.Verdict], classes: Classes,
                 machines: Mapping[str, Facts]) -> list[ReportedHost]:
    """Report the hosts, the slowest first.

    :param verdicts: of each host against its classes
    :param machines: further facts of each host
    """
    facts: dict[str, dict[str, str]] = {host: {} for host in verdicts}
    side = f'{record.Side.GUEST} '
    for hosts in classes.values():
        for host, run in hosts.items():
            facts[host] |= {name.removeprefix(side): text for name, text
                            in run.identity.items() if name.startswith(side)}
    for host, known in facts.items():
        known |= {name: text for name, text in machines.get(host, {}).items()
                  if name != _SERIAL and text not in known.values()}
    slow = {host for host, verdict in verdicts.items()
            if verdict.result is judgement.VerdictResult.FAIL}
    differs: dict[str, tuple[str, ...]] = {}
    for host in slow:
        others = [facts[other] for other in _list_peers(host, classes)
                  if other not in slow]
        differs[host] = tuple(find_differences(facts[host], others))
    return sorted(
        (_describe(host, verdict, differs.get(host, ()))
         for host, verdict in verdicts.items()),
        key=lambda each: (-(each.slower or -100.0), each.host))


def _describe(host: str, verdict: judgement.Verdict,
              differs: tuple[str, ...]) -> ReportedHost:
    figures = []
    for each in verdict.judgements:
        if found := each.interval:
            slower, *ends = (
                _percent(stats.loss_of_ratio(ratio, each.direction))
                for ratio in (found.ratio, found.low, found.high))
            figures.append((slower, min(ends), max(ends),
                            f'{each.label} {each.metric}'))
    worst: tuple[float | None, float | None, float | None, str] = (
        max(figures) if figures else (None, None, None, ''))
    return ReportedHost(host, verdict.result, verdict.reason, *worst, differs)


def _percent(loss: float) -> float:
    return round(100 * math.expm1(loss), 1)


def _list_peers(host: str, classes: Classes) -> list[str]:
    """List the hosts of all classes of a host, each once."""
    found: list[str] = []
    for hosts in classes.values():
        if host in hosts:
            found += hosts
    return list(dict.fromkeys(found))


def find_differences(facts: Facts, others: Sequence[Facts]) -> Iterator[str]:
    """Find what a machine has unlike most others.

    :returns: a line for each fact; none if there are no others
    """
    if not others:
        return
    for name in sorted({*facts}.union(*others)):
        (usual, count), = collections.Counter(
            _UUID.sub('UUID', each.get(name, 'none'))
            for each in others).most_common(1)
        value = _UUID.sub('UUID', facts.get(name, 'none'))
        if value == usual or 2 * count <= len(others):
            continue
        if max(len(value), len(usual)) > _LONGEST:
            words = value.split(), usual.split()
            value, usual = (
                ' '.join([word for word in own if word not in other][:6])
                or 'less' for own, other in (words, words[::-1]))
        yield f'{name} is {value}, of {count} of {len(others)} others {usual}'


def make_rounds(hosts: Sequence[str]) -> list[list[Pair]]:
    """Pair each host with each other, in rounds of disjoint pairs."""
    count = len(hosts) - 1 + len(hosts) % 2
    rounds: list[list[Pair]] = [[] for _ in range(count)]
    for one, other in itertools.combinations(range(len(hosts)), 2):
        # The last of an even number meets the one that is left over.
        turn = one + (other if other < count else one)
        rounds[turn % count].append((hosts[one], hosts[other]))
    return rounds


def report_pairs(runs: Iterable[record.Run]) -> Iterator[ReportedHost]:
    """Report the hosts of each leaf, and the bad links.

    :param runs: of any benchmarks, oldest first; those that span two hosts
        count, and the last one on each pair
    """
    found: dict[str, dict[Pair, float]] = {}
    for run in runs:
        pair = tuple(sorted(run.host.split(', ')))
        if len(pair) == 2 and sample_pairs.explain_invalid(run) is None:
            for metric, loss in _find_losses(run).items():
                found.setdefault(f'{run.label} {metric}', {})[pair] = loss
    for figure, pairs in found.items():
        while pairs:
            leaf = _find_leaf(pairs)
            yield from _judge_leaf(figure, {
                pair: pairs.pop(pair) for pair in [*pairs]
                if leaf & {*pair}})


def _find_leaf(pairs: Collection[Pair]) -> set[str]:
    """Find the hosts that pairs connect with those of the first pair."""
    leaf = set(next(iter(pairs)))
    before = 0
    while len(leaf) > before:
        before = len(leaf)
        for pair in pairs:
            if not leaf.isdisjoint(pair):
                leaf.update(pair)
    return leaf


def _find_losses(run: record.Run) -> dict[str, float]:
    """Return the loss for the smallest message, or the largest of a rate."""
    directions = {name: figure.direction
                  for name, figure in run.figures.items()}
    found: dict[str, str] = {}
    by_size = sorted(sample_pairs.metrics(run), key=lambda metric:
                     metric_definition.split(metric)[1] or 0)
    for metric in by_size:
        name, _ = metric_definition.split(metric)
        if directions[metric] is outcome.Direction.UP or name not in found:
            found[name] = metric
    return {metric: statistics.median(stats.loss_of_ratio(
        sample.outcome.metrics[metric].value, directions[metric])
        for sample in run.samples if not sample.warm_up)
        for metric in found.values()}


def _judge_leaf(figure: str, pairs: Mapping[Pair, float],
                ) -> Iterator[ReportedHost]:
    of_hosts: dict[str, list[float]] = {}
    for pair, loss in pairs.items():
        for host in pair:
            of_hosts.setdefault(host, []).append(loss)
    levels = {host: statistics.median(losses)
              for host, losses in of_hosts.items()}
    links = {pair: loss - max(levels[host] for host in pair)
             for pair, loss in pairs.items()}
    middle = statistics.median(levels.values())
    most, most_of_link = (
        max(_LOSS, _FAR * stats.robust_deviation([*values]))
        for values in (levels.values(), links.values()))
    for host, level in levels.items():
        word, reason = judgement.VerdictResult.PASS, None
        if len(of_hosts[host]) < _MIN_PAIRS:
            word = judgement.VerdictResult.INCONCLUSIVE
            reason = f'it has less than {_MIN_PAIRS} pairs'
        elif level - middle > most:
            word = judgement.VerdictResult.FAIL
            reason = 'it is slow in most of its pairs'
        yield ReportedHost(host, word, reason, _percent(level - middle), None,
                           None, figure)
    for pair, loss in links.items():
        if loss > most_of_link:
            yield ReportedHost(
                ' - '.join(pair), judgement.VerdictResult.FAIL,
                'it is slower than other pairs of both hosts', _percent(loss),
                None, None, figure)

# SPDX-License-Identifier: Apache-2.0

"""Find slow hosts and bad links in a leaf of a fabric, from tests of pairs.

In each round, every host is in one pair at most, so that all pairs of a round
are tested at the same time. A host that is slow in most of its pairs is slow
itself; a pair that is slower than both of its hosts has a bad link.
"""

import math
import statistics
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.acceptance import fleet_report
from hpcvirt.bench.analysis import bounds
from hpcvirt.bench.analysis import sample_pairs
from hpcvirt.bench.analysis import stats
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record

Word = judgement.VerdictResult
Pair = tuple[str, ...]

#: A host, or a link, is slow if it is by more than both of these: a loss, and
#: a number of robust standard deviations of the others.
_LOSS = math.log(1.1)
_FAR = 5.0
#: The median of fewer pairs of a host says nothing about one of them.
_MIN_PAIRS = 3


def make_rounds(hosts: Sequence[str]) -> list[list[Pair]]:
    """Pair each host with each other, in rounds of disjoint pairs."""
    ring = [*hosts, *[''] * (len(hosts) % 2)]
    rounds: list[list[Pair]] = []
    for _ in ring[1:]:
        half = len(ring) // 2
        rounds.append([pair for pair in zip(ring[:half], ring[:half - 1:-1],
                                            strict=True) if all(pair)])
        ring.insert(1, ring.pop())
    return rounds


def judge(runs: Iterable[record.Run]) -> Iterator[fleet_report.ReportedHost]:
    """Judge the hosts of each leaf, and name the bad links.

    :param runs: of any benchmarks, oldest first; those that span two hosts
        count, and the last one on each pair
    """
    found: dict[str, dict[Pair, float]] = {}
    for run in runs:
        pair = tuple(sorted(run.host.split(', ')))
        if len(pair) == 2 and sample_pairs.explain_invalid(run) is None:
            for metric, losses in _find_losses(run).items():
                found.setdefault(f'{run.label} {metric}', {})[pair] = (
                    statistics.median(losses))
    for figure, pairs in found.items():
        while pairs:
            leaf = set(next(iter(pairs)))
            while more := {host for pair in pairs if leaf & {*pair}
                           for host in pair} - leaf:
                leaf |= more
            yield from _judge_leaf(figure, {
                pair: pairs.pop(pair) for pair in [*pairs]
                if leaf & {*pair}})


def _find_losses(run: record.Run) -> dict[str, list[float]]:
    """Return the losses for the smallest message, or the largest of a rate."""
    found: dict[str, tuple[float, str]] = {}
    directions = {name: metric.direction for sample in run.samples
                  for name, metric in sample.outcome.metrics.items()}
    for metric in sample_pairs.metrics(run):
        name, size = bounds.split(metric)
        key = size or 0
        rank = key if directions[metric] is outcome.Direction.UP else -key
        found[name] = max(found.get(name, (-math.inf, '')), (rank, metric))
    return {metric: [stats.loss_of_ratio(
        sample.outcome.metrics[metric].value, directions[metric])
        for sample in run.samples if not sample.warm_up]
        for _, metric in found.values()}


def _judge_leaf(figure: str, pairs: Mapping[Pair, float],
                ) -> Iterator[fleet_report.ReportedHost]:
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
        word, reason = Word.PASS, None
        if len(of_hosts[host]) < _MIN_PAIRS:
            word, reason = Word.INCONCLUSIVE, (
                f'it has less than {_MIN_PAIRS} pairs')
        elif level - middle > most:
            word, reason = Word.FAIL, 'it is slow in most of its pairs'
        yield fleet_report.ReportedHost(
            host, word, reason, figure,
            round(100 * math.expm1(level - middle), 1))
    for pair, loss in links.items():
        if loss > most_of_link:
            yield fleet_report.ReportedHost(
                ' - '.join(pair), Word.FAIL, 'it is slower than other pairs '
                'of both hosts', figure, round(100 * math.expm1(loss), 1))

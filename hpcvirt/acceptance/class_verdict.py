# SPDX-License-Identifier: Apache-2.0

"""Judge a host against its class, from the results in a store.

The peers of a host are the hosts with the same measurement: the same benchmark
with the same settings and binaries, in as many instances of the same flavor,
with the same CPU model and the same software. The guest samples of the last
run on each peer count. A peer whose acceptance failed does not count.

The *level* of a host for a figure is the mean over its launches of the median
loss of their samples; the loss is the logarithm of a time, or of 1 / rate. The
levels of the peers predict that of one more host of the class. The difference
of the host from the class is judged by the prediction interval of Student's t
distribution:

    loss of the host - median of the peers
        +- t x sqrt(spread ** 2 x (1 + pi / 2k) + excess)

where spread is the larger of the standard deviation of the k peers and the
standard error of a level. The variance of the median of k hosts is pi / 2k of
the variance of a host. The launches of a new host may vary more than those of
its peers. Therefore it is measured in several launches, and the excess of the
variance of its level over theirs is added. Satterthwaite's formula gives the
degrees of freedom. If the levels of the peers seem to change with time, the
host must also pass or fail against the end of their regression line.

A host exactly at the bound passes in at most 5 % of all cases and fails in at
most 5 %; so does a typical host of a class whose hosts differ by more than the
bound (benchmarks/acceptance.py).

A slow peer would widen the spread of a class until nothing can be decided.
Therefore a peer is left out if it is far from the others: by more than 5
robust standard deviations and by more than 5 %. At most a quarter of the peers
are left out.
"""

import dataclasses
import itertools
import math
import statistics
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.acceptance import fleet
from hpcvirt.bench.analysis import bounds
from hpcvirt.bench.analysis import figures
from hpcvirt.bench.analysis import sample_pairs
from hpcvirt.bench.analysis import stats
from hpcvirt.bench.analysis import trends
from hpcvirt.bench.analysis import unit_losses
from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record

#: The default bound: how much slower than its class a host may be. Reports
#: call a host behind from the same difference on.
_ALLOWED = f'{trends.MIN_CHANGE:%}'
#: The same for runs on hosts themselves, and the figures of these that are
#: judged in addition to the primary ones.
_ALLOWED_OF_HOST = '10%'
_MORE_OF_HOST = ('StarDGEMM_Gflops', 'RandomlyOrderedRingLatency_usec')

METHOD = ("Ratio host / class; prediction intervals of Student's t from the "
          'levels of the peer hosts, at most 5 % false PASS and 5 % false '
          'FAIL, Holm over all figures')

#: With fewer peers, the t interval is wider than any bound worth testing.
MIN_PEER_HOSTS = 5
#: A peer host is left out if it differs by more than both of these: a number
#: of robust standard deviations of the others, and a loss.
_FAR = 5.0
_FAR_LOSS = math.log(1.05)
#: Largest p-value of a regression line through the levels that counts.
_CHANCE = 0.2
#: At most one in this number of peer hosts is left out.
_KEPT = 4


@dataclasses.dataclass(frozen=True, slots=True)
class Level:
    """The level of a host for one figure.

    :ivar loss: mean over the launches of the median loss of their samples
    :ivar error: standard error of ``loss``; for a single launch, from the
        robust deviation of its samples
    :ivar launches: number of launches, 1 if they are unknown
    :ivar measured_at: empty if it is unknown
    """

    host: str
    loss: float
    error: float
    launches: int = 1
    measured_at: str = ''


#: The level of a run for a metric, computed once; None without this figure.
_Levels = dict[tuple[int, str], Level | None]


@dataclasses.dataclass(frozen=True)
class ClassComparison:
    """A host against its class.

    :ivar estimate: the loss of the host against the class
    :ivar class_loss: the level of the class
    :ivar peer_hosts: the peers that count
    :ivar left_out: the peers that are too far from the others
    """

    estimate: stats.Estimate
    class_loss: float
    peer_hosts: tuple[str, ...]
    left_out: tuple[str, ...]


def judge(runs: Iterable[record.Run], stored: Iterable[record.Run],
          refused: Collection[str] = ()) -> judgement.Verdict:
    """Judge the runs on a host against those on its peer hosts.

    :param stored: all runs of the store
    :param refused: hosts that do not count as peers
    """
    return _judge(runs, fleet.find_classes(stored), refused, {})


def judge_fleet(classes: fleet.Classes, refused: Collection[str] = (),
                ) -> dict[str, judgement.Verdict]:
    """Judge each host against all others of its classes.

    :param classes: from :func:`hpcvirt.acceptance.fleet.find_classes`
    :param refused: hosts with which no other is compared
    """
    levels: _Levels = {}
    verdicts: dict[str, judgement.Verdict] = {}
    for host in dict.fromkeys(itertools.chain.from_iterable(classes.values())):
        runs = [hosts[host] for hosts in classes.values() if host in hosts]
        verdicts[host] = _judge(runs, classes, refused, levels)
    return verdicts


def _judge(runs: Iterable[record.Run], classes: fleet.Classes,
           refused: Collection[str], levels: _Levels) -> judgement.Verdict:
    pending: list[figures.Figure] = []
    for run in runs:
        hosts = classes.get(fleet.find_class(run), {})
        others = [other for host, other in sorted(hosts.items())
                  if host != run.host and host not in refused]
        pending += _figures(run, others, levels)
    found = verdict.verdict_of(tuple(verdict.settle(pending, _decide)))
    return dataclasses.replace(found, method=METHOD, scope='')


def _figures(run: record.Run, others: Sequence[record.Run],
             levels: _Levels) -> list[figures.Figure]:
    count, too_few = len(fleet.list_counted(run)), None
    if count < run.planned_pairs:
        too_few = (f'only {count} of the {run.planned_pairs} planned samples '
                   'exist')
    elif count < sample_pairs.MIN_PAIRS:
        too_few = (f'too few samples: {count}, at least '
                   f'{sample_pairs.MIN_PAIRS} are needed')
    return figures.estimate_each(
        run, _bounds(run), lambda metric, bound: _figure(
            run, metric, bound, others, levels), too_few)


def _bounds(run: record.Run) -> Mapping[str, judgement.Bound]:
    """Return the bounds of the user, and defaults for primary figures."""
    measured = run.figures
    names, allowed = [*bounds.find_bounds(run)], _ALLOWED
    if run.launch is None:
        names, allowed = list_figures(run.benchmark), _ALLOWED_OF_HOST
    return {**{name: bounds.parse_overhead(allowed, measured[name].direction)
               for name in names if name in measured}, **run.bounds}


def list_figures(benchmark: str) -> list[str]:
    """List the figures that are judged of runs on hosts themselves."""
    return [figure.name for figure in catalogue.get(benchmark).metrics
            if figure.primary or figure.name in _MORE_OF_HOST]


def _figure(run: record.Run, metric: str, bound: judgement.Bound,
            others: Sequence[record.Run],
            levels: _Levels) -> figures.Figure:
    blank = figures.make_without_estimate(
        run, metric, judgement.VerdictResult.INCONCLUSIVE, None)
    direction = blank.direction
    own = _level(run, metric, direction)
    for other in others:
        if (id(other), metric) not in levels:
            levels[id(other), metric] = (
                _level(other, metric, direction)
                if metric in sample_pairs.metrics(other) else None)
    known = [found for other in others
             if (found := levels[id(other), metric])]
    if run.launch and own.launches < sample_pairs.MIN_PAIRS:
        return figures.Figure(dataclasses.replace(
            blank, reason=f'{own.launches} launches of the host are known, at '
            f'least {sample_pairs.MIN_PAIRS} are needed to see whether they '
            'vary more than those of its class'))
    limit = bound.limit(direction)
    blank = dataclasses.replace(
        blank, limit=limit, pairs=len(fleet.list_counted(run)),
        guest=stats.ratio_of_loss(own.loss, direction))
    compared = compare(own, known)
    if compared is None:
        return figures.Figure(dataclasses.replace(
            blank, reason=f'{len(known)} peer hosts are known, at least '
            f'{MIN_PEER_HOSTS} are needed; measure more hosts of '
            'its class, or measure against native'))
    remark = f'against {", ".join(compared.peer_hosts)}'
    if isinstance(compared.estimate, stats.AllMustReject):
        remark += ', whose levels change with time'
    if compared.left_out:
        remark += (f', without {", ".join(compared.left_out)}, far from the '
                   'others')
    return figures.Figure(dataclasses.replace(
        blank, native=stats.ratio_of_loss(compared.class_loss, direction),
        interval=figures.interval(compared.estimate.loss,
                                  compared.estimate.ends(), direction),
        remarks=(remark,)), compared.estimate,
        stats.loss_of_ratio(limit, direction))


def _level(run: record.Run, metric: str,
           direction: outcome.Direction) -> Level:
    counted = fleet.list_counted(run)
    return level(run.host, [
        stats.loss_of_ratio(sample.outcome.metrics[metric].value, direction)
        for sample in counted], [sample.launch_id for sample in counted],
        run.started_at)


def _decide(figure: figures.Figure, _estimate: stats.Estimate, p_pass: float,
            p_fail: float, _p_alone: float) -> judgement.Judgement:
    word, reason = judgement.VerdictResult.INCONCLUSIVE, (
        'the interval includes the bound: the hosts of the class differ too '
        'much or are too few')
    if p_pass <= stats.ALPHA:
        word, reason = judgement.VerdictResult.PASS, ''
    elif p_fail <= stats.ALPHA:
        word = judgement.VerdictResult.FAIL
        reason = 'the host is slower than its class, beyond the bound'
    return dataclasses.replace(
        figure.judgement, result=word, reason=reason or None, p_pass=p_pass,
        p_fail=p_fail)


def level(host: str, losses: Sequence[float], launches: Sequence[str] = (),
          measured_at: str = '') -> Level:
    """Compute the level of a host.

    :param losses: losses of at least two samples
    :param launches: the launch of each sample; empty if they are unknown
    """
    if len(set(launches)) > 1:
        found = list(map(statistics.median,
                         unit_losses.group(losses, launches)))
        return Level(host, statistics.fmean(found),
                     statistics.stdev(found) / math.sqrt(len(found)),
                     len(found), measured_at)
    error = stats.robust_deviation(losses) * math.sqrt(
        math.pi / 2 / len(losses))
    return Level(host, statistics.median(losses), error, 1, measured_at)


def compare(own: Level, others: Sequence[Level]) -> ClassComparison | None:
    """Compare a host with its peer hosts.

    :returns: None if there are too few peer hosts
    """
    kept = _remove_far(others)
    if len(kept) < MIN_PEER_HOSTS:
        return None
    losses, count = [peer.loss for peer in kept], len(kept)
    middle = statistics.median(losses)
    error = statistics.median(peer.error for peer in kept)
    excess = max(0.0, own.error ** 2 - error ** 2)

    def predict(level_of_class: float, variance: float,
                freedom: float) -> stats.Normal:
        total = variance + excess
        if total:
            freedom = total ** 2 / (
                variance ** 2 / freedom
                + excess ** 2 / max(1, own.launches - 1))
        return stats.Normal(own.loss - level_of_class, math.sqrt(total),
                            freedom)
    alike = predict(
        middle, max(statistics.stdev(losses), error) ** 2 * (
            1 + math.pi / 2 / count), count - 1)
    end = _end_of_trend(sorted(kept, key=lambda peer: peer.measured_at))
    hosts = dict.fromkeys(peer.host for peer in kept)
    return ClassComparison(
        alike if end is None
        else stats.AllMustReject((alike, predict(*end, count - 2))), middle,
        tuple(hosts),
        tuple(peer.host for peer in others if peer.host not in hosts))


def _end_of_trend(others: Sequence[Level]) -> tuple[float, float] | None:
    """Extrapolate the levels by a regression line.

    :param others: peers in the order in which they were measured
    :returns: the predicted level of the next host and its variance; None if
        the line may be due to chance
    """
    if len({peer.measured_at for peer in others}) < len(others):
        return None
    losses, count = [peer.loss for peer in others], len(others)
    slope, start = statistics.linear_regression(range(count), losses)
    rest = sum((loss - start - slope * number) ** 2
               for number, loss in enumerate(losses)) / (count - 2)
    squares = count * (count ** 2 - 1) / 12
    steepness = stats.Normal(-abs(slope), math.sqrt(rest / squares), count - 2)
    if 2 * steepness.p_beyond(0.0) > _CHANCE:
        return None
    return start + slope * count, rest * (
        1 + 1 / count + (count + 1) ** 2 / 4 / squares)


def _remove_far(others: Sequence[Level]) -> list[Level]:
    """Remove peers that are far from the others, the farthest first."""
    kept = list(others)
    while len(kept) > MIN_PEER_HOSTS and (
            len(others) - len(kept) < len(others) // _KEPT):
        middle = statistics.median(peer.loss for peer in kept)
        farthest = max(kept, key=lambda peer: abs(peer.loss - middle))
        deviation = stats.robust_deviation(
            [peer.loss for peer in kept if peer is not farthest])
        if abs(farthest.loss - middle) <= max(_FAR_LOSS, _FAR * deviation):
            break
        kept.remove(farthest)
    return kept

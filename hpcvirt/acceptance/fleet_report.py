# SPDX-License-Identifier: Apache-2.0

"""Report for a fleet which hosts are slow, by how much, and what differs.

Each host is judged against all others of its class, so that the first hosts of
a class, for which there was no reference, are compared with each other.
"""

import collections
import dataclasses
import math
import re
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.bench.analysis import stats
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import record

Facts = Mapping[str, str]

#: What differs between all hosts.
_UUID = re.compile('[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}')
_SERIAL = 'serial number'
#: Of longer texts only the words that differ are named.
_LONGEST = 60


@dataclasses.dataclass(frozen=True)
class ReportedHost:
    """A host in the report.

    :ivar result: PASS, FAIL, INCONCLUSIVE or INVALID, against its class
    :ivar figure: the figure in which it is slowest, empty if none is known
    :ivar slower: how many percent longer this takes than in its class
    :ivar low: the lower end of the interval of ``slower``
    :ivar high: the upper end
    :ivar differs: what a host that fails has unlike most hosts that do not
    """

    host: str
    result: judgement.VerdictResult
    reason: str | None
    figure: str = ''
    slower: float | None = None
    low: float | None = None
    high: float | None = None
    differs: tuple[str, ...] = ()


def make(verdicts: Mapping[str, judgement.Verdict],
         classes: Sequence[Mapping[str, record.Run]],
         machines: Mapping[str, Facts]) -> tuple[ReportedHost, ...]:
    """Make the report: the hosts, the slowest first.

    :param verdicts: from :func:`hpcvirt.acceptance.class_verdict.judge_fleet`
    :param classes: from :func:`hpcvirt.acceptance.peers.find_classes`
    :param machines: further facts of each host
    """
    slow = {host for host, verdict in verdicts.items()
            if verdict.result is judgement.VerdictResult.FAIL}
    differs: dict[str, dict[str, None]] = {host: {} for host in verdicts}
    for of_class in classes:
        facts = {host: _facts(run, machines.get(host, {}))
                 for host, run in of_class.items()}
        others = [facts[host] for host in facts if host not in slow]
        for host in slow & facts.keys():
            differs[host] |= dict.fromkeys(
                find_differences(facts[host], others))
    return tuple(sorted(
        (_describe(ReportedHost(host, verdict.result, verdict.reason,
                             differs=tuple(differs[host])), verdict)
         for host, verdict in verdicts.items()),
        key=lambda each: (-(each.slower or -100.0), each.host)))


def _describe(host: ReportedHost, verdict: judgement.Verdict) -> ReportedHost:
    figures = [(_percent(each.interval.ratio, each), each, each.interval)
               for each in verdict.judgements if each.interval]
    if not figures:
        return host
    slower, worst, found = max(figures, key=lambda each: each[0])
    low, high = sorted(_percent(end, worst) for end in (found.low, found.high))
    return dataclasses.replace(
        host, figure=f'{worst.label} {worst.metric}', slower=slower, low=low,
        high=high)


def _percent(ratio: float, figure: judgement.Judgement) -> float:
    return round(100 * math.expm1(stats.loss_of_ratio(
        ratio, figure.direction)), 1)


def _facts(run: record.Run, machine: Facts) -> Facts:
    side = f'{record.Side.GUEST} '
    facts = {name.removeprefix(side): text for name, text
             in run.identity.items() if name.startswith(side)}
    known = {*facts.values(), machine.get(_SERIAL)}
    return facts | {name: text for name, text in machine.items()
                    if text not in known}


def find_differences(facts: Facts, others: Sequence[Facts]) -> Iterator[str]:
    """Find what a machine has unlike most others.

    :returns: a line for each fact; none if there are no others
    """
    for name in sorted({name for each in (facts, *others) for name in each}
                       if others else ()):
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

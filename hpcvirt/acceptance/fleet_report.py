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

from hpcvirt import printable
from hpcvirt import text_table
from hpcvirt.acceptance import acceptance
from hpcvirt.bench.analysis import stats
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import record

Facts = Mapping[str, str]

#: What each host has for itself.
_OWN = ('serial number',)
_UUID = re.compile('[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}')
#: A difference is in the value of this part of the slow hosts more than of the
#: others.
_PART = 0.5
_LONGEST = 60


@dataclasses.dataclass(frozen=True)
class FleetHost:
    """A host in the report.

    :ivar word: against its class
    :ivar figure: the figure in which it is slowest, empty without any
    :ivar slower: how much longer its work takes than that of its class (0.1
        is 10 %), with the interval; None if it is unknown
    :ivar acceptance: the result of its last acceptance or gate
    :ivar reason: why one of both is not PASS
    """

    host: str
    word: judgement.VerdictResult | None
    figure: str
    slower: float | None
    low: float | None
    high: float | None
    acceptance: judgement.VerdictResult | None
    reason: str


@dataclasses.dataclass(frozen=True)
class FleetReport:
    """The hosts of a fleet, the slowest first.

    :ivar differences: what the slow hosts have, unlike the others
    """

    hosts: tuple[FleetHost, ...]
    differences: tuple[str, ...]
    schema_version: int = 1


def make(accepted: Sequence[acceptance.Acceptance],
         verdicts: Mapping[str, judgement.Verdict],
         classes: Sequence[Mapping[str, record.Run]]) -> FleetReport:
    """Make the report.

    :param accepted: oldest first
    :param verdicts: from :func:`hpcvirt.acceptance.class_verdict.judge_fleet`
    :param classes: from :func:`hpcvirt.acceptance.peers.find_classes`
    """
    last = {each.host: each for each in accepted if each.ended_at}
    hosts = [_describe(host, verdicts.get(host), last.get(host))
             for host in sorted(verdicts.keys() | last.keys())]
    hosts.sort(key=lambda each: -(each.slower or -1))
    slow = {each.host for each in hosts
            if each.word is judgement.VerdictResult.FAIL}
    machines = {each.host: each.machine for each in accepted if each.machine}
    found: dict[str, None] = {}
    for of_class in classes:
        facts = {host: _facts(run, machines.get(host, {}))
                 for host, run in of_class.items()}
        found |= dict.fromkeys(find_differences(
            [facts[host] for host in facts if host in slow],
            [facts[host] for host in facts if host not in slow]))
    return FleetReport(tuple(hosts), tuple(found))


def _describe(host: str, verdict: judgement.Verdict | None,
              last: acceptance.Acceptance | None) -> FleetHost:
    losses = []
    for each in verdict.judgements if verdict else ():
        if each.interval is not None:
            low, high = sorted(
                stats.loss_of_ratio(end, each.direction)
                for end in (each.interval.low, each.interval.high))
            losses.append((stats.loss_of_ratio(
                each.interval.ratio, each.direction), low, high,
                f'{each.label} {each.metric}'))
    worst = max(losses, default=None)
    slower, low, high = (
        (None, None, None) if worst is None else
        map(math.expm1, worst[:3]))
    reasons = (verdict and verdict.reason, last and last.reason)
    return FleetHost(
        host, verdict and verdict.result, worst[3] if worst else '', slower,
        low, high, last and last.result, next(filter(None, reasons), ''))


def _facts(run: record.Run, machine: Facts) -> Facts:
    side = f'{record.Side.GUEST} '
    facts = {name.removeprefix(side): text for name, text
             in run.identity.items() if name.startswith(side)}
    known = set(facts.values())
    return facts | {name: text for name, text in machine.items()
                    if text not in known and name not in _OWN}


def find_differences(some: Sequence[Facts],
                     others: Sequence[Facts]) -> Iterator[str]:
    """Find what some machines have unlike the others, the clearest first.

    :returns: a line for each fact; none if there are no others
    """
    found = []
    for name in sorted({name for facts in some for name in facts} if others
                       else ()):
        here, there = (collections.Counter(
            _UUID.sub('UUID', facts.get(name, 'none')) for facts in machines)
            for machines in (some, others))
        (value, count), = here.most_common(1)
        (usual, number), = there.most_common(1)
        part = count / len(some) - there[value] / len(others)
        if part >= _PART and name not in _OWN:
            if max(len(value), len(usual)) > _LONGEST:
                words = value.split(), usual.split()
                value, usual = (' '.join([word for word in own if word
                                          not in other][:6]) or 'less'
                                for own, other in (words, words[::-1]))
            found.append((-part, f'{name}: {value} ({count} of {len(some)}); '
                          f'others: {usual} ({number} of {len(others)})'))
    return (text for _, text in sorted(found))


def render(report: FleetReport, width: int | None) -> str:
    """Write the report as text.

    :param width: columns of the terminal, None for no limit
    """
    rows = [(each.host, each.word or '-', _percent(each.slower),
             f'{_percent(each.low)} to {_percent(each.high)}'
             if each.slower is not None else '-', each.figure or '-',
             each.acceptance or '-') for each in report.hosts]
    lines = [f'{each.host}: {each.reason}' for each in report.hosts
             if each.reason]
    if report.differences:
        lines += ['', 'What the slow hosts have, unlike the others:']
        lines += [f'  {text}' for text in report.differences]
    return text_table.draw(
        ('Host', 'Against class', 'Slower by', 'Interval', 'Slowest figure',
         'Last acceptance'), rows, {'Slower by'}, width) + printable.lines(
             lines)


def _percent(part: float | None) -> str:
    return '-' if part is None else f'{part:.1%}'

# SPDX-License-Identifier: Apache-2.0

"""Say in a sentence what each choice gives, in round numbers.

The first one is described by what it accepts, the others by how much more they
accept. Uncertainties are halves of 95 % intervals.
"""

import math
from collections.abc import Iterator
from collections.abc import Sequence

from hpcvirt import words
from hpcvirt.simulate import outcome
from hpcvirt.simulate import scenario as scenarios
from hpcvirt.simulate import totals

_SECONDS_PER_DAY = 86400


def describe_span(scenario: scenarios.Scenario) -> str:
    """Say how long the workload is, and whether its times are stretched."""
    days = scenario.span / len(scenario.requests) / _SECONDS_PER_DAY
    stretch = scenario.requests[0].stretch
    return _format_days(days) + (
        '' if stretch == 1 else f' ({_format_days(days / stretch)} of the '
        f'log, whose times are multiplied by {stretch:.3g})')


def _format_days(days: float) -> str:
    return f'{days:,.0f} days' if days >= 3 else f'{24 * days:,.0f} hours'


def describe(rows: Sequence[scenarios.ScenarioResult]) -> str:
    """Say what each row gives in hosts, requests a day and core-hours."""
    first, *others = rows
    load = first.scenario.load
    accepted = ' and '.join(format_amount(
        total * (1 - lost.percent / 100), total * (lost.reach or 0) / 100)
        + f' {noun}' for lost, total, noun in _compare(first, None))
    return (f'In {describe_span(first.scenario)}'
            + ('' if load is None else f' at a load of {load:.2g}')
            + f', {_name(first)} accepts {accepted}{_count_hosts(first)}'
            + ''.join(f'; {_describe_change(row, first)}' for row in others)
            + '.')


def _name(row: scenarios.ScenarioResult) -> str:
    return f'"{row.name}"' if row.choice else row.name


def _count_hosts(row: scenarios.ScenarioResult) -> str:
    return ' on ' + words.count_noun(len(row.scenario.fleet.hosts), 'host')


def _compare(row: scenarios.ScenarioResult,
             first: scenarios.ScenarioResult | None,
             ) -> Iterator[tuple[totals.LossDifference, float, str]]:
    """Yield the loss, or the difference from the first row, and the total."""
    for per, noun in (
            (len(row.scenario.requests), 'core-hours'),
            (row.scenario.span / _SECONDS_PER_DAY, 'requests a day')):
        by_number = noun != 'core-hours'
        shares = row.shares(in_requests=by_number)
        others = first.shares(in_requests=by_number) if first else None
        if per and shares:
            yield (totals.difference(shares, others),
                   math.fsum(share.offered for share in shares) / per, noun)


def _describe_change(row: scenarios.ScenarioResult,
                     first: scenarios.ScenarioResult) -> str:
    found = []
    on = _count_hosts(row) if row.choice != first.choice else ''
    lost, total, _ = next(_compare(first, None))
    host = total * (1 - lost.percent / 100) / len(first.scenario.fleet.hosts)
    for less, total, noun in _compare(row, first):
        if less.percent and not (
                less.ends and less.ends[0] <= 0 <= less.ends[1]):
            amount, reach = (total * abs(each or 0) / 100
                             for each in (less.percent, less.reach))
            found.append(f'{format_amount(amount, reach)} '
                         f'{"more" if less.percent < 0 else "fewer"} {noun}')
            if host and noun == 'core-hours':
                on += (', the work of '
                       f'{format_amount(amount / host, reach / host)} hosts '
                       f'of {_name(first)}')
    return f'{_name(row)} accepts ' + (
        ' and '.join(found) or 'as much within chance') + on + (
            _describe_local(row, first))


def _describe_local(row: scenarios.ScenarioResult,
                    first: scenarios.ScenarioResult) -> str:
    """Say how many more guests have their devices on their host cells."""
    own, other = (outcome.find_local_percent(
        [each.outcome.samples for each in result.replays])
                  for result in (row, first))
    if own is None or other is None or round(own) == round(other):
        return ''
    more = round(own) - round(other)
    return (f', with {abs(more)} {"more" if more > 0 else "fewer"} of 100 '
            'guests near their devices')


def format_amount(value: float, reach: float) -> str:
    """Write a number and its uncertainty with only the digits that count."""
    digits = -math.floor(math.log10(reach or abs(value) or 1))
    # A first digit of 1 is too coarse.
    digits += not reach or reach * 10 ** digits < 2
    return ' ± '.join(f'{round(each, digits):,.{max(0, digits)}f}'
                      for each in (value, reach)[:1 + bool(reach)])

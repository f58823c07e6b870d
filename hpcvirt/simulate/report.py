# SPDX-License-Identifier: Apache-2.0

"""Write the result of a scenario as a document and as tables."""

import collections
import textwrap
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from hpcvirt import text_table
from hpcvirt import words
from hpcvirt.simulate import outcome
from hpcvirt.simulate import scenario as scenarios
from hpcvirt.simulate import totals

SCHEMA_VERSION = 1

#: The name of the bound, a fleet that is one bin without fragmentation.
BOUND = 'one bin'

#: Limit of the points in time in a document.
_MAX_POINTS = 250
_DIGITS = 4

_HEADINGS = ('Strategy', 'Lost', *(cause.value.capitalize()
                                   for cause in outcome.Cause),
             'Largest', 'Used', 'Stranded', 'Across', 'Moves')
_LEGEND = """\
Lost: core-hours of refused requests, of those of all requests.
Capacity, fragmentation, devices or pages: refused requests, by what they \
lacked.
Largest: accepted requests for the flavors with the most CPUs that are \
requested.
Used, stranded: CPUs of guests, and free CPUs that no guest of the smallest \
flavor can use, of all CPUs for guests, averaged over time.
Across: guests on more than one socket, of all guests.
"""
_PAIRED_HEADINGS = ('Strategy', 'Compared with', 'Lost more',
                    '95 % interval')


def document(result: scenarios.ScenarioResult) -> dict[str, Any]:
    """Return the result for JSON.

    It has no computing times, so that equal inputs give equal documents.
    """
    scenario = result.scenario
    fleet = scenario.fleet
    requested = _requested(scenario)
    tallies = {name: totals.count_totals(replays)
               for name, replays in result.replays.items()}
    total = next(iter(tallies.values()))
    return {
        'schema_version': SCHEMA_VERSION,
        'workload': {
            'name': scenario.workload, 'notes': list(scenario.notes),
            'rule': list(scenario.requests[0].rule),
            'load': scenario.load, 'replays': len(scenario.requests),
            'requests': total.requests,
            'core_hours': _round(total.total.offered),
        },
        'fleet': {
            'cpus': scenario.cpus,
            'hosts': [{'name': name, 'count': len(group),
                       'cpus': scenarios.count_cpus(group[0],
                                                    scenario.flavors)}
                      for name, group in scenarios.group_hosts(fleet)],
        },
        'flavors': [{
            'name': each.flavor.name, 'vcpus': each.flavor.vcpus,
            'ram_mib': each.flavor.ram_mib,
            'requests': requested[number]}
            for number, each in enumerate(scenario.flavors)],
        'strategies': [{
            'name': name, **_tallied(tallies[name]),
            **_used(replays, scenario.cpus)}
            for name, replays in result.replays.items()],
        'bound': {'lost_percent': _round(
            totals.count_totals(result.bound).total.lost_percent)},
        'paired': [_difference(each) for each in differences(result)],
    }


def _requested(scenario: scenarios.Scenario) -> Mapping[int, int]:
    """Count the requests for each flavor, by its number."""
    return collections.Counter(
        arrival.flavor for requests in scenario.requests
        for arrival in requests.arrivals)


def differences(result: scenarios.ScenarioResult) -> list[
        totals.LossDifference]:
    """Compare the strategies with each other."""
    return list(totals.differences({
        name: totals.shares(replays, result.windows)
        for name, replays in result.replays.items()}))


def _tallied(found: totals.Totals) -> dict[str, Any]:
    return {
        'lost_percent': _round(found.total.lost_percent),
        'refused': {cause.value: number
                    for cause, number in found.refused.items()},
        'largest_accepted_percent': _round(found.largest_percent),
        'largest_requests': found.largest[0],
        'requests': found.requests, 'accepted': found.accepted,
        'core_hours': {
            'offered': _round(found.total.offered),
            'accepted': _round(found.total.offered - found.total.lost),
            'lost': _round(found.total.lost),
            **{f'lost_to_{cause.value}': _round(hours)
               for cause, hours in found.lost.items()},
        },
        'moves': found.moves,
    }


def _used(replays: Sequence[totals.Replay], cpus: int) -> dict[str, Any]:
    """Describe the fleet over time; the points are of the first replay."""
    means = outcome.means([each.outcome.samples for each in replays])
    return {
        'utilisation_percent': _percent(means.busy_cpus, cpus),
        'stranded_cpus_percent': _percent(means.stranded_cpus, cpus),
        'stranded_pages_mib': _round(means.stranded_pages_mib),
        'across_sockets_percent': _round(100 * means.across_sockets),
        'over_time': [{
            'hours': _round(sample.time / 3600),
            'busy_cpus': sample.busy_cpus,
            'stranded_cpus': sample.stranded_cpus,
            'stranded_pages_mib': sample.stranded_pages_mib,
            'guests': sample.guests,
            'across_sockets': sample.across_sockets,
        } for sample in outcome.thin_out(replays[0].outcome.samples,
                                         _MAX_POINTS)],
    }


def _difference(found: totals.LossDifference) -> dict[str, Any]:
    return {
        'strategy': found.strategy, 'reference': found.reference,
        'difference_percent': _round(found.percent),
        'interval_percent': (None if found.ends is None
                             else [_round(end) for end in found.ends]),
        'why_no_interval': found.why_none or None,
        'parts': found.parts,
    }


def _round(value: float) -> float:
    # Adding 0.0 turns -0.0 into 0.0.
    return round(value, _DIGITS) + 0.0


def _percent(part: float, whole: float) -> float:
    return _round(100 * part / whole) if whole else 0.0


def text(result: scenarios.ScenarioResult, width: int | None = None) -> str:
    """Draw the result as text.

    :param width: columns of the terminal, None for the default
    """
    room = width or text_table.WIDTH
    found = document(result)
    headings, rows = _columns(found)
    blocks = [
        _paragraphs(describe_input(found), room),
        _paragraphs((*found['workload']['notes'],
                     *found['workload']['rule']), room),
        text_table.draw(headings, rows, headings[1:], room),
        _paragraphs(_LEGEND.splitlines(), room),
    ]
    if found['paired']:
        blocks += [
            text_table.draw(_PAIRED_HEADINGS, [*_paired(found)],
                            {'Lost more'}, room),
            _paragraphs([intervals(result)], room)]
    return '\n'.join(block for block in blocks if block)


def describe_input(found: Mapping[str, Any]) -> Iterator[str]:
    """Describe the workload, the fleet and the flavors, a line each."""
    workload, fleet = found['workload'], found['fleet']
    replays = ('' if workload['replays'] == 1
               else f' of {workload["replays"]} seeds')
    load = ('' if workload['load'] is None
            else f' at a load of {workload["load"]:g}')
    yield (f'{workload["name"]}: '
           f'{words.count_noun(workload["requests"], "request")}{replays}, '
           f'{workload["core_hours"]:.0f} core-hours{load}')
    alike: dict[tuple[int, int], list[str]] = {}
    for kind in fleet['hosts']:
        alike.setdefault((kind['count'], kind['cpus']), []).append(
            kind['name'])
    hosts = ', '.join(
        (f'{count} x ' if len(names) == 1 or count > 1 else '')
        + f'{words.join_names(names, "hosts")} with '
        f'{words.count_noun(cpus, "CPU")}'
        for (count, cpus), names in alike.items())
    yield f'{hosts}: {words.count_noun(fleet["cpus"], "CPU")} for guests'
    yield 'Flavors and their requests: ' + ', '.join(
        f'{each["name"]} {each["requests"]}' for each in found['flavors'])


def _paragraphs(lines: Iterator[str] | Sequence[str], width: int) -> str:
    return ''.join(textwrap.fill(
        line, width, subsequent_indent='  ', break_on_hyphens=False) + '\n'
        for line in lines)


def _columns(found: Mapping[str, Any],
             ) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Return headings and rows, without causes and moves that never occur."""
    rows = [*_rows(found)]
    rare = {_HEADINGS.index(heading)
            for heading in ('Devices', 'Pages', 'Moves')}
    shown = [place for place in range(len(_HEADINGS))
             if place not in rare or any(row[place] not in ('0', '')
                                         for row in rows)]
    return ([_HEADINGS[place] for place in shown],
            [[row[place] for place in shown] for row in rows])


def _rows(found: Mapping[str, Any]) -> Iterator[list[str]]:
    for each in found['strategies']:
        yield [each['name'], f'{each["lost_percent"]:.1f} %',
               *(str(each['refused'][cause.value])
                 for cause in outcome.Cause),
               f'{each["largest_accepted_percent"]:.0f} %',
               f'{each["utilisation_percent"]:.1f} %',
               f'{each["stranded_cpus_percent"]:.1f} %',
               f'{each["across_sockets_percent"]:.1f} %',
               str(each['moves'])]
    yield [BOUND, f'{found["bound"]["lost_percent"]:.1f} %',
           *[''] * (len(_HEADINGS) - 2)]


def _paired(found: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for each in found['paired']:
        yield (each['strategy'], each['reference'],
               f'{each["difference_percent"]:+.2f}',
               format_interval(each))


def format_interval(difference: Mapping[str, Any]) -> str:
    """Format an interval, or the reason why there is none."""
    ends = difference['interval_percent']
    return (f'{ends[0]:+.2f} to {ends[1]:+.2f}' if ends
            else f'none: {difference["why_no_interval"]}')


def intervals(result: scenarios.ScenarioResult) -> str:
    """Explain the intervals, in a paragraph."""
    seeds = len(result.scenario.requests)
    windows = min(result.windows, len(result.scenario.requests[0].arrivals))
    over = (f'{words.count_noun(windows, "window")} with equal numbers of '
            'requests' if seeds == 1 else words.count_noun(seeds, 'seed'))
    return ('Lost more: percentage points of core-hours; negative if the '
            'first strategy loses less. An interval without 0 is a '
            f'difference beyond chance. The intervals are over {over}.')

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

"""Write what came of a scenario, as a document and as tables."""

import collections
import textwrap
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from hpcvirt import text_table
from hpcvirt.flavors import table
from hpcvirt.simulate import compare
from hpcvirt.simulate import outcome
from hpcvirt.simulate import over_time
from hpcvirt.simulate import scenario as scenarios
from hpcvirt.simulate import tally

SCHEMA_VERSION = 1

#: The names of the bounds: a fleet that is one bin without fragmentation, and
#: placements that may move all guests at each request.
POOL = 'pool'
REPACKING = 'repacking'
POOL_IN_WORDS = 'one bin'
REPACKING_IN_WORDS = 'repacking at will'
#: The least that placements can lose, where it is known.
OPTIMUM = 'optimum'
OPTIMUM_IN_WORDS = 'exact optimum'

#: So many points in time are given.
_MOST_POINTS = 250
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
Across: guests on more than one package, of all guests.
"""
_PAIRED_HEADINGS = ('Strategy', 'Compared with', 'Lost more',
                    '95 % interval')


def document(result: scenarios.Result) -> dict[str, Any]:
    """Turn the result into dicts, lists, numbers and strings.

    It holds no time that the computer took: the same input gives the same
    document.
    """
    scenario = result.scenario
    fleet = scenario.fleet
    requested = _requested(scenario)
    tallies = {name: tally.tally(replays)
               for name, replays in result.replays.items()}
    bounds = {name: tally.tally(replays)
              for name, replays in result.bounds.items()}
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
            'hosts': [{'name': kind.name, 'count': kind.count,
                       'cpus': kind.cpus(scenario.flavors)}
                      for kind in fleet.kinds],
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
        'bound': {
            'lost_percent': _round(bounds[POOL].total.lost_percent),
            'repacking_lost_percent': _round(
                bounds[REPACKING].total.lost_percent)
            if REPACKING in bounds else None,
            'optimum_lost_percent': _round(
                bounds[OPTIMUM].total.lost_percent)
            if OPTIMUM in bounds else None,
        },
        'paired': [_difference(each) for each in differences(result)],
    }


def _requested(scenario: scenarios.Scenario) -> Mapping[int, int]:
    """Count the requests for each flavor, by its number."""
    return collections.Counter(
        arrival.flavor for requests in scenario.requests
        for arrival in requests.arrivals)


def differences(result: scenarios.Result) -> list[compare.Difference]:
    """Compare the strategies with each other."""
    return list(compare.differences({
        name: tally.shares(replays, result.windows)
        for name, replays in result.replays.items()}))


def _tallied(found: tally.Tally) -> dict[str, Any]:
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


def _used(replays: Sequence[tally.Replay], cpus: int) -> dict[str, Any]:
    """Describe the fleet over time; the points are those of one replay."""
    means = over_time.means([each.outcome.samples for each in replays])
    return {
        'utilisation_percent': _percent(means.busy_cpus, cpus),
        'stranded_cpus_percent': _percent(means.stranded_cpus, cpus),
        'stranded_pages_mib': _round(means.stranded_pages_mib),
        'across_packages_percent': _round(100 * means.across_packages),
        'over_time': [{
            'hours': _round(sample.time / 3600),
            'busy_cpus': sample.busy_cpus,
            'stranded_cpus': sample.stranded_cpus,
            'stranded_pages_mib': sample.stranded_pages_mib,
            'guests': sample.guests,
            'across_packages': sample.across_packages,
        } for sample in over_time.thinned(replays[0].outcome.samples,
                                          _MOST_POINTS)],
    }


def _difference(found: compare.Difference) -> dict[str, Any]:
    return {
        'strategy': found.strategy, 'reference': found.reference,
        'difference_percent': _round(found.percent),
        'interval_percent': (None if found.ends is None
                             else [_round(end) for end in found.ends]),
        'why_no_interval': found.why_none or None,
        'parts': found.parts,
    }


def _round(value: float) -> float:
    # Minus nothing is nothing.
    return round(value, _DIGITS) + 0.0


def _percent(part: float, whole: float) -> float:
    return _round(100 * part / whole) if whole else 0.0


def text(result: scenarios.Result, width: int | None = None) -> str:
    """Draw the result.

    :param width: columns of the terminal, None if there is none
    """
    room = width or table.WIDTH
    found = document(result)
    headings, rows = _columns(found)
    blocks = [
        _paragraphs(told(found), room),
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


def told(found: Mapping[str, Any]) -> Iterator[str]:
    """Say what is replayed over what."""
    workload, fleet = found['workload'], found['fleet']
    replays = ('' if workload['replays'] == 1
               else f' of {workload["replays"]} seeds')
    load = ('' if workload['load'] is None
            else f' at a load of {workload["load"]:g}')
    yield (f'{workload["name"]}: '
           f'{table.counted(workload["requests"], "request")}{replays}, '
           f'{workload["core_hours"]:.0f} core-hours{load}')
    hosts = ', '.join(f'{kind["count"]} x {kind["name"]} with '
                      f'{table.counted(kind["cpus"], "CPU")}'
                      for kind in fleet['hosts'])
    yield f'{hosts}: {table.counted(fleet["cpus"], "CPU")} for guests'
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
               f'{each["across_packages_percent"]:.1f} %',
               str(each['moves'])]
    bound = found['bound']
    for name, percent in (
            (REPACKING_IN_WORDS, bound['repacking_lost_percent']),
            (POOL_IN_WORDS, bound['lost_percent']),
            (OPTIMUM_IN_WORDS, bound['optimum_lost_percent'])):
        if percent is not None:
            yield [name, f'{percent:.1f} %', *[''] * (len(_HEADINGS) - 2)]


def _paired(found: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for each in found['paired']:
        yield (each['strategy'], each['reference'],
               f'{each["difference_percent"]:+.2f}',
               interval_in_words(each))


def interval_in_words(difference: Mapping[str, Any]) -> str:
    """Write an interval, or why there is none."""
    ends = difference['interval_percent']
    return (f'{ends[0]:+.2f} to {ends[1]:+.2f}' if ends
            else f'none: {difference["why_no_interval"]}')


def intervals(result: scenarios.Result) -> str:
    """Say what the intervals are of."""
    seeds = len(result.scenario.requests)
    windows = min(result.windows, len(result.scenario.requests[0].arrivals))
    over = (f'{table.counted(windows, "window")} with equal numbers of '
            'requests' if seeds == 1 else table.counted(seeds, 'seed'))
    return ('Lost more: percentage points of core-hours; negative if the '
            'first strategy loses less. An interval without 0 is a '
            f'difference beyond chance. The intervals are over {over}.')

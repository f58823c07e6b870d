# SPDX-License-Identifier: Apache-2.0

"""Write the result of a simulation as a document and as tables.

There is a row for each choice, which is a fleet, and each strategy.
"""

import collections
import itertools
import textwrap
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from hpcvirt import text_table
from hpcvirt import words
from hpcvirt.simulate import outcome
from hpcvirt.simulate import scenario as scenarios
from hpcvirt.simulate import summary
from hpcvirt.simulate import totals

SCHEMA_VERSION = 1

#: Limit of the points in time in a document.
_MAX_POINTS = 250
_DIGITS = 4
#: The figures of a sample.
_SAMPLED = ('busy_cpus', 'stranded_cpus', 'stranded_pages_mib', 'guests',
            'across_sockets', 'with_devices', 'local')

_REFUSED = ('Lost', 'Local',
            *(cause.value.capitalize() for cause in outcome.Cause))
_USED = ('Largest', 'Used', 'Stranded', 'Across', 'Moves')
#: Columns that are left out if nothing is in them.
_RARE = frozenset({'Devices', 'Pages', 'Size', 'Local', 'Moves'})
_LEGEND = """\
Lost: core-hours of refused requests, of those of all requests.
Capacity, fragmentation, devices, pages or size: refused requests, by what \
they lacked; size means that no flavor is large enough.
Largest: accepted requests for the flavors with the most CPUs that are \
requested.
Used, stranded: CPUs of guests, and free CPUs that no guest of the smallest \
flavor can use, of all CPUs for guests, averaged over time.
Across: guests on more than one socket, of all guests.
"""
_LOCAL = ('Local: guests whose devices are all on their host cells, of all '
          'guests with devices.')


def document(rows: Sequence[scenarios.ScenarioResult]) -> dict[str, Any]:
    """Return the result for JSON.

    It has no computing times, so that equal inputs give equal documents.

    :param rows: the results of all choices and strategies
    """
    firsts: dict[str, scenarios.ScenarioResult] = {}
    for row in rows:
        firsts.setdefault(row.choice, row)
    choices = [_describe_choice(row) for row in firsts.values()]
    scenario = rows[0].scenario
    first = totals.count_totals(rows[0].replays)
    warnings: list[str] = []
    for choice, row in firsts.items():
        warnings += [': '.join(filter(None, (choice, said)))
                     for said in row.scenario.requests[0].warnings]
    found: dict[str, Any] = _round({
        'schema_version': SCHEMA_VERSION,
        'summary': summary.describe(rows),
        'warnings': warnings,
        'workload': {
            'name': scenario.workload, 'notes': list(scenario.notes),
            'span': summary.describe_span(scenario),
            'replays': len(scenario.requests),
            'requests': first['requests'],
            'core_hours': first['core_hours']['offered'],
            **{key: choices[0][key] for key in ('rule', 'load')},
        },
        **{key: choices[0][key] for key in ('fleet', 'flavors')},
        'choices': choices,
        'strategies': [{
            'name': row.name, 'choice': row.choice,
            **totals.count_totals(row.replays),
            **_used(row.replays, row.scenario.cpus)} for row in rows],
        'paired': [*_compare(rows)],
    })
    return found


def _describe_choice(row: scenarios.ScenarioResult) -> dict[str, Any]:
    scenario = row.scenario
    requested = collections.Counter[int]()
    for requests in scenario.requests:
        requested.update(arrival.flavor for arrival
                         in requests.arrivals[requests.warm_up:])
    return {
        'name': row.choice, 'rule': list(scenario.requests[0].rule),
        'load': scenario.load,
        'fleet': {
            'cpus': scenario.cpus,
            'instances': len(scenario.requests[0].residents),
            'hosts': [{'name': kind, 'count': len(group),
                       'cpus': scenarios.count_cpus(group[0],
                                                    scenario.flavors)}
                      for kind, group in scenarios.group_hosts(
                          scenario.fleet)],
        },
        'flavors': [{
            'name': each.name, 'vcpus': each.cpus,
            'ram_mib': each.sums.memory_mib,
            'requests': requested[number]}
            for number, each in enumerate(scenario.flavors)],
    }


def _used(replays: Sequence[totals.Replay], cpus: int) -> dict[str, Any]:
    """Describe the fleet over time; the points are of the first replay."""
    samples = [each.outcome.samples for each in replays]
    mean = {name: outcome.mean(samples, name) for name in _SAMPLED}
    return {
        'cpus': cpus,
        'utilisation_percent': _percent(mean['busy_cpus'], cpus),
        'stranded_cpus_percent': _percent(mean['stranded_cpus'], cpus),
        'stranded_pages_mib': mean['stranded_pages_mib'],
        'across_sockets_percent': _percent(mean['across_sockets'],
                                           mean['guests']),
        'local_percent': outcome.find_local_percent(samples),
        'over_time': [{
            'hours': sample.time / 3600,
            **{name: getattr(sample, name) for name in _SAMPLED},
        } for sample in outcome.thin_out(samples[0], _MAX_POINTS)],
    }


def _compare(rows: Sequence[scenarios.ScenarioResult],
             ) -> Iterator[dict[str, Any]]:
    """Compare the choices with each strategy, and the strategies of each."""
    shares = {row.name: row.shares() for row in rows}
    for reference, row in itertools.combinations(rows, 2):
        if reference.choice == row.choice or (
                reference.strategy == row.strategy):
            found = totals.difference(shares[row.name],
                                      shares[reference.name])
            yield {
                'strategy': row.name, 'reference': reference.name,
                'difference_percent': found.percent,
                'interval_percent': found.ends and [*found.ends],
                'why_no_interval': found.why_none or None,
                'parts': found.parts,
            }


def _percent(part: float, whole: float) -> float:
    return 100 * part / whole if whole else 0.0


def _round(value: Any) -> Any:
    """Round all fractions in a document."""
    if isinstance(value, float):
        # Adding 0.0 turns -0.0 into 0.0.
        return round(value, _DIGITS) + 0.0
    if isinstance(value, dict):
        return {key: _round(each) for key, each in value.items()}
    return [*map(_round, value)] if isinstance(value, list) else value


def text(found: Mapping[str, Any], width: int | None = None) -> str:
    """Draw a document as text.

    :param width: columns of the terminal, None for the default
    """
    room = width or text_table.WIDTH
    rows = [*_rows(found)]
    blocks = [
        _paragraphs([found['summary']], room),
        _paragraphs(describe_input(found), room),
        _paragraphs(list_notes(found), room),
        *(_table(found, headings, rows, room)
          for headings in (_REFUSED, _USED)),
        _paragraphs(describe_columns(found), room),
    ]
    if found['paired']:
        blocks += [
            text_table.draw((first_heading(found), 'Compared with',
                             'Lost more', '95 % interval'),
                            [*_paired(found)], {'Lost more'}, room),
            _paragraphs([describe_intervals(found)], room)]
    return '\n'.join(block for block in blocks if block)


def describe_columns(found: Mapping[str, Any]) -> list[str]:
    """Explain the columns, a line each."""
    lines = _LEGEND.splitlines()
    if any(each['local_percent'] is not None for each in found['strategies']):
        lines.append(_LOCAL)
    return lines


def first_heading(found: Mapping[str, Any]) -> str:
    """Return the heading of the column that names a row."""
    return 'Choice' if found['choices'][0]['name'] else 'Strategy'


def describe_input(found: Mapping[str, Any]) -> Iterator[str]:
    """Describe the workload, the fleets and the flavors, a line each."""
    workload = found['workload']
    replays = ('' if workload['replays'] == 1
               else f' of {workload["replays"]} seeds')
    yield (f'{workload["name"]}: '
           f'{words.count_noun(workload["requests"], "request")}{replays} in '
           f'{workload["span"]}, {workload["core_hours"]:.0f} core-hours')
    for choice in found['choices']:
        fleet = choice['fleet']
        alike: dict[tuple[int, int], list[str]] = {}
        for kind in fleet['hosts']:
            alike.setdefault((kind['count'], kind['cpus']), []).append(
                kind['name'])
        hosts = ', '.join(
            (f'{count} x ' if len(names) == 1 or count > 1 else '')
            + f'{words.join_names(names, "hosts")} with '
            f'{words.count_noun(cpus, "CPU")}'
            for (count, cpus), names in alike.items())
        load = ('no load, as all requests have the same time'
                if choice['load'] is None
                else f'a load of {choice["load"]:.3g}')
        there = (f'{words.count_noun(fleet["instances"], "instance")} at '
                 'first, ' if fleet['instances'] else '')
        name = f'{choice["name"]}: ' * bool(choice['name'])
        yield (f'{name}{hosts}: {words.count_noun(fleet["cpus"], "CPU")} for '
               f'guests, {there}{load}')
        if choice is found['choices'][0] or (
                choice['flavors'] != found['flavors']):
            yield f'{name}Flavors and their requests: ' + ', '.join(
                f'{each["name"]} {each["requests"]}'
                for each in choice['flavors'])


def list_notes(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield the notes of the reader, and what is new in each mapping."""
    yield from (*found['workload']['notes'], *found['workload']['rule'])
    for choice in found['choices']:
        yield from (f'{choice["name"]}: {line}' for line in choice['rule']
                    if line not in found['workload']['rule'])


def _paragraphs(lines: Iterable[str], width: int) -> str:
    return ''.join(textwrap.fill(
        line, width, subsequent_indent='  ', break_on_hyphens=False) + '\n'
        for line in lines)


def _table(found: Mapping[str, Any], headings: Sequence[str],
           rows: Sequence[Mapping[str, str]], room: int) -> str:
    """Draw columns, without rare ones in which there is nothing."""
    shown = [heading for heading in headings
             if heading not in _RARE or any(row[heading] != '0'
                                            for row in rows)]
    return text_table.draw((first_heading(found), *shown), [
        [row['name'], *(row[heading] for heading in shown)]
        for row in rows], shown, room)


def _rows(found: Mapping[str, Any]) -> Iterator[Mapping[str, str]]:
    for each in found['strategies']:
        yield {'name': each['name'], 'Lost': f'{each["lost_percent"]:.1f} %',
               **{cause.value.capitalize(): str(each['refused'][cause.value])
                  for cause in outcome.Cause},
               'Largest': f'{each["largest_accepted_percent"]:.0f} %',
               'Used': f'{each["utilisation_percent"]:.1f} %',
               'Stranded': f'{each["stranded_cpus_percent"]:.1f} %',
               'Across': f'{each["across_sockets_percent"]:.1f} %',
               'Local': ('0' if each['local_percent'] is None
                         else f'{each["local_percent"]:.0f} %'),
               'Moves': str(each['moves'])}


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


def describe_intervals(found: Mapping[str, Any]) -> str:
    """Explain the intervals, in a paragraph."""
    parts = found['paired'][0]['parts']
    over = (f'{words.count_noun(parts, "window")} with equal numbers of '
            'requests' if found['workload']['replays'] == 1
            else words.count_noun(parts, 'seed'))
    return ('Lost more: percentage points of core-hours; negative if the '
            'first of the two loses less. An interval without 0 is a '
            f'difference beyond chance. The intervals are over {over}.')

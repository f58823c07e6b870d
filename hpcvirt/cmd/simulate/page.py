# SPDX-License-Identifier: Apache-2.0

"""Write the results of a replay as one self-contained HTML page."""

from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

from hpcvirt.cmd.simulate import drawings
from hpcvirt.page import templates
from hpcvirt.simulate import outcome
from hpcvirt.simulate import report

TITLE = 'A workload replayed over a fleet'

_CAUSES = tuple(cause.value for cause in outcome.Cause)


def page(found: Mapping[str, Any]) -> str:
    """Return the page of a document of :mod:`hpcvirt.simulate.report`."""
    environment = templates.environment('hpcvirt.cmd.simulate')
    html: str = environment.get_template('simulate.html.j2').render(
        found=found, title=TITLE, marks={},
        introduction=[*report.describe_input(found)],
        notes=[*report.list_notes(found)],
        heading=report.first_heading(found),
        causes=_CAUSES, lost=[*_lost(found)], refused=[*_refused(found)],
        paired=[*_paired(found)],
        intervals=report.describe_intervals(found) if found['paired'] else '',
        time=[*_over_time(found)],
        first='the first seed' if found['workload']['replays'] > 1 else '')
    return html + '\n'


def _lost(found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    bounds = {each['name']: each['bound'] for each in found['choices']}
    most = max(each['lost_percent']
               for each in (*bounds.values(), *found['strategies']))
    for each in found['strategies']:
        hours = each['core_hours']
        # The core-hours of a few milliseconds are rounded to 0.
        parts = {cause: 100 * hours[f'lost_to_{cause}']
                 / (hours['offered'] or 1) for cause in _CAUSES}
        yield {
            'name': each['name'], 'lost': f'{each["lost_percent"]:.2f} %',
            'hours': f'{hours["lost"]:.0f}',
            'largest': f'{each["largest_accepted_percent"]:.1f} %',
            'moves': each['moves'],
            'drawing': drawings.draw_stack(
                parts, most, f'{each["name"]} loses '
                f'{each["lost_percent"]:.2f} % of the core-hours: '
                + ', '.join(f'{size:.2f} to {cause}'
                            for cause, size in parts.items()),
                bounds[each['choice']]['lost_percent'])}
    for each in bounds.values():
        lost = f'{each["lost_percent"]:.2f} %'
        yield {'name': each['name'], 'lost': lost, 'hours': '',
               'largest': '', 'moves': '', 'drawing': drawings.draw_stack(
                   {'busy': each['lost_percent']}, most,
                   f'{each["name"]} loses {lost} of the core-hours')}


def _refused(found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    most = max(sum(each['refused'].values())
               for each in found['strategies'])
    for each in found['strategies']:
        refused = each['refused']
        yield {'name': each['name'], 'accepted': each['accepted'],
               'refused': refused, 'drawing': drawings.draw_stack(
                   refused, most, f'{each["name"]} refuses ' + ', '.join(
                       f'{number} for {cause}'
                       for cause, number in refused.items()))}


def _paired(found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    reach = max((abs(number) for each in found['paired'] for number in (
        each['difference_percent'], *(each['interval_percent'] or ()))),
        default=0.0)
    for each in found['paired']:
        ends = each['interval_percent']
        words = report.format_interval(each)
        yield {**each, 'more': f'{each["difference_percent"]:+.2f}',
               'interval': words, 'drawing': drawings.interval(
                   each['difference_percent'], ends and tuple(ends), reach,
                   f'{each["strategy"]} loses '
                   f'{each["difference_percent"]:+.2f} points more than '
                   f'{each["reference"]}, interval {words}')}


def _over_time(found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    points = [point for each in found['strategies']
              for point in each['over_time']]
    pages_gib = max((point['stranded_pages_mib'] for point in points),
                    default=0) / 1024
    across = max((100 * _across(point) for point in points), default=0)
    for each in found['strategies']:
        name, own = each['name'], each['over_time']
        used = (f'{each["utilisation_percent"]:.1f} % of the CPUs used, '
                f'{each["stranded_cpus_percent"]:.1f} % stranded')
        pages = f'{each["stranded_pages_mib"] / 1024:.0f} GiB stranded'
        guests = (f'{each["across_sockets_percent"]:.1f} % of the guests '
                  'across sockets')
        yield {'name': name, 'charts': [
            {'caption': used, 'drawing': drawings.cpus(
                own, each['cpus'], f'{name} over time: {used}')},
            {'caption': pages, 'drawing': drawings.curve(
                own, lambda point: point['stranded_pages_mib'] / 1024,
                pages_gib, f'{pages_gib:.0f}',
                f'{name} over time: {pages}')},
            {'caption': guests, 'drawing': drawings.curve(
                own, lambda point: 100 * _across(point), across,
                f'{across:.0f} %', f'{name} over time: {guests}')}]}


def _across(point: Mapping[str, Any]) -> float:
    return (point['across_sockets'] / point['guests'] if point['guests']
            else 0.0)

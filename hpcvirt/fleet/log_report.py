# SPDX-License-Identifier: Apache-2.0

"""Write what a log has about requests, as a document and as tables.

A refused request is written as ``hpcvirt explain`` writes a fleet, with the
hosts that reached the filter.
"""

import textwrap
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from hpcvirt import printable
from hpcvirt import text_table
from hpcvirt import words
from hpcvirt.fit import decision_log
from hpcvirt.fit import reasons
from hpcvirt.fleet import explain_report
from hpcvirt.fleet import log_reading
from hpcvirt.fleet import verdict

#: Other refusals that the table names.
_MAX_OTHERS = 20

_OTHERS = ('Time', 'Request', 'Flavor', 'Hosts', 'Why')
_REASONS = ('Requests', 'Hosts', 'hpcvirt', 'Nova', 'Why')
_FLAVORS = ('Flavor', 'Requests', 'Differing', 'Hosts')
_NUMBERS = {'Requests', 'Hosts', 'Differing'}

#: What Nova does.
_DECISIONS = {
    decision_log.Disagreement.HPCVIRT_REFUSES: 'passes',
    decision_log.Disagreement.NOVA_REFUSES: 'refuses',
    decision_log.Disagreement.NOVA_FAILS: 'fails',
}


def document(found: log_reading.Found) -> dict[str, Any]:
    """Turn what was found into the document of explain.

    ``hosts`` has the hosts that the log names; ``refused`` says how many there
    were of each group, and what else the log has of the request.
    """
    refusals = list(found.refusals.values())
    last = (_refusal(refusals[-1]) if refusals else
            {**explain_report.document((), ()), 'fits': None, 'refused': None})
    return {**last, 'refused_requests': found.refused,
            'refusals': [_sum_up(groups) for groups in refusals],
            'shadow': _shadow(found) if found.shadow else None,
            'unreadable': found.unreadable}


def _request(groups: Sequence[decision_log.RefusedHosts]) -> dict[str, Any]:
    return {**{name: getattr(groups[0], name) for name in (
        'time', 'request_id', 'global_request_id', 'instance', 'flavor')},
        'hosts': groups[0].of}


def _sum_up(groups: Sequence[decision_log.RefusedHosts]) -> dict[str, Any]:
    counts: dict[str, int] = {}
    for group in groups:
        counts[group.root.value] = (counts.get(group.root.value, 0)
                                    + group.hosts)
    return {**_request(groups), 'reasons': counts}


def _refusal(groups: Sequence[decision_log.RefusedHosts]) -> dict[str, Any]:
    written = [{'code': group.code.value, 'root': group.root.value,
                'step': verdict.step_of(group.code).value,
                'hosts': group.hosts, 'names': group.examples.split(', '),
                'reason': group.reason} for group in groups]
    verdicts = [verdict.HostVerdict(name, verdict.step_of(group.code),
                                    group.code, group.root, group.reason)
                for group in groups for name in group.examples.split(', ')]
    return {**explain_report.document(verdicts, ()), 'refused': {
        **_request(groups), 'asked': groups[0].asked, 'groups': written,
        'other_hosts': groups[0].of - sum(group.hosts for group in groups)}}


def _shadow(found: log_reading.Found) -> dict[str, Any]:
    return {
        **found.shadow,
        'by_reason': [
            {'direction': direction.value, 'code': code and code.value,
             **counts, 'examples': found.examples[direction, code]}
            for (direction, code), counts in sorted(
                found.differences.items(),
                key=lambda item: (-item[1]['requests'], item[0][0]))],
        'by_flavor': [
            {'name': name, **counts} for name, counts in sorted(
                found.flavors.items(),
                key=lambda item: (-item[1]['differing'], item[0]))],
        'error': found.error,
    }


def text(plain: Mapping[str, Any], width: int | None = None) -> str:
    """Draw the last refusal, the list of the others, and shadow mode.

    :param plain: the document
    :param width: columns of the terminal, None if there is none
    """
    room = width or text_table.WIDTH
    blocks = []
    if plain['refused']:
        blocks += _draw_refusal(plain['refused'], room)
    if plain['refusals'][:-1]:
        blocks.append(_draw_others(plain['refusals'][:-1],
                                   plain['refused_requests'] - 1, room))
    if plain['shadow']:
        blocks += _draw_shadow(plain['shadow'], room)
    if plain['unreadable']:
        blocks.append(
            f'{words.count_noun(plain["unreadable"], "line")} of hpcvirt '
            'cannot be read; a line may be cut.\n')
    return '\n'.join(blocks)


def _draw_refusal(item: Mapping[str, Any], room: int) -> list[str]:
    blocks = [
        _fill(f'At {_time(item)} nova-scheduler refused the request '
              f'{item["request_id"] or "(without id)"} for the instance '
              f'{item["instance"] or "(without id)"}. It asked for '
              f'{item["asked"]}.', room),
        printable.escape(
            f'{item["flavor"]} fits on 0 of '
            f'{words.count_noun(item["hosts"], "host")} that reached the '
            'filter.') + '\n',
        text_table.draw(explain_report.HEADINGS, map(_row, item['groups']),
                        {'Hosts'}, room)]
    if item['other_hosts'] > 0:
        blocks.append(f'{words.count_noun(item["other_hosts"], "host")} more '
                      'failed for other reasons, which the log leaves out.\n')
    return blocks


def _row(group: Mapping[str, Any]) -> tuple[str, ...]:
    example = f'for example {group["names"][0]}: ' * (group['hosts'] > 1)
    return (str(group['hosts']),
            words.join_names(group['names'], 'hosts', group['hosts']),
            group['step'], example + group['reason'])


def _draw_others(items: Sequence[Mapping[str, Any]], total: int,
                 room: int) -> str:
    shown = items[:-_MAX_OTHERS - 1:-1]
    title = f'{words.count_noun(total, "other refusal")} in this log'
    if total > len(shown):
        title += f'; the last {len(shown)} are'
    return f'{title}:\n\n' + text_table.draw(
        _OTHERS, [(_time(item), item['request_id'] or item['instance'] or '-',
                   item['flavor'], str(item['hosts']),
                   reasons.tally(item['reasons'])) for item in shown],
        {'Hosts'}, room)


def _time(item: Mapping[str, Any]) -> str:
    return f'{item["time"][:19].replace("T", " ")} UTC'


def _draw_shadow(found: Mapping[str, Any], room: int) -> list[str]:
    hosts, requests = (
        {name: words.count_noun(found[name], noun) for name in names}
        for noun, names in (
            ('host', ('compared',)),
            ('request', ('requests', 'differing', 'only_nova_has_a_host',
                         'only_hpcvirt_has_a_host', 'errors'))))
    blocks = [_fill(
        f'In shadow mode, hpcvirt and Nova judged {hosts["compared"]} for '
        f'{requests["requests"]}. They disagree for {requests["differing"]}. '
        f'With filter_mode = enforce, {requests["only_nova_has_a_host"]} '
        'would have found no host although Nova leaves one, and '
        f'{requests["only_hpcvirt_has_a_host"]} would have found one although '
        'Nova leaves none.', room)]
    if found['by_reason']:
        blocks.append(text_table.draw(_REASONS, [
            (str(kind['requests']), str(kind['hosts']), 'refuses'
             if kind['code'] else 'passes', _DECISIONS[kind['direction']],
             _why(kind)) for kind in found['by_reason']], _NUMBERS, room))
        blocks.append(''.join(
            _fill(f'{_why(kind)}, for example: {", ".join(kind["examples"])}',
                  room) for kind in found['by_reason']))
        blocks.append(text_table.draw(_FLAVORS, [
            (kind['name'], str(kind['requests']), str(kind['differing']),
             str(kind['hosts'])) for kind in found['by_flavor']],
            _NUMBERS, room))
    left_out = found['hosts'] - found['compared']
    if left_out > 0:
        blocks.append(_fill(
            f'{words.count_noun(left_out, "host")} not compared, because '
            "Nova's filter would have taken too long.", room))
    if found['error'] is not None:
        blocks.append(_fill(f'The comparison of {requests["errors"]} failed: '
                            f'{found["error"]}', room))
    return blocks


def _why(kind: Mapping[str, Any]) -> str:
    return reasons.KINDS[kind['code']] if kind['code'] else 'fits by hpcvirt'


def _fill(text: str, room: int) -> str:
    return textwrap.fill(printable.escape(text), room,
                         break_on_hyphens=False) + '\n'

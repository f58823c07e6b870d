# SPDX-License-Identifier: Apache-2.0

"""Write what a log has about requests, as a document and as tables.

A refused request is written as ``hpcvirt explain`` writes a fleet, with the
hosts that reached the filter.
"""

import textwrap
from collections.abc import Sequence
from typing import Any

from hpcvirt import printable
from hpcvirt import serialization
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

#: What hpcvirt and what Nova do.
_DECISIONS = {
    decision_log.Disagreement.HPCVIRT_REFUSES: ('refuses', 'passes'),
    decision_log.Disagreement.NOVA_REFUSES: ('passes', 'refuses'),
    decision_log.Disagreement.NOVA_FAILS: ('passes', 'fails'),
}


def document(found: log_reading.Found) -> dict[str, Any]:
    """Turn what was found into the document of explain.

    ``hosts`` has the hosts that the log names; ``refused`` says how many there
    were of each group, and what else the log has of the request.
    """
    last = ({'schema_version': 1, 'fits': None, 'hosts': [], 'nearest': [],
             'refused': None} if not found.refusals
            else _refusal(found.refusals[-1]))
    return {**last,
            'refusals': [{
                **_request(item.first), 'hosts': item.first.of,
                'reasons': {code.value: hosts for code, hosts
                            in item.count_roots().items()}}
                for item in found.refusals],
            'shadow': _shadow(found.shadow)
            if found.shadow.requests else None,
            'unreadable': found.unreadable}


def _request(line: decision_log.RefusedHosts) -> dict[str, Any]:
    return {name: getattr(line, name) for name in (
        'time', 'request_id', 'global_request_id', 'instance', 'flavor')}


def _refusal(item: log_reading.Refusal) -> dict[str, Any]:
    verdicts = [verdict.HostVerdict(name, verdict.step_of(group.code),
                                    group.code, group.root, group.reason)
                for group in item.groups
                for name in group.examples.split(', ')]
    groups = [{'code': group.code.value, 'root': group.root.value,
               'step': verdict.step_of(group.code).value,
               'hosts': group.hosts, 'names': group.examples.split(', '),
               'reason': group.reason} for group in item.groups]
    return {**explain_report.document(verdicts, ()), 'refused': {
        **_request(item.first), 'asked': item.first.asked,
        'hosts': item.first.of, 'groups': groups,
        'other_hosts': item.other_hosts}}


def _shadow(found: log_reading.Shadow) -> dict[str, Any]:
    return {
        'requests': found.requests, 'differing': found.differing,
        'hosts': found.hosts, 'compared': found.compared,
        'only_nova_has_a_host': found.only_nova,
        'only_hpcvirt_has_a_host': found.only_hpcvirt,
        'by_reason': [
            {'direction': direction.value, 'code': code and code.value,
             **serialization.dump(kind)}
            for (direction, code), kind in _sorted(found)],
        'by_flavor': [{'name': name, **serialization.dump(flavor)}
                      for name, flavor in found.by_flavor.items()],
        'errors': found.errors, 'error': found.error,
    }


def text(found: log_reading.Found, width: int | None = None) -> str:
    """Draw the last refusal, the list of the others, and shadow mode.

    :param width: columns of the terminal, None if there is none
    """
    room = width or text_table.WIDTH
    blocks = []
    items = list(found.refusals)
    if items:
        blocks += _draw_refusal(items[-1], room)
    if items[:-1]:
        blocks.append(_draw_others(items[:-1], found.refused - 1, room))
    if found.shadow.requests:
        blocks += _draw_shadow(found.shadow, room)
    if found.unreadable:
        blocks.append(
            f'{words.count_noun(found.unreadable, "line")} of hpcvirt cannot '
            'be read; a line may be cut.\n')
    return '\n'.join(blocks)


def _draw_refusal(item: log_reading.Refusal, room: int) -> list[str]:
    first = item.first
    blocks = [
        _fill(f'At {_time(first)} nova-scheduler refused the request '
              f'{first.request_id or "(without id)"} for the instance '
              f'{first.instance or "(without id)"}. It asked for '
              f'{first.asked}.', room),
        printable.escape(
            f'{first.flavor} fits on 0 of '
            f'{words.count_noun(first.of, "host")} that reached the filter.')
        + '\n',
        text_table.draw(explain_report.HEADINGS, [
            _row(group) for group in item.groups], {'Hosts'}, room)]
    if item.other_hosts > 0:
        blocks.append(f'{words.count_noun(item.other_hosts, "host")} more '
                      'failed for other reasons, which the log leaves out.\n')
    return blocks


def _row(group: decision_log.RefusedHosts) -> tuple[str, ...]:
    names = group.examples.split(', ')
    why = group.reason
    if group.hosts > 1:
        why = f'for example {names[0]}: {why}'
    return (str(group.hosts), words.join_names(names, 'hosts', group.hosts),
            verdict.step_of(group.code), why)


def _draw_others(items: Sequence[log_reading.Refusal], total: int,
                 room: int) -> str:
    shown = list(reversed(items))[:_MAX_OTHERS]
    title = f'{words.count_noun(total, "other refusal")} in this log'
    if total > len(shown):
        title += f'; the last {len(shown)} are'
    return f'{title}:\n\n' + text_table.draw(
        _OTHERS, [(_time(item.first),
                   item.first.request_id or item.first.instance or '-',
                   item.first.flavor, str(item.first.of),
                   reasons.tally(item.count_roots()))
                  for item in shown], {'Hosts'}, room)


def _time(line: decision_log.RefusedHosts) -> str:
    return line.time.replace('T', ' ').replace('+00:00', ' UTC')


def _draw_shadow(found: log_reading.Shadow, room: int) -> list[str]:
    blocks = [_fill(
        f'In shadow mode, hpcvirt and Nova judged '
        f'{words.count_noun(found.compared, "host")} for '
        f'{words.count_noun(found.requests, "request")}. They disagree for '
        f'{words.count_noun(found.differing, "request")}. With '
        'filter_mode = enforce, '
        f'{words.count_noun(found.only_nova, "request")} would have found no '
        'host although Nova leaves one, and '
        f'{words.count_noun(found.only_hpcvirt, "request")} would have found '
        'one although Nova leaves none.', room)]
    if found.by_reason:
        blocks.append(text_table.draw(_REASONS, [
            (str(kind.requests), str(kind.hosts), *_decisions(direction, code),
             _why(code)) for (direction, code), kind in _sorted(found)],
            _NUMBERS, room))
        blocks.append(''.join(
            _fill(f'{_why(code)}, for example: {", ".join(kind.examples)}',
                  room) for (_, code), kind in _sorted(found)))
        blocks.append(text_table.draw(_FLAVORS, [
            (name, str(flavor.requests), str(flavor.differing),
             str(flavor.hosts))
            for name, flavor in sorted(
                found.by_flavor.items(),
                key=lambda item: (-item[1].differing, item[0]))],
            _NUMBERS, room))
    if found.compared < found.hosts:
        blocks.append(_fill(
            f'{words.count_noun(found.hosts - found.compared, "host")} not '
            "compared, because Nova's filter would have taken too long.",
            room))
    if found.error is not None:
        blocks.append(_fill(
            f'The comparison of {words.count_noun(found.errors, "request")} '
            f'failed: {found.error}', room))
    return blocks


def _why(code: reasons.Code | None) -> str:
    return reasons.KINDS[code] if code else 'fits by hpcvirt'


def _decisions(direction: decision_log.Disagreement,
               code: reasons.Code | None) -> tuple[str, str]:
    ours, novas = _DECISIONS[direction]
    return ('refuses' if code else ours), novas


def _sorted(found: log_reading.Shadow) -> list[
        tuple[tuple[decision_log.Disagreement, reasons.Code | None],
              log_reading.DifferenceCounts]]:
    return sorted(found.by_reason.items(),
                  key=lambda item: (-item[1].requests, item[0][0]))


def _fill(text: str, room: int) -> str:
    return textwrap.fill(printable.escape(text), room,
                         break_on_hyphens=False) + '\n'

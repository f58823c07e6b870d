# SPDX-License-Identifier: Apache-2.0

"""Write why a guest fits or not, or what a log says, as document and tables.

A request that a log says was refused is written as a guest that does not fit,
with the hosts that reached the filter.
"""

import textwrap
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any

from hpcvirt import printable
from hpcvirt import serialization
from hpcvirt import text_table
from hpcvirt import words
from hpcvirt.fit import decision_log
from hpcvirt.fit import reasons as fit_reasons
from hpcvirt.fleet import changes
from hpcvirt.fleet import log_reading
from hpcvirt.fleet import moving
from hpcvirt.fleet import verdict
from hpcvirt.model import cpuset

SCHEMA_VERSION = 1

#: The most hosts that are listed with their weights.
_MAX_WEIGHED = 5

_WEIGHTS = ('Host', 'Weight', 'Parts')

HEADINGS = ('Hosts', 'Names', 'Step', 'Why')
_CLASS = 'Class'

#: The most other refusals that the table names.
_MAX_OTHERS = 20

_OTHERS = ('Time', 'Request', 'Flavor', 'Hosts', 'Why')
_KINDS = ('Requests', 'Flavor', 'Step', 'Last (UTC)', 'Why')
_DIFFERENCES = ('Requests', 'Hosts', 'Flavor', 'Difference', 'Why')
_NUMBERS = {'Requests', 'Hosts'}


def document(verdicts: Sequence[verdict.HostVerdict],
             tried: Sequence[changes.TriedChanges]) -> dict[str, Any]:
    """Write the verdicts as dicts, lists, numbers and strings."""
    return {
        'schema_version': SCHEMA_VERSION,
        'fits': any(item.fits for item in verdicts),
        'hosts': [{'name': item.name, 'fits': item.fits,
                   'step': item.step and item.step.value,
                   'code': item.code and item.code.value,
                   'reason': item.reason, 'cells': list(item.cells),
                   'cpus': sorted(item.cpus), 'weight': item.weight,
                   'scores': dict(item.scores),
                   'compared': item.compared, 'class': item.fleet_class,
                   'lacks': item.lacks}
                  for item in verdicts],
        'tried': [{'kind': trial.kind.value, 'helps': bool(trial.changes)}
                  for trial in tried],
        'nearest': [_describe(change, kind)
                    for change, kind in _list_changes(tried)],
    }


def _list_changes(tried: Sequence[changes.TriedChanges],
                  ) -> list[tuple[changes.Change, changes.ChangeKind]]:
    found = []
    for trial in tried:
        found += [(change, trial.kind) for change in trial.changes]
    return found


def _describe(change: changes.Change,
              kind: changes.ChangeKind) -> dict[str, Any]:
    """Write a change as data; what it does not change is null or empty."""
    return {
        'change': str(change), 'proven': True, 'kind': kind.value,
        'host': change.host, 'cells': list(change.cells),
        'guest': change.guest and serialization.dump(change.guest.shape),
        'pages': change.pages and serialization.dump(change.pages),
        'moves': [{'id': move.id, 'source': move.source,
                   'target': move.target, 'cold': move.cold}
                  for move in change.moves]}


def text(name: str, verdicts: Sequence[verdict.HostVerdict],
         tried: Sequence[changes.TriedChanges],
         width: int | None = None) -> str:
    """Write the verdicts as a table.

    Hosts of one class with equal reasons share a line, which names the nearest
    of them first.

    :param name: the name of the flavor
    :param width: the columns of the terminal; None without a terminal
    """
    room = width or text_table.WIDTH
    fitting = sum(item.fits for item in verdicts)
    hosts = words.count_noun(len(verdicts), 'host')
    headings: tuple[str, ...] = HEADINGS
    groups = _alike(verdicts)
    rows = [_row(group) for group in groups]
    if len({item.fleet_class for item in verdicts}) > 1:
        headings = (_CLASS, *HEADINGS)
        rows = [(group[0].fleet_class or '-', *row)
                for group, row in zip(groups, rows, strict=True)]
    blocks = [
        f'{name} fits on {fitting} of {hosts}.\n',
        text_table.draw(headings, rows, {'Hosts'}, room)]
    ranked = sorted((item for item in verdicts if item.scores),
                    key=lambda item: (
                        -item.weight, words.natural_order(item.name)))
    if ranked:
        blocks.append('nova-scheduler prefers:\n' + text_table.draw(
            _WEIGHTS, [_weight(item) for item in ranked[:_MAX_WEIGHED]],
            {'Weight'}, room))
        if ranked[0].compared:
            blocks.append(textwrap.fill(
                f'HPCTopologyWeigher compares what the instance takes from '
                f'others. On {ranked[0].name}, {ranked[0].compared}.', room,
                break_on_hyphens=False) + '\n')
    nearest = [change for change, _ in _list_changes(tried)]
    if nearest:
        lines = ['It fits with any of these changes, each of which was tried:']
        for change in nearest:
            lines += textwrap.wrap(str(change), room, initial_indent='  - ',
                                   subsequent_indent='    ',
                                   break_on_hyphens=False)
        moves: list[moving.Move] = []
        for change in nearest:
            moves += change.moves
        if any(move.cold for move in moves):
            lines.append('"hpcvirt make-room --cold" makes cold moves.')
        blocks.append('\n'.join(lines) + '\n')
    elif not fitting:
        blocks.append(textwrap.fill(
            'It does not fit with any of the changes that were tried: '
            f'{", ".join(map(str, tried))}.', room,
            break_on_hyphens=False) + '\n')
    return '\n'.join(blocks)


def _alike(verdicts: Sequence[verdict.HostVerdict],
           ) -> list[list[verdict.HostVerdict]]:
    """Group verdicts by class and reason, the nearest hosts first.

    Hosts on which the guest fits come before all others.
    """
    groups: dict[object, list[verdict.HostVerdict]] = {}
    for item in sorted(verdicts, key=lambda item: (
            not item.fits, item.lacks)):
        key = (item.fleet_class, item.step, item.code, item.root,
               item.resource)
        groups.setdefault(key, []).append(item)
    return list(groups.values())


def _weight(item: verdict.HostVerdict) -> tuple[str, ...]:
    parts = sorted(item.scores.items(), key=lambda part: -abs(part[1]))
    return (item.name, f'{item.weight:.3f}',
            ', '.join(f'{name} {score:.3f}' for name, score in parts))


def _row(group: Sequence[verdict.HostVerdict]) -> tuple[str, ...]:
    first = group[0]
    names = [item.name for item in group]
    reasons = {(item.reason, item.cells, item.cpus) for item in group}
    why = first.reason or 'it fits'
    if first.cells:
        why += f' on {fit_reasons.cells(first.cells)}'
    if first.cpus:
        why += f', CPUs {cpuset.render(first.cpus)}'
    if len(reasons) > 1:
        why = f'for example {first.name}: {why}'
    return (str(len(group)), words.shorten_names(names),
            first.step or '-', why)


def log_document(found: log_reading.Found) -> dict[str, Any]:
    """Write the decisions as dicts, lists, numbers and strings.

    ``hosts`` has the hosts that the log names for the last refused request,
    and ``refusals`` the records of each request.
    """
    refusals = _in_order(found)
    plain = document(_judge_hosts(refusals[-1]) if refusals else [], ())
    return {**plain, 'fits': plain['fits'] if refusals else None,
            'refused_requests': found.refused,
            'refusals': serialization.dump(refusals),
            'kinds': [{'flavor': flavor, 'step': step, 'kind': kind,
                       'requests': number, 'last': serialization.dump(last)}
                      for (flavor, step, kind), (number, last)
                      in _most(found)],
            'shadow': {
                **found.shadow, 'error': found.error, 'differences': [
                    {**serialization.dump(first), **sums} for sums, first
                    in found.differences.values()]} if found.shadow else None,
            'unreadable': found.unreadable}


def log_text(found: log_reading.Found, width: int | None = None) -> str:
    """Write the last refused request, a table of others, and shadow mode.

    :param width: the columns of the terminal; None without a terminal
    """
    room = width or text_table.WIDTH
    *others, last = _in_order(found) or [[]]
    blocks = []
    if last:
        blocks += _draw_refusal(last, room)
    if others:
        blocks += [_draw_others(others, found.refused - 1, room),
                   'What is refused most:\n', text_table.draw(_KINDS, [
                       (str(number), flavor, step, _time(last)[:16],
                        _why(last)) for (flavor, step, _), (number, last)
                       in _most(found)[:_MAX_OTHERS]], {'Requests'}, room)]
    if found.shadow:
        blocks += _draw_shadow(found, room)
    # Other refusals are in a log of nova-scheduler, which was given too.
    if found.no_valid_host and all(step == 'build'
                                   for _, step, _ in found.kinds):
        blocks.append(_fill(
            f'{words.count_noun(found.no_valid_host, "line")} of '
            'nova-conductor say that there is no valid host; why, is in the '
            'log of nova-scheduler.', room))
    if found.unreadable:
        blocks.append(f'{count_unreadable(found)}.\n')
    return '\n'.join(blocks)


def count_unreadable(found: log_reading.Found) -> str:
    """Say how many lines cannot be read."""
    return (f'{words.count_noun(found.unreadable, "line")} of hpcvirt cannot '
            'be read: cut, or possibly forged by a user')


def _judge_hosts(refused: Iterable[log_reading.Refusal],
                 ) -> list[verdict.HostVerdict]:
    """List the verdicts on the hosts that the log names for a request."""
    verdicts: list[verdict.HostVerdict] = []
    for group in refused:
        if isinstance(group, decision_log.RefusedHosts):
            step = verdict.step_of(group.code)
            verdicts += [verdict.HostVerdict(name, step, group.code,
                                             group.root, group.reason)
                         for name in group.examples.split(', ')]
    return verdicts


def _in_order(found: log_reading.Found) -> list[list[log_reading.Refusal]]:
    """Sort refusals by time, since several logs may be read."""
    return sorted(found.refusals.values(), key=lambda groups: groups[0].time)


def _most(found: log_reading.Found) -> list[tuple[
        tuple[str, str, str], tuple[int, log_reading.Refusal]]]:
    return sorted(found.kinds.items(), key=lambda item: -item[1][0])


def _why(item: log_reading.Refusal) -> str:
    return (fit_reasons.KINDS[item.root] if isinstance(
        item, decision_log.RefusedHosts) else item.reason)


def _draw_refusal(groups: Sequence[log_reading.Refusal],
                  room: int) -> list[str]:
    first = groups[0]
    request = (f'the request {first.request_id or "(without id)"} for the '
               f'instance {first.instance or "(without id)"}')
    if isinstance(first, log_reading.FailedRequest):
        where = f'{first.step} on {first.examples}'.removesuffix(' on ')
        return [_fill(f'At {_time(first)} {request} failed at the step '
                      f'{where}: {first.reason}.', room)]
    blocks = [
        _fill(f'At {_time(first)} nova-scheduler refused {request}. It '
              f'requested {first.asked}.', room),
        printable.escape(
            f'{first.flavor} fits on 0 of {words.count_noun(first.of, "host")}'
            ' that reached the filter.') + '\n',
        text_table.draw(HEADINGS, map(_log_row, groups),
                        {'Hosts'}, room)]
    left_out = first.of - sum(group.hosts for group in groups)
    if left_out > 0:
        blocks.append(f'{words.count_noun(left_out, "host")} more '
                      'failed for other reasons, which the log leaves out.\n')
    return blocks


def _log_row(group: log_reading.Refusal) -> tuple[str, ...]:
    names = group.examples.split(', ')
    example = f'for example {names[0]}: ' * (group.hosts > 1)
    return (str(group.hosts), words.shorten_names(names, group.hosts),
            log_reading.classify(group)[1], example + group.reason)


def _draw_others(items: Sequence[Sequence[log_reading.Refusal]],
                 total: int, room: int) -> str:
    shown = items[:-_MAX_OTHERS - 1:-1]
    title = f'{words.count_noun(total, "other refusal")} in this log'
    if total > len(shown):
        title += f'; the last {len(shown)} are'
    return f'{title}:\n\n' + text_table.draw(
        _OTHERS, [(_time(first), _name(first), first.flavor,
                   str(getattr(first, 'of', first.hosts)),
                   ', '.join(_why(group) + f' ({group.hosts})' * (
                       group.hosts > 0)
                             for group in (first, *more)))
                  for first, *more in shown], {'Hosts'}, room)


def _time(item: decision_log.LoggedRequest) -> str:
    # The log may have none, such as that of "journalctl --output cat".
    if not item.time:
        return 'an unknown time'
    return f'{item.time[:19].replace("T", " ")} UTC'


def _name(item: decision_log.LoggedRequest) -> str:
    return item.request_id or item.instance or '-'


def _draw_shadow(found: log_reading.Found, room: int) -> list[str]:
    sums = found.shadow
    requests = {name: words.count_noun(number, 'request')
                for name, number in sums.items()}
    blocks = [_fill(
        'In shadow mode, hpcvirt and Nova judged '
        f'{words.count_noun(sums["compared"], "host")} for '
        f'{requests["requests"]}. They disagree for {requests["differing"]}. '
        f'With filter_mode = enforce, {requests["only_nova_has_a_host"]} '
        'would have found no host although Nova leaves one, and '
        f'{requests["only_hpcvirt_has_a_host"]} would have found one although '
        'Nova leaves none.', room)]
    kinds = sorted(found.differences.values(),
                   key=lambda kind: -kind[0]['requests'])
    if kinds:
        blocks.append(text_table.draw(_DIFFERENCES, [
            (str(counts['requests']), str(counts['hosts']), first.flavor,
             first.direction, fit_reasons.KINDS[first.code] if first.code
             else 'fits by hpcvirt') for counts, first in kinds],
            _NUMBERS, room))
        blocks.append(''.join(
            _fill(f'For example {_name(first)}: {first.reason}', room)
            for _, first in kinds))
    left_out = sums['hosts'] - sums['compared']
    if left_out > 0:
        blocks.append(_fill(
            f'{words.count_noun(left_out, "host")} not compared, because '
            "Nova's filter would have taken too long.", room))
    if found.error is not None:
        blocks.append(_fill(f'The comparison of {requests["errors"]} failed: '
                            f'{found.error}', room))
    return blocks


def _fill(line: str, room: int) -> str:
    return textwrap.fill(printable.escape(line), room,
                         break_on_hyphens=False) + '\n'

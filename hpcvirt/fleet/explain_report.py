# SPDX-License-Identifier: Apache-2.0

"""Write why a guest fits or not, as a document and a table."""

import textwrap
from collections.abc import Sequence
from typing import Any

from hpcvirt import text_table
from hpcvirt import words
from hpcvirt.fit import reasons as fit_reasons
from hpcvirt.fleet import changes
from hpcvirt.fleet import verdict
from hpcvirt.model import cpuset

SCHEMA_VERSION = 1

#: The most hosts that are listed with their weights.
_MAX_WEIGHED = 5

_WEIGHTS = ('Host', 'Weight', 'Parts')

HEADINGS = ('Hosts', 'Names', 'Step', 'Why')


def document(verdicts: Sequence[verdict.HostVerdict],
             nearest: Sequence[changes.Change]) -> dict[str, Any]:
    """Write the verdicts as dicts, lists, numbers and strings."""
    return {
        'schema_version': SCHEMA_VERSION,
        'fits': any(item.fits for item in verdicts),
        'hosts': [{'name': item.name, 'fits': item.fits,
                   'step': item.step and item.step.value,
                   'code': item.code and item.code.value,
                   'reason': item.reason, 'cells': list(item.cells),
                   'cpus': sorted(item.cpus), 'weight': item.weight,
                   'scores': dict(item.scores)}
                  for item in verdicts],
        'nearest': [{'change': str(change), 'proven': True}
                    for change in nearest],
    }


def text(name: str, verdicts: Sequence[verdict.HostVerdict],
         nearest: Sequence[changes.Change], width: int | None = None) -> str:
    """Write the verdicts as a table; hosts with equal reasons share a line.

    :param name: the name of the flavor
    :param width: the columns of the terminal; None without a terminal
    """
    room = width or text_table.WIDTH
    fitting = sum(item.fits for item in verdicts)
    hosts = words.count_noun(len(verdicts), 'host')
    blocks = [
        f'{name} fits on {fitting} of {hosts}.\n',
        text_table.draw(HEADINGS, [_row(group) for group
                                    in _alike(verdicts)], {'Hosts'}, room)]
    ranked = sorted((item for item in verdicts if item.scores),
                    key=lambda item: (
                        -item.weight, words.natural_order(item.name)))
    if ranked:
        blocks.append('nova-scheduler prefers:\n' + text_table.draw(
            _WEIGHTS, [_weight(item) for item in ranked[:_MAX_WEIGHED]],
            {'Weight'}, room))
    if nearest:
        lines = ['It fits with any of these changes, each of which was tried:']
        for change in nearest:
            lines += textwrap.wrap(str(change), room, initial_indent='  - ',
                                   subsequent_indent='    ',
                                   break_on_hyphens=False)
        blocks.append('\n'.join(lines) + '\n')
    elif not fitting:
        blocks.append('It does not fit with any of the single changes that '
                      'were tried.\n')
    return '\n'.join(blocks)


def _alike(verdicts: Sequence[verdict.HostVerdict],
           ) -> list[list[verdict.HostVerdict]]:
    """Group verdicts by reason; hosts on which the guest fits come first."""
    groups: dict[object, list[verdict.HostVerdict]] = {}
    for item in sorted(verdicts, key=lambda item: not item.fits):
        groups.setdefault((item.step, item.code, item.root), []).append(item)
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

# SPDX-License-Identifier: Apache-2.0

"""Checks of the results of the demonstration."""

from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

from demo import fleet
from demo import transcript

#: The page that shows the output, and the command that it shows.
PAGE = 'README.rst'
COMMAND = 'tools/tox -e demo'


def check(fillings: Mapping[str, Any], places: Mapping[str, Any],
          others: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """Check the results.

    :returns: the title of each check, and its violations
    """
    rows: list[Mapping[str, Any]] = []
    drawn: list[Mapping[str, Any]] = []
    for filling in fillings.values():
        rows += filling['rows']
        drawn += filling['drawings']
    ours = places['hpcvirt']
    given_twice: list[str] = []
    for each in (*rows, *drawn, ours):
        given_twice += each['faults']
    return [
        ('every flavor was created, and is as planned when applied again',
         list(_flavors(fillings))),
        ('every flavor filled its hosts exactly, and one more was refused',
         list(_fills(rows))),
        ('no CPU or device has two owners, no cell is short of pages',
         given_twice),
        ('every refusal of hpcvirt has a reason', list(_unexplained(ours))),
        ('no guest that hpcvirt should place in one socket is in two',
         ours['state']['split']),
        ('benchmarks/seeds.py starts as many guests of this seed as Nova',
         list(_modelled(places, others['own']))),
    ]


def page(text: str) -> tuple[str, list[str]]:
    """Check that the README shows what the demonstration prints.

    :param text: the output
    """
    shown = [block for command, block
             in transcript.commands(fleet.ROOT / PAGE)
             if command == COMMAND]
    wrong = [f'{PAGE} shows other lines: {block}' for block in shown
             if not transcript.is_printed(block, text)]
    if not shown:
        wrong.append(f'{PAGE} shows nothing below {COMMAND}')
    return f'{PAGE} shows these figures', wrong


def _modelled(places: Mapping[str, Any],
              own: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    for name, place in places.items():
        for size, late in (('small', False), ('large', True)):
            started = sum(bool(each['host']) for each in place['answers']
                          if each['late'] is late)
            if started != own[name][size]:
                yield (f'{name}: {started} {size} guests, by the model'
                       f' {own[name][size]}')


def _flavors(fillings: Mapping[str, Any]) -> Iterator[str]:
    for filling in fillings.values():
        for first, second in zip(filling['steps'], filling['again'],
                                 strict=True):
            if not first['done'] or second['action'] != 'same':
                yield (f'{first["name"]}: {first["action"]}, then'
                       f' {second["action"]}')


def _fills(rows: list[dict[str, Any]]) -> Iterator[str]:
    for row in rows:
        exact = (row['booted'] == row['planned']
                 and row['left_pcpus'] == row['planned_left'])
        if not exact or row['one_more'] != 'ERROR':
            yield (f'{row["flavor"]} on {row["host"]}: {row["booted"]} of'
                   f' {row["planned"]} booted, {row["left_pcpus"]} PCPUs left'
                   f' (planned {row["planned_left"]}), one more is'
                   f' {row["one_more"]}')


def _unexplained(place: Mapping[str, Any]) -> Iterator[str]:
    for answer in place['answers']:
        if not answer['host'] and not answer['why'] and (
                answer['most_free'] >= answer['vcpus']):
            yield (f'{answer["label"]} {answer["flavor"]}: no reason, and a'
                   f' host had {answer["most_free"]} free PCPUs')

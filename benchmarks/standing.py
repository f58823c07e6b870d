# SPDX-License-Identifier: Apache-2.0

r"""Make the table of what moves gain: at a refusal, and beforehand.

Each log is replayed over fleets of benchmarks/study_fleets.py: with the
weigher alone, with two moves when a request is refused, and with moves made
beforehand after every request and after every tenth. These take time: the
memory of a guest is copied at 1,000 MiB/s, and it is on both hosts meanwhile.
benchmarks/README.rst has the command. Run it from the root of the repository.
Every result is a file in the folder, and is not computed again.
"""

import argparse
import csv
import itertools
import pathlib
import statistics
import sys
from collections.abc import Iterator
from collections.abc import Sequence

from benchmarks import replay
from benchmarks import study_fleets
from hpcvirt import exception
from hpcvirt import text_table

FLEETS = ('2 cells', '4 cells', '8 cells', 'mixed')
BASE = 'hpcvirt'
#: Strategy to its heading.
MOVED = {'hpcvirt+moves': 'at a refusal', 'hpcvirt+standing': 'beforehand',
         'hpcvirt+standing:10': 'every tenth'}


def table(rows: Sequence[replay.Row]) -> Iterator[list[str]]:
    """Yield the lines of the table: headings first."""
    yield ['Requests', 'Fleet', 'Lost without moves',
           *(f'Gained {words}' for words in MOVED.values()),
           *(f'Moves {words}' for words in MOVED.values())]
    pairs = dict.fromkeys((each.log, each.fleet) for each in rows)
    for log, fleet in pairs:
        yield _line(log, fleet, [each for each in rows if (
            each.log, each.fleet) == (log, fleet)])
    yield _line('all', 'all', rows)


def _line(log: str, fleet: str, rows: Sequence[replay.Row]) -> list[str]:
    moves = {name: statistics.fmean(
        100 * each.lost[name]['moves'] / each.lost[name]['requests']
        for each in rows) for name in MOVED}
    lost = statistics.fmean(each.lost[BASE]['lost_percent'] for each in rows)
    return [log, fleet, f'{lost:.1f}',
            *(str(replay.interval(rows, BASE, name)) for name in MOVED),
            *(f'{number:.1f}' for number in moves.values())]


def main(argv: Sequence[str] | None = None) -> int:
    """Compute what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('log', nargs='+', help='a log, a trace or cloud:N')
    parser.add_argument('--results', metavar='FOLDER', type=pathlib.Path,
                        required=True, help='where the results are')
    parser.add_argument('--fleet', nargs='+',
                        choices=list(study_fleets.FLEETS),
                        default=FLEETS, metavar='FLEET')
    parser.add_argument('--load', nargs='+', type=float,
                        default=[0.95])
    parser.add_argument('--csv', action='store_true',
                        help='print the table for the documentation')
    args = parser.parse_args(argv)
    args.results.mkdir(parents=True, exist_ok=True)
    try:
        rows = [replay.kept(args.results, log, name, load,
                            ','.join((BASE, *MOVED)))
                for log, name, load in itertools.product(
                    args.log, args.fleet, args.load)]
    except exception.HpcvirtError as exc:
        print(f'standing: {exc}', file=sys.stderr)
        return 2
    headings, *lines = table(rows)
    if args.csv:
        csv.writer(sys.stdout, lineterminator='\n').writerows(
            [headings, *lines])
    else:
        print(text_table.draw(headings, lines, headings[2:]))
    return 0


if __name__ == '__main__':
    sys.exit(main())

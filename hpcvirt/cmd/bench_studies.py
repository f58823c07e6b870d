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

"""``hpcvirt bench studies``."""

import argparse
import json
import sys
import textwrap
from collections.abc import Iterator

from hpcvirt.bench import claims
from hpcvirt.bench import library
from hpcvirt.bench import plain
from hpcvirt.bench import study
from hpcvirt.cmd import columns

_ABOUT = """\
Show the published studies: their cases, as data that can be run again, their
figures with ratios worked out from them, and where a document is at odds with
its own figures.
"""


def add(verbs: 'argparse._SubParsersAction[argparse.ArgumentParser]') -> None:
    """Add the verb."""
    parser = verbs.add_parser(
        'studies', help='show the published studies and their figures',
        description=_ABOUT)
    parser.add_argument('id', metavar='ID', nargs='?',
                        help=f'one of {", ".join(library.IDS)}; a list of '
                        'them if left out')
    parser.add_argument('--format', choices=('table', 'json'),
                        default='table', help='table (the default) or json')
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print one study or the list."""
    if args.id is None:
        every = library.every()
        if args.format == 'json':
            print(_json([_plain(made) for made in every]))
            return 0
        rows = [('ID', 'TITLE', 'CASES', 'SOURCE')]
        rows += [(made.id, made.title, str(len(made.cases)), made.source)
                 for made in every]
        sys.stdout.write(columns.lay_out(rows, frozenset({2})))
        return 0
    made = library.get(args.id)
    if args.format == 'json':
        print(_json(_plain(made)))
    else:
        sys.stdout.writelines(_text(made))
    return 0


def _json(document: object) -> str:
    return json.dumps(document, indent=2, allow_nan=False)


def _plain(made: study.Study) -> dict[str, object]:
    """The study as data, with what follows from its figures."""
    document: dict[str, object] = plain.to_plain(made)
    document['rows'] = [{**plain.to_plain(row), 'ratio': row.ratio}
                        for row in made.rows]
    document['claims'] = [
        {**plain.to_plain(checked.claim), 'computed': checked.computed,
         'agrees': checked.agrees} for checked in claims.check(made)]
    return document


def _text(made: study.Study) -> Iterator[str]:
    yield f'{made.id}: {made.title}\n'
    yield from _item(f'{made.document} ({made.source})', '  ')
    yield from _list('Set-up', made.setup)
    yield '\nCases\n'
    rows = [('CASE', 'SHAPE', 'HOSTS', 'WHAT', 'BENCHMARKS')]
    rows += [(case.id, case.guests.shape, str(case.hosts), case.text,
              _uses(case)) for case in made.cases]
    yield textwrap.indent(columns.lay_out(rows, frozenset({2})), '  ')
    yield '\nPublished, ratio = guest / native worked out\n'
    table = [('CASE', 'FIGURE', 'NATIVE', 'GUEST', 'UNIT', 'RATIO',
              'BETTER')]
    table += [_row(row) for row in made.rows]
    yield textwrap.indent(
        columns.lay_out(table, frozenset({2, 3, 5})), '  ')
    wrong = [checked for checked in claims.check(made) if not checked.agrees]
    yield from _list('At odds with its own figures', [
        f'{checked.claim.text}: printed {checked.claim.printed}, follows '
        f'{checked.computed:.4g} ({checked.claim.disputed})'
        for checked in wrong])
    yield from _list('Printed without what it follows from', made.unfounded)
    yield from _list('What to take from it', made.lessons)


def _uses(case: study.Case) -> str:
    variants: dict[str, list[str]] = {}
    for use in case.uses:
        variants.setdefault(use.variant, []).append(use.benchmark)
    return '; '.join(f'{" ".join(names)} ({variant})'
                     for variant, names in variants.items())


def _row(row: study.Row) -> tuple[str, str, str, str, str, str, str]:
    what = row.what + ''.join(f', {value} {name}' if value.isdigit() else ''
                              for name, value in row.scope.items())
    relation = f'{row.relation} ' if row.relation else ''
    return (row.case, what, _number(row.native, row.native_spread),
            _number(row.guest, None), row.unit, f'{relation}{row.ratio:.4f}',
            row.direction)


def _number(value: float | None, spread: float | None) -> str:
    if value is None:
        return '-'
    return f'{value:.6g}' + (f' +/- {spread:g}' if spread else '')


def _list(title: str, lines: object) -> Iterator[str]:
    texts = list(lines) if isinstance(lines, list | tuple) else []
    if texts:
        yield f'\n{title}\n'
        for text in texts:
            yield from _item(text, '  - ')


def _item(text: str, bullet: str) -> Iterator[str]:
    yield textwrap.fill(text, 78, initial_indent=bullet,
                        subsequent_indent=' ' * len(bullet),
                        break_on_hyphens=False) + '\n'

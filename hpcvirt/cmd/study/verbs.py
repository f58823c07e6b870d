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
import dataclasses
import json
import os
import sys
import textwrap
from collections.abc import Iterator

from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt import text_table
from hpcvirt.bench.model import record
from hpcvirt.bench.results import location
from hpcvirt.bench.studies import catalogue as study_catalogue
from hpcvirt.bench.studies import claim_check
from hpcvirt.bench.studies import comparison
from hpcvirt.bench.studies import study
from hpcvirt.cmd import extras
from hpcvirt.cmd import fleet_arguments
from hpcvirt.cmd import terminal
from hpcvirt.cmd.study import script
from hpcvirt.cmd.study import site
from hpcvirt.cmd.study import table
from hpcvirt.flavors import profile as profiles

_ABOUT = """\
Show the published studies: their cases, as data that can be run again, their
figures with ratios worked out from them, and where a document is at odds with
its own figures. With --topology: the cases scaled to hosts of a site, and the
script that runs one there. With --data or --store: the figures of the site
beside the published ones.
"""

_EPILOG = """\
PATH is anything that "hpcvirt topology show" reads; a case that spans hosts
needs one for each, with different names (NAME=PATH gives one). The script is
printed for one CASE; it creates flavor and guests, runs "hpcvirt bench run
--study", and deletes what it created. Status 1: no case can be run on these
hosts.
"""


def add(verbs: 'argparse._SubParsersAction[argparse.ArgumentParser]') -> None:
    """Add the verb."""
    parser = verbs.add_parser(
        'studies', help='show the published studies, scale them to hosts, '
        'and compare', description=_ABOUT, epilog=_EPILOG)
    parser.add_argument('id', metavar='ID', nargs='?',
                        help=f'one of {", ".join(study_catalogue.IDS)}; a list of '
                        'them if left out')
    parser.add_argument('--case', metavar='CASE', help='only this case')
    parser.add_argument('--topology', metavar='PATH', action='append',
                        default=[], help='a host of the site')
    parser.add_argument('--profile', metavar='FILE',
                        help='with --topology: the choices of the operator, '
                        'as for "hpcvirt flavor plan"')
    parser.add_argument('--data', metavar='DIR',
                        help='directory of results of "hpcvirt bench run"')
    parser.add_argument('--store', metavar='URL',
                        help='or their database, as SQLAlchemy names it')
    parser.add_argument('--format', choices=('table', 'json', 'shell'),
                        default='table', help='table (the default), json, '
                        'or, with --topology and --case, a shell script')
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the list, a study, its cases on hosts, or our figures."""
    _check(args)
    if args.id is None:
        _list_all(args.format)
        return 0
    made = _chosen(args)
    if args.topology:
        return _on_hosts(args, made)
    if args.data or args.store:
        _beside(args, made)
        return 0
    if args.format == 'json':
        print(_json(_plain(made)))
    else:
        sys.stdout.writelines(_text(made))
    return 0


def _check(args: argparse.Namespace) -> None:
    """Refuse combinations that would leave out what was asked for."""
    ours = args.data or args.store
    if args.id is None and (args.case or args.topology or ours):
        raise exception.InvalidInput('ID', 'is missing: name the study')
    if args.topology and ours:
        raise exception.InvalidInput(
            '--topology', 'is another question than --data and --store')
    if args.profile and not args.topology:
        raise exception.InvalidInput('--profile', 'needs --topology')
    if args.format == 'shell' and not (args.topology and args.case):
        raise exception.InvalidInput(
            '--format shell', 'needs --topology and --case')


def _chosen(args: argparse.Namespace) -> study.Study:
    """The study, cut to the case that is asked for."""
    made = study_catalogue.get(args.id)
    if args.case is None:
        return made
    case = made.case(args.case)
    rows = tuple(row for row in made.rows if row.case == case.id)
    known = {row.id for row in rows}
    return dataclasses.replace(
        made, cases=(case,), rows=rows, claims=tuple(
            claim for claim in made.claims
            if all(name.rpartition('.')[0] in known for name in claim.of)))


def _list_all(form: str) -> None:
    every = study_catalogue.every()
    if form == 'json':
        print(_json([_plain(made) for made in every]))
        return
    rows = [(made.id, made.title, str(len(made.cases)), made.source)
            for made in every]
    sys.stdout.write(text_table.draw(
        ('Study', 'Title', 'Cases', 'Source'), rows, {'Cases'},
        terminal.width()))


def _on_hosts(args: argparse.Namespace, made: study.Study) -> int:
    profile = (profiles.Profile() if args.profile is None
               else fleet_arguments.read_profile(args.profile))
    planner = site.Planner(fleet_arguments.read_hosts(args.topology),
                           profile)
    found = [planner.plan(made, case) for case in made.cases]
    planned = [one for one in found if isinstance(one, site.Planned)]
    if args.format == 'json':
        print(_json([site.plain(one) for one in found]))
    elif args.format == 'table':
        sys.stdout.write(table.scaled(found))
    elif planned:
        print('\n'.join(script.script(made, planned[0])))
    else:
        sys.stderr.write(table.scaled(found))
    return 0 if planned else 1


def _beside(args: argparse.Namespace, made: study.Study) -> None:
    found = comparison.compare(made, _runs(args))
    if args.format == 'json':
        print(_json([{
            **serialization.to_plain(one),
            'row': None if one.row is None else _plain_row(one.row)}
            for one in found]))
    else:
        sys.stdout.write(table.compared(found))


def _runs(args: argparse.Namespace) -> list[record.Run]:
    """Every run of the store that the arguments name."""
    if args.store is None and not os.path.exists(
            os.path.join(args.data, 'bench.sqlite')):
        raise exception.InvalidInput(
            args.data, 'has no bench.sqlite: "hpcvirt bench run" makes one')
    with extras.bench():
        from hpcvirt.bench.results import store as stores
    data = args.data or location.default_directory()
    store = stores.Store(location.database_url(args.store, data), data)
    try:
        return [run for entry in store.entries()
                for run in store.result(entry.id).runs]
    finally:
        store.close()


def _json(document: object) -> str:
    return json.dumps(document, indent=2, allow_nan=False)


def _plain(made: study.Study) -> dict[str, object]:
    """The study as data, with what follows from its figures."""
    document: dict[str, object] = serialization.to_plain(made)
    document['rows'] = [_plain_row(row) for row in made.rows]
    document['claims'] = [
        {**serialization.to_plain(checked.claim), 'computed': checked.computed,
         'agrees': checked.agrees} for checked in claim_check.check(made)]
    return document


def _plain_row(row: study.Row) -> dict[str, object]:
    return {**serialization.to_plain(row), 'ratio': row.ratio}


def _text(made: study.Study) -> Iterator[str]:
    yield f'{made.id}: {made.title}\n'
    yield from _item(f'{made.document} ({made.source})', '  ')
    yield from _list('Set-up', made.setup)
    yield '\nCases\n'
    cases = [(case.id, case.guests.shape, str(case.hosts), case.text,
              _uses(case)) for case in made.cases]
    yield textwrap.indent(text_table.draw(
        ('Case', 'Guests', 'Hosts', 'What', 'Benchmarks'), cases, {'Hosts'},
        terminal.width()), '  ')
    yield '\nPublished, ratio = guest / native worked out\n'
    yield textwrap.indent(text_table.draw(
        ('Case', 'Figure', 'Native', 'Guest', 'Unit', 'Ratio', 'Better'),
        [_row(row) for row in made.rows], {'Native', 'Guest', 'Ratio'},
        terminal.width()), '  ')
    wrong = [checked for checked in claim_check.check(made) if not checked.agrees]
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
    native, guest, ratio = row.figures
    return (row.case, row.title, native, guest, row.unit, ratio,
            row.direction)


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

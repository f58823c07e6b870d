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

"""``hpcvirt bench report``: show the results of the store."""

import argparse
import sys
import typing
from collections.abc import Collection
from collections.abc import Iterable

from hpcvirt import exception
from hpcvirt import printable
from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.report import summary
from hpcvirt.bench.report import text
from hpcvirt.cmd import extras
from hpcvirt.cmd import html_file
from hpcvirt.cmd import terminal
from hpcvirt.cmd.bench import store_arguments

if typing.TYPE_CHECKING:
    from hpcvirt.bench.results import store as stores

_TITLE = 'Guest against native'
_ABOUT = """\
Show what was measured: ratio with interval and verdict for each figure, next
to the published figure, and each host over time, so that slow hosts and drifts
stand out.
"""


def add(verbs: 'argparse._SubParsersAction[argparse.ArgumentParser]') -> None:
    """Add the verb."""
    parser = verbs.add_parser('report', help='show what was measured',
                              description=_ABOUT)
    parser.add_argument('results', nargs='*', metavar='RESULT',
                        help='ids of results (default: all)')
    parser.add_argument('--html', metavar='FILE',
                        help='write one self-contained page; an existing '
                        'file is replaced only if it is a report')
    store_arguments.add(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Read, judge, show."""
    with extras.bench():
        from hpcvirt.bench.report import page
    shown = _results(args)
    if args.html:
        html_file.write(args.html, page.page(shown, _TITLE), _TITLE)
        print(args.html)
        return 0
    if not shown:
        print('No results yet.')
    if len(shown) > 1:
        print(summary.table(summary.lines(shown), terminal.width()))
    for each in shown:
        state = '' if each.finished else ', unfinished'
        sys.stdout.write(printable.lines(
            [f'{each.id}  {each.started_at}{state}']))
        sys.stdout.write(text.table(each.result, terminal.width() or 100))
        print()
    return 0


def _results(args: argparse.Namespace) -> list[summary.Shown]:
    """Read and judge the results that the arguments name by their ids."""
    store = store_arguments.open_existing(args)
    if store is None:
        _require(args.results, ())
        return []
    try:
        known = {entry.id: entry for entry in store.entries()}
        _require(args.results, known)
        return [_judged(store, entry) for name, entry in known.items()
                if not args.results or name in args.results]
    finally:
        store.close()


def _require(names: Iterable[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            raise exception.InvalidInput(name, 'the store has no such result')


def _judged(store: 'stores.Store', entry: 'stores.Entry') -> summary.Shown:
    return summary.Shown(entry.id,
                         verdict.judge_result(store.result(entry.id)),
                         entry.started_at, entry.finished_at is not None)

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

"""``hpcvirt bench report``: what the store holds, for people."""

import argparse
import os
import pathlib
import sys
import tempfile

from hpcvirt import exception
from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.report import text
from hpcvirt.cmd import extras
from hpcvirt.cmd import terminal
from hpcvirt.cmd.bench import targets

_ABOUT = """\
Show what was measured: ratio with interval and verdict for each figure, the
published figure beside it, and every host over time, so that slow hosts and
drifts stand out.
"""


def add(verbs: 'argparse._SubParsersAction[argparse.ArgumentParser]') -> None:
    """Add the verb."""
    parser = verbs.add_parser('report', help='show what was measured',
                              description=_ABOUT)
    parser.add_argument('results', nargs='*', metavar='RESULT',
                        help='ids of results (default: all)')
    parser.add_argument('--html', metavar='FILE',
                        help='write one self-contained page; a file that is '
                        'there is kept unless a report wrote it')
    targets.add_store(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Read, judge, show."""
    with extras.bench():
        from hpcvirt.bench.report import page
        from hpcvirt.bench.results import store as stores
    store = stores.Store(targets.store_url(args), args.data)
    try:
        entries = {entry.id: entry for entry in store.entries()}
        for wanted in args.results:
            if wanted not in entries:
                raise exception.InvalidInput(
                    wanted, 'the store has no such result')
        shown = [page.Shown(verdict.judge_result(store.result(entry.id)),
                            entry.started_at, entry.finished_at is not None)
                 for entry in entries.values()
                 if not args.results or entry.id in args.results]
        names = [entry.id for entry in entries.values()
                 if not args.results or entry.id in args.results]
    finally:
        store.close()
    if args.html:
        _write(args.html, page.page(shown, 'Guest against native'))
        print(args.html)
        return 0
    if not shown:
        print('No results yet.')
    for name, one in zip(names, shown, strict=True):
        state = '' if one.finished else ', unfinished'
        print(f'{name}  {one.started_at}{state}')
        sys.stdout.write(text.table(one.result, terminal.width() or 100))
        print()
    return 0


def _write(path: str, content: str) -> None:
    """Put a report in place in one step, and over nothing but a report."""
    target = pathlib.Path(path)
    mark = '<title>Guest against native</title>'
    try:
        if target.exists() and mark not in target.read_text(
                encoding='utf-8', errors='replace')[:4096]:
            raise exception.InvalidInput(
                path, 'is there and is no report; it is left as it was')
        handle, scratch = tempfile.mkstemp(
            dir=target.parent, prefix=f'.{target.name}.')
        with os.fdopen(handle, 'w', encoding='utf-8') as stream:
            stream.write(content)
        # mkstemp lets the owner alone read it.
        pathlib.Path(scratch).chmod(0o644)
        os.replace(scratch, target)
    except OSError as exc:
        raise exception.InvalidInput(path, exc.strerror or str(exc)) from exc

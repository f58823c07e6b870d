# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt bench report``: show the results of the store."""

import argparse
import itertools
import typing
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt import printable
from hpcvirt import serialization
from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.model import record
from hpcvirt.bench.report import mix
from hpcvirt.bench.report import summary
from hpcvirt.bench.report import text
from hpcvirt.cmd import command
from hpcvirt.cmd import extras
from hpcvirt.cmd import html_file
from hpcvirt.cmd import output
from hpcvirt.cmd import store_arguments
from hpcvirt.cmd.bench import catalogue_arguments
from hpcvirt.cmd.bench import runs

if typing.TYPE_CHECKING:
    from hpcvirt.bench.results import store as stores

_TITLE = 'Guest against native'


class ReportResults(command.Report):
    """Show the results of the store.

    Each figure is shown with its ratio, interval and verdict, next to the
    published figure. The page of --html also shows each host over time, so
    that slow hosts and drifts stand out. RESULT*N gives the guests of a result
    N parts of the cores, and shows what such a mix loses.
    """

    fields = ('id', 'started_at', 'finished')

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            'results', nargs='*', metavar='RESULT',
            help='id of a result, or ID*N for N parts of a mix (default: all '
            'results)')
        parser.add_argument(
            '--html', metavar='FILE',
            help='write a self-contained page; an existing file is replaced '
            'only if it is a report')
        parser.add_argument(
            '--unfinished', action='store_true',
            help='show the runs that are in progress or were interrupted '
            'instead; "hpcvirt bench run --stop" stops one')
        store_arguments.add(parser)
        catalogue_arguments.add(parser)

    def answer(self, args: argparse.Namespace,
               ) -> command.CommandResult | None:
        """Read and judge the results."""
        catalogue_arguments.choose(args)
        if args.unfinished:
            if args.results or args.html:
                raise exception.InvalidInput(
                    '--unfinished', 'contradicts RESULT and --html')
            return runs.describe(args)
        with extras.bench():
            from hpcvirt.bench.report import page
        parts = _read_parts(args.results)
        args.results = [*parts]
        is_mix = any(parts.values())
        if is_mix and args.html:
            raise exception.InvalidInput(
                '--html', 'has no mix of results; leave out *N')
        shown = _results(args)
        mixed = [(each, parts[each.id] or 1.0) for each in shown if is_mix]
        if args.html:
            html_file.write(args.html, page.page(shown, _TITLE), _TITLE)
            print(args.html)
            return None
        return command.CommandResult(
            [{'id': each.id, 'started_at': each.started_at,
              'finished': each.finished, **serialization.dump(each.result)}
             for each in shown], lambda: _draw(shown) + printable.lines(
                 mix.describe(mixed) if mixed else ()))


def _read_parts(words: Iterable[str]) -> dict[str, float]:
    """Read the ids of results: id -> its parts of a mix, 0 if not given."""
    found = {}
    for word in words:
        name, star, text = word.partition('*')
        parts = 0.0
        if star:
            try:
                parts = serialization.number(1e-6, 1e9)(float(text))
            except ValueError:
                raise exception.InvalidInput(
                    word, 'must end in a number of parts, such as '
                    f'{name}*3') from None
        found[name] = parts
    return found


def _draw(shown: Sequence[summary.Shown]) -> str:
    if not shown:
        return 'No results yet.\n'
    table = (summary.table(summary.lines(shown), output.width()) + '\n'
             if len(shown) > 1 else '')
    return table + ''.join(
        printable.lines([f'{each.id}  {each.started_at}'
                         + ('' if each.finished else ', unfinished'),
                         *each.subject.paths])
        + text.table(each.result, output.width() or 100) + '\n'
        for each in shown)


def _results(args: argparse.Namespace) -> list[summary.Shown]:
    """Read and judge the results that the arguments name by their ids."""
    store = store_arguments.open_existing(args)
    if store is None:
        _require(args.results, ())
        return []
    try:
        known = {entry.id: entry for entry in store.entries()}
        _require(args.results, known)
        if args.results:
            return [_judged(entry, store.result(name))
                    for name, entry in known.items() if name in args.results]
        return list(itertools.starmap(
            _judged, store.results(known.values())))
    finally:
        store.close()


def _require(names: Iterable[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            raise exception.InvalidInput(name, 'the store has no such result')


def _judged(entry: 'stores.Entry', result: record.Result) -> summary.Shown:
    return summary.Shown(entry.id, verdict.judge_result(result),
                         entry.started_at, entry.finished_at is not None)

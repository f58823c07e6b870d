# SPDX-License-Identifier: Apache-2.0

"""Show the progress of a benchmark run on standard error."""

import dataclasses
import os
import sys
import time
import typing
from collections.abc import Sequence

from rich import console as consoles
from rich import live as lives
from rich import text as texts

from hpcvirt import printable
from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.model import metric_definition
from hpcvirt.bench.model import record
from hpcvirt.bench.run import schedule

if typing.TYPE_CHECKING:
    # The store needs libraries of the bench extra; "bench list" does not.
    from hpcvirt.bench.results import store


#: How many changes are printed if a result cannot be continued.
MAX_CHANGES = 5


class Terminal:
    """A progress display with a line for each sample on standard error.

    On a terminal, a further line is updated while a sample runs.

    :param data: the directory of raw outputs
    :ivar result: id of the result, empty before it is opened
    """

    def __init__(self, data: str) -> None:
        self._data = data
        self.result = ''
        self._console = consoles.Console(stderr=True, highlight=False)
        self._live: lives.Live | None = None
        self._line = ''
        self._primary: frozenset[str] = frozenset()
        self._begin = 0.0
        self._run: record.Run | None = None
        self._left = ''
        #: Number of samples of the following benchmarks.
        self._later = 0

    def planned(self, text: str) -> None:
        """Print what a run can decide before it begins."""
        self._print(text)

    def opened(self, entry: 'store.Entry', continued: bool) -> None:
        self.result = entry.id
        word = 'continuing' if continued else 'result'
        self._print(f'{word} {entry.id}')

    def not_continued(self, entry: 'store.Entry',
                      changes: Sequence[str]) -> None:
        more = len(changes) - MAX_CHANGES
        listed = '; '.join(changes[:MAX_CHANGES])
        self._print(f'result {entry.id} is not continued, its samples are '
                    f'kept: {listed}' + (f'; {more} more' if more > 0 else ''))

    def sample_started(self, run: record.Run, due: schedule.PlannedSample,
                       number: int, total: int) -> None:
        self._run = run
        self._later = total - number + 1 - len(schedule.list_missing(run))
        self._left = self._remaining(run)
        what = 'warm-up' if due.warm_up else f'pair {due.pair + 1}'
        if due.control:
            what += ', native again'
        if due.relaunch:
            what += ' after a reboot'
            self._print(f'{run.label}  the guest is rebooted')
        self._line = (f'{run.label}  {number}/{total}  {what}  '
                      f'{due.side}')
        self._primary = frozenset(
            figure.name for figure in catalogue.get(run.benchmark).metrics
            if figure.primary)
        self._begin = time.monotonic()
        if self._console.is_terminal:
            self._live = lives.Live(console=self._console, transient=True,
                                    refresh_per_second=4)
            self._live.start()
            self.tick(0)

    def tick(self, elapsed_s: float) -> None:
        if self._live is not None:
            self._live.update(texts.Text(
                printable.escape('  '.join(filter(None, (
                    self._line, f'{elapsed_s:.0f} s', self._left))))))

    def sample_finished(self, sample: record.Sample) -> None:
        self.stop()
        seconds = time.monotonic() - self._begin
        outcome = sample.outcome
        summary = f'INVALID: {outcome.reason}'
        if sample.outputs:
            summary += '; its outputs are in ' + os.path.dirname(
                os.path.join(self._data, sample.outputs[0].path))
        if outcome.valid:
            # Primary figures, as many as fit into a line.
            names = [name for name in outcome.metrics
                     if metric_definition.split(name)[0] in self._primary][:2]
            summary = ', '.join(
                f'{name} {outcome.metrics[name].value:.6g} '
                f'{outcome.metrics[name].unit}' for name in names)
        left = '' if self._run is None else self._remaining(
            dataclasses.replace(self._run,
                                samples=(*self._run.samples, sample)))
        self._print('  '.join(filter(None, (
            self._line, f'{seconds:.1f} s', summary, left))))

    def _remaining(self, run: record.Run) -> str:
        left = schedule.format_remaining(run)
        return f'{left} for {run.benchmark}' if left and self._later else left

    def left_behind(self, what: str) -> None:
        self._print(f'not removed: {what}')

    def stop(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _print(self, text: str) -> None:
        line = printable.escape(text)
        if self._console.is_terminal:
            self._console.print(texts.Text(line))
        else:
            print(line, file=sys.stderr, flush=True)

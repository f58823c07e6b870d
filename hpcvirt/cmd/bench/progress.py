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

"""Show on standard error how a benchmark run goes."""

import sys
import time
import typing

from rich import console as consoles
from rich import live as lives
from rich import text as texts

from hpcvirt.bench.analysis import bounds
from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.model import record
from hpcvirt.bench.run import schedule

if typing.TYPE_CHECKING:
    # The store needs libraries of the bench extra; "bench list" does not.
    from hpcvirt.bench.results import store


class Terminal:
    """One line that is written over while a sample runs, one per sample.

    Where standard error is no terminal there are only the latter.
    """

    def __init__(self) -> None:
        self._console = consoles.Console(stderr=True, highlight=False)
        self._live: lives.Live | None = None
        self._line = ''
        self._primary: frozenset[str] = frozenset()
        self._begin = 0.0

    def entry(self, entry: 'store.Entry', continued: bool) -> None:
        word = 'continuing' if continued else 'result'
        self._say(f'{word} {entry.id}')

    def sample(self, run: record.Run, slot: schedule.Slot,
               total: int) -> None:
        what = 'warm-up' if slot.warm_up else f'pair {slot.pair + 1}'
        self._line = (f'{run.label}  {slot.position + 1}/{total}  {what}  '
                      f'{slot.arm}')
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
            self._live.update(texts.Text(f'{self._line}  {elapsed_s:.0f} s'))

    def done(self, sample: record.Sample) -> None:
        self.stop()
        seconds = time.monotonic() - self._begin
        outcome = sample.outcome
        said = f'INVALID: {outcome.reason}'
        if outcome.valid:
            # What the benchmark is known by, and no more than fits.
            names = [name for name in outcome.metrics
                     if bounds.split(name)[0] in self._primary][:2]
            said = ', '.join(
                f'{name} {outcome.metrics[name].value:.6g} '
                f'{outcome.metrics[name].unit}' for name in names)
        self._say(f'{self._line}  {seconds:.1f} s  {said}')

    def left(self, what: str) -> None:
        self._say(f'left behind, its place does not answer: {what}')

    def stop(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _say(self, line: str) -> None:
        if self._console.is_terminal:
            self._console.print(texts.Text(line))
        else:
            print(line, file=sys.stderr, flush=True)

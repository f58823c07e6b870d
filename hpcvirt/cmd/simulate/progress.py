# SPDX-License-Identifier: Apache-2.0

"""Show the progress of replays on a terminal."""

import contextlib
from collections.abc import Iterator
from collections.abc import Sequence

from rich import console as consoles
from rich import progress as bars

from hpcvirt.simulate import simulation


@contextlib.contextmanager
def show_bars(names: Sequence[str]) -> Iterator[simulation.Show]:
    """Show a progress bar for each task, if standard error is a terminal."""
    console = consoles.Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield _show_nothing
        return
    # No refresh thread, since a process with threads must not be forked.
    with bars.Progress(
            bars.TextColumn('{task.description}', markup=False),
            bars.BarColumn(), bars.TaskProgressColumn(),
            bars.TimeRemainingColumn(), console=console, transient=True,
            auto_refresh=False) as drawn:
        tasks = [drawn.add_task(name, total=1.0) for name in names]

        def show(place: int, part: float) -> None:
            drawn.update(tasks[place], completed=part, refresh=True)

        yield show


def _show_nothing(_place: int, _part: float) -> None:
    pass

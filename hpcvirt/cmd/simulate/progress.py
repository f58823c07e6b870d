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

"""Show on a terminal how far the replays are."""

import contextlib
from collections.abc import Iterator
from collections.abc import Sequence

from rich import console as consoles
from rich import progress as bars

from hpcvirt.cmd.simulate import workers


@contextlib.contextmanager
def shown(names: Sequence[str]) -> Iterator[workers.Show]:
    """Show a bar for each task on standard error, if that is a terminal."""
    console = consoles.Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield _show_nothing
        return
    # No thread draws: a process with threads must not be forked.
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

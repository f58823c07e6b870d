# SPDX-License-Identifier: Apache-2.0

"""What the definition of a benchmark says about one of its figures.

This is the only place of the unit and of the better direction: a parser finds
names and numbers, and :mod:`hpcvirt.bench.parsers.parser` adds both.
"""

import dataclasses
import re
from collections.abc import Iterable

from hpcvirt.bench.model import outcome

#: The name of a figure for one message size, in bytes.
_SIZED = re.compile(r'(?P<name>[^\[\]]+)\[(?P<size>[0-9]{1,15})\]', re.ASCII)


@dataclasses.dataclass(frozen=True, slots=True)
class MetricDefinition:
    """A metric that the parser may find.

    :ivar name: the program's own name for it, if there is one
    :ivar unit: as printed in reports: ``GUP/s``, ``MB/s``, ``us``, ``s``
    :ivar per_size: there is a metric ``NAME[BYTES]`` per message size
    :ivar primary: it is the benchmark's figure of merit
    :ivar pattern: of the line that has the figure, for the parser ``pattern``
    """

    name: str
    unit: str
    direction: outcome.Direction
    help: str
    per_size: bool = False
    primary: bool = False
    pattern: str = ''

    @property
    def form(self) -> str:
        """The name as the user gives it: ``NAME`` or ``NAME[BYTES]``."""
        return f'{self.name}[BYTES]' if self.per_size else self.name


def split(metric: str) -> tuple[str, int | None]:
    """Split a metric into its name and message size, None if it has none."""
    match = _SIZED.fullmatch(metric)
    return (match['name'], int(match['size'])) if match else (metric, None)


def find(figures: Iterable[MetricDefinition],
         metric: str) -> MetricDefinition | None:
    """Find the definition of a metric.

    :param metric: as the parser names it, with a message size if the metric
        has one
    :returns: None if no figure has this name, with or without sizes
    """
    name, size = split(metric)
    for figure in figures:
        if figure.name == name and figure.per_size == (size is not None):
            return figure
    return None

# SPDX-License-Identifier: Apache-2.0

"""The outcome of one run of a program: figures, or why there are none."""

import dataclasses
import enum
from collections.abc import Mapping
from typing import Annotated

from hpcvirt import serialization


class Direction(enum.StrEnum):
    """The better direction: ``up`` for rates, ``down`` for times."""

    UP = 'up'
    DOWN = 'down'


class ParameterType(enum.StrEnum):
    """How the value of a parameter is written and compared."""

    WHOLE = 'whole number'
    WORD = 'word'
    ENERGY = 'energy'


@dataclasses.dataclass(frozen=True, slots=True)
class Metric:
    """One figure.

    :ivar value: above 0, because it must have a logarithm; the parsers and
        the reader of stored figures check it
    :ivar unit: as printed in reports: ``GUP/s``, ``MB/s``, ``us``, ``s``
    """

    value: Annotated[float, serialization.number(1e-300, 1e300)]
    unit: str
    direction: Direction


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The result of parsing one output.

    :ivar valid: the run passed the program's own checks and used the
        requested parameters
    :ivar reason: why the output is refused; None if it is valid
    :ivar metrics: name to figure; empty if the output is refused
    :ivar parameters: parameters that the program printed (problem size,
        ranks, version), as text
    :ivar remarks: notes on valid figures, such as a metric that this run
        could not measure
    :ivar kinds: parameter to the type that the parser declares; a parameter
        without one is compared as text
    """

    valid: bool
    reason: str | None
    metrics: Mapping[str, Metric] = dataclasses.field(default_factory=dict)
    parameters: Mapping[str, str] = dataclasses.field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    kinds: Mapping[str,
                   ParameterType] = dataclasses.field(default_factory=dict)

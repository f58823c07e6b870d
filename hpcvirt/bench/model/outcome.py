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

    :ivar value: above 0, since it has to have a logarithm; every parser
        ensures it, and whatever reads stored figures checks it
    :ivar unit: as written in reports: ``GUP/s``, ``MB/s``, ``us``, ``s``
    """

    value: Annotated[float, serialization.number(1e-300, 1e300)]
    unit: str
    direction: Direction


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The result of parsing one output.

    :ivar valid: the run passed the program's own checks and is the run that
        was requested
    :ivar reason: why the output is refused; None if it is valid
    :ivar metrics: name to figure; empty if the output is refused
    :ivar parameters: the input that the program echoed (problem size, ranks,
        version), as text
    :ivar remarks: what a reader of valid figures should know, such as a
        metric that this run could not measure
    :ivar kinds: name of a parameter to its kind, as the parser declares it;
        a parameter without one is compared as text
    """

    valid: bool
    reason: str | None
    metrics: Mapping[str, Metric] = dataclasses.field(default_factory=dict)
    parameters: Mapping[str, str] = dataclasses.field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    kinds: Mapping[str,
                   ParameterType] = dataclasses.field(default_factory=dict)

# SPDX-License-Identifier: Apache-2.0

"""What the definition of a benchmark says about the output of its program."""

import dataclasses

from hpcvirt.bench.model import line_pattern
from hpcvirt.bench.model import metric_definition


@dataclasses.dataclass(frozen=True)
class OutputFormat:
    """How an output is read, and what its figures mean.

    :ivar benchmark: name of the definition or the family, for errors
    :ivar parser: name of the parser
    :ivar figures: all figures that an output may have
    :ivar lines: the lines of the output; None if the parser knows them
    """

    benchmark: str
    parser: str
    figures: tuple[metric_definition.MetricDefinition, ...]
    lines: line_pattern.LineRules | None = None

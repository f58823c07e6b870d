# SPDX-License-Identifier: Apache-2.0

"""The options that say how much slower a guest may be."""

import argparse
import dataclasses
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.bench.analysis import bounds
from hpcvirt.bench.catalogue import definition as definitions
from hpcvirt.bench.model import judgement
from hpcvirt.bench.run import run_request as requests

#: What to give to benchmarks without a bound.
ADVICE = 'give --bound METRIC=RATIO or --overhead PERCENT'


@dataclasses.dataclass(frozen=True)
class GivenBounds:
    """The bounds of the user.

    :ivar overhead_percent: for every primary metric without one; None for the
        bounds of the benchmarks
    """

    bounds: Mapping[str, judgement.Bound]
    overhead_percent: float | None


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        '--bound', action='append', default=[], metavar='METRIC=RATIO',
        dest='bounds', help='the worst ratio guest / native that passes')
    parser.add_argument(
        '--overhead', metavar='PERCENT',
        help='how much slower the guest may be')


def read(args: argparse.Namespace,
         benchmarks: Sequence[definitions.Definition]) -> GivenBounds:
    """Read the options.

    :raises InvalidInput: if one is no bound, or of no figure of the benchmarks
    """
    own = dict(bounds.parse(word) for word in args.bounds)
    requests.check_bounds(benchmarks, own)
    return GivenBounds(own, None if args.overhead is None
                       else bounds.read_overhead(args.overhead))

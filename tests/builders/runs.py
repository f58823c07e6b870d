# SPDX-License-Identifier: Apache-2.0

"""Runs of benchmarks, with the figures that a test needs."""

from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record

UP = outcome.Direction.UP
DOWN = outcome.Direction.DOWN


def figures(values, unit='Mop/s', direction=UP, **parameters):
    """Make the outcome of a sample that has figures.

    :param values: the value of each metric
    :param parameters: what the program says that it was given
    """
    return outcome.Outcome(True, None, {
        name: outcome.Metric(value, unit, direction)
        for name, value in values.items()}, parameters)


def good(value, metric='mops_total', direction=UP, **parameters):
    """Make the outcome of a sample that has one figure."""
    return figures({metric: value}, 'Mop/s', direction,
                   **(parameters or {'class': 'C'}))


#: The outcome of a sample of STREAM.
TRIAD = figures({'triad_mb_s': 1e4}, 'MB/s')


def bad(reason='verification failed'):
    return outcome.Outcome(False, reason)


def sample(side, pair, found, **more):
    position = 2 * pair + (side is record.Side.GUEST)
    return record.Sample(side, pair, position, found, **more)


def stream(name='r1', samples=(), **more):
    """Make a run of STREAM on the host n17, which has no samples yet."""
    return record.Run(name, 'stream', 'openmp', tuple(samples),
                      **{'host': 'n17', **more})


def run(native, guest, ratio=0.95, metric='mops_total', direction=UP, **more):
    """A run of values or outcomes, pair by pair.

    :param ratio: the bound
    """
    samples = []
    for side, values in ((record.Side.NATIVE, native),
                         (record.Side.GUEST, guest)):
        for pair, value in enumerate(values):
            found = value
            if not isinstance(value, outcome.Outcome):
                found = good(value, metric, direction)
            samples.append(sample(side, pair, found))
    more.setdefault('planned_pairs', len(native))
    more.setdefault('bounds', {metric: judgement.Bound(ratio)})
    return record.Run(
        id=more.pop('id', 'r'), benchmark=more.pop('benchmark', 'npb-cg'),
        variant='mpi', host='n17',
        samples=tuple(sorted(samples, key=lambda one: one.position)), **more)

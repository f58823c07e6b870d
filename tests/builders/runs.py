# SPDX-License-Identifier: Apache-2.0

"""Builders of runs for the tests of verdicts."""

from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record

UP = outcome.Direction.UP
DOWN = outcome.Direction.DOWN


def good(value, metric='mops_total', direction=UP, **parameters):
    return outcome.Outcome(
        True, None, {metric: outcome.Metric(value, 'Mop/s', direction)},
        parameters or {'class': 'C'})


def bad(reason='verification failed'):
    return outcome.Outcome(False, reason)


def sample(side, pair, found, **more):
    position = 2 * pair + (side is record.Side.GUEST)
    return record.Sample(side, pair, position, found, **more)


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

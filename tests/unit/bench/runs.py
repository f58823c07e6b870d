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


def sample(arm, pair, found, **more):
    position = 2 * pair + (arm is record.Arm.GUEST)
    return record.Sample(arm, pair, position, found, **more)


def run(native, guest, ratio=0.95, metric='mops_total', direction=UP,
        **more):
    """A run of values or outcomes, pair by pair.

    :param ratio: the bound
    """
    samples = []
    for arm, values in ((record.Arm.NATIVE, native),
                        (record.Arm.GUEST, guest)):
        for pair, value in enumerate(values):
            found = value
            if not isinstance(value, outcome.Outcome):
                found = good(value, metric, direction)
            samples.append(sample(arm, pair, found))
    more.setdefault('planned_pairs', len(native))
    more.setdefault('bounds', {metric: judgement.Bound(ratio)})
    return record.Run(
        id=more.pop('id', 'r'), benchmark=more.pop('benchmark', 'npb-cg'),
        variant='mpi', host='n17',
        samples=tuple(sorted(samples, key=lambda one: one.position)), **more)

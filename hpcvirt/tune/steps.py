# SPDX-License-Identifier: Apache-2.0

"""Choose the next trials of an experiment from those that were made."""

from collections.abc import Sequence

from hpcvirt.tune import space as spaces
from hpcvirt.tune import trial


def next_steps(space: spaces.Space, budget: spaces.Budget,
               trials: Sequence[trial.Trial]) -> tuple[trial.Step, ...]:
    """Return the rest of the current block, in the order of measurement.

    The block is a replicate of the design or a pair of boots. It depends on
    nothing but the arguments, so that an experiment can be continued. Without
    replicates, the last values of all choices are confirmed.

    :param trials: those made so far, in their order
    :returns: no steps at the end
    """
    raise NotImplementedError

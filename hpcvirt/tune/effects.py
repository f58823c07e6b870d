# SPDX-License-Identifier: Apache-2.0

"""Estimate the effects of values from replicates of a design."""

from hpcvirt.tune import space as spaces


def smallest_effects(space: spaces.Space, budget: spaces.Budget,
                     noise: float) -> tuple[float, ...]:
    """Return the smallest effect of each choice that is shown 4 of 5 times.

    An experiment is refused if one of them is larger than ``space.matters``.

    :param noise: standard deviation between boots, as a logarithm
    :returns: logarithms, in the order of the choices; infinite with fewer than
        two replicates
    """
    raise NotImplementedError


def find_replicates(space: spaces.Space, budget: spaces.Budget,
                    noise: float) -> int | None:
    """Return the smallest number of replicates that shows what matters.

    :returns: None if 1000 are too few
    """
    raise NotImplementedError

# SPDX-License-Identifier: Apache-2.0

"""Choose which configurations are measured, several choices at once."""

import dataclasses
from collections.abc import Mapping

from hpcvirt.tune import space as spaces
from hpcvirt.tune import trial

#: The largest number of trials of a replicate.
MAX_RUNS = 64


@dataclasses.dataclass(frozen=True)
class Design:
    """The configurations of one replicate.

    :ivar plots: the whole plots; the configurations of one have the same
        values of the choices that need a reboot
    :ivar is_clear: whether no main effect is confounded with an interaction
        of two choices
    """

    plots: tuple[tuple[trial.Levels, ...], ...]
    is_clear: bool

    @property
    def count(self) -> int:
        """Number of trials."""
        return sum(map(len, self.plots))

    def aliases(self, pair: tuple[int, int]) -> tuple[tuple[int, int], ...]:
        """Return the pairs of choices whose interaction looks like this one.

        :param pair: the indices of two choices that are varied, ascending
        """
        raise NotImplementedError


def make(space: spaces.Space, fixed: Mapping[int, int] | None = None,
         least: int = 0) -> Design:
    """Make the smallest sound design.

    :param fixed: choices that are not varied any more -> their level
    :param least: at least this number of trials, a power of two
    :raises InvalidInput: if there are too many choices
    """
    raise NotImplementedError

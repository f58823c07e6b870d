# SPDX-License-Identifier: Apache-2.0

"""A refusal whose reason is determined only when it is read.

To refuse a host by counting takes less time than to determine what each of its
cells lacks. Most refusals are never read: nova-scheduler reads only those of
requests that no host can take.
"""

from collections.abc import Callable
from collections.abc import Mapping
from typing import Any

from hpcvirt.fit import reasons


class LateMisfit(reasons.Misfit):
    """A refusal that a function determines when it is read."""

    __slots__ = ('_arguments', '_explain', '_misfit')
    _arguments: tuple[Any, ...]
    _explain: Callable[..., reasons.Misfit]
    _misfit: reasons.Misfit
    # A request makes one for each host, so it must be cheap.
    __setattr__ = object.__setattr__

    def __init__(self, explain: Callable[..., reasons.Misfit],
                 *arguments: Any) -> None:
        self._explain = explain
        self._arguments = arguments

    @property
    def misfit(self) -> reasons.Misfit:
        """The refusal with its reason."""
        try:
            return self._misfit
        except AttributeError:
            self._misfit = self._explain(*self._arguments)
            return self._misfit

    @property
    def code(self) -> reasons.Code:
        return self.misfit.code

    @property
    def details(self) -> Mapping[str, Any]:
        return self.misfit.details

    @property
    def causes(self) -> tuple[reasons.Misfit, ...]:
        return self.misfit.causes

    def __eq__(self, other: object) -> bool:
        if isinstance(other, LateMisfit):
            other = other.misfit
        return self.misfit == other

    def __hash__(self) -> int:
        return hash(self.misfit)

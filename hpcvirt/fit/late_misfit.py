# SPDX-License-Identifier: Apache-2.0

"""A refusal whose reason is determined only when it is read.

A host is often refused by counting, which takes less time than determining
what each of its cells lacks. Most of these refusals are never read:
nova-scheduler reads only the refusals of requests that no host can take.
"""

from collections.abc import Callable
from collections.abc import Mapping
from typing import Any

from hpcvirt.fit import reasons


class LateMisfit(reasons.Misfit):
    """A refusal that equals the one that a function finds."""

    __slots__ = ('_arguments', '_explain', '_found')
    _arguments: tuple[Any, ...]
    _explain: Callable[..., reasons.Misfit]
    _found: reasons.Misfit
    # There is one for each host of a cloud, so that making it must be cheap.
    __setattr__ = object.__setattr__

    def __init__(self, explain: Callable[..., reasons.Misfit],
                 *arguments: Any) -> None:
        self._explain = explain
        self._arguments = arguments

    @property
    def found(self) -> reasons.Misfit:
        """The refusal with its reason."""
        try:
            return self._found
        except AttributeError:
            self._found = self._explain(*self._arguments)
            return self._found

    @property
    def code(self) -> reasons.Code:
        return self.found.code

    @property
    def details(self) -> Mapping[str, Any]:
        return self.found.details

    @property
    def causes(self) -> tuple[reasons.Misfit, ...]:
        return self.found.causes

    def __eq__(self, other: object) -> bool:
        if isinstance(other, LateMisfit):
            other = other.found
        return self.found == other

    def __hash__(self) -> int:
        return hash(self.found)

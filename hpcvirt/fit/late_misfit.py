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

    __slots__ = ('_explain', '_found')
    _explain: Callable[[], reasons.Misfit]
    _found: reasons.Misfit | None

    def __init__(self, explain: Callable[[], reasons.Misfit]) -> None:
        object.__setattr__(self, '_explain', explain)
        object.__setattr__(self, '_found', None)

    @property
    def found(self) -> reasons.Misfit:
        """The refusal with its reason."""
        found = self._found
        if found is None:
            found = self._explain()
            object.__setattr__(self, '_found', found)
        return found

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

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

"""A refusal whose reason is looked for only when it is read.

A host is often refused by counting, in less time than it takes to say what
each of its cells lacks. Most of these refusals are never read: of those of
nova-scheduler, only the refusals of a request that no host can take.
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

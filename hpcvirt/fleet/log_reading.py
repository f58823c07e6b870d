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

"""Collect from a log what HPCTopologyFilter has written about requests."""

import collections
import dataclasses
from collections.abc import Iterable

from hpcvirt import exception
from hpcvirt.fit import reasons
from hpcvirt.fleet import log_text
from hpcvirt.fleet import refusal
from hpcvirt.fleet import shadow

#: Refusals that are kept, the last ones of the log.
MOST_REFUSALS = 1000

#: Different flavors and reasons that are counted each for itself; a log is
#: not trusted to have few.
_MOST_KINDS = 1000
_MOST_EXAMPLES = 3


@dataclasses.dataclass
class Kind:
    """Differences in shadow mode of one kind.

    :ivar examples: requests
    """

    requests: int = 0
    hosts: int = 0
    examples: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Flavor:
    """What shadow mode says about one flavor."""

    requests: int = 0
    differing: int = 0
    hosts: int = 0


@dataclasses.dataclass
class Shadow:
    """The comparisons of shadow mode.

    :ivar only_nova: requests for which only Nova's filters leave a host
    :ivar only_hpcvirt: requests for which only hpcvirt's filter does
    :ivar by_reason: direction and code -> the differences
    :ivar errors: requests whose comparison failed
    """

    requests: int = 0
    differing: int = 0
    hosts: int = 0
    compared: int = 0
    only_nova: int = 0
    only_hpcvirt: int = 0
    errors: int = 0
    error: str | None = None
    by_reason: dict[tuple[shadow.Direction, reasons.Code | None], Kind] = (
        dataclasses.field(default_factory=dict))
    by_flavor: dict[str, Flavor] = dataclasses.field(default_factory=dict)

    def add(self, item: shadow.Comparison) -> None:
        """Add the comparison of a request."""
        self.requests += 1
        self.hosts += item.hosts
        self.compared += item.compared
        self.differing += bool(item.differences)
        self.only_nova += bool(item.passed_by_nova and not item.passed)
        self.only_hpcvirt += bool(item.passed and not item.passed_by_nova)
        if item.error is not None:
            self.errors += 1
            self.error = self.error or item.error
        request = item.request_id or item.instance or '-'
        if item.flavor in self.by_flavor or (
                len(self.by_flavor) < _MOST_KINDS):
            flavor = self.by_flavor.setdefault(item.flavor, Flavor())
            flavor.requests += 1
            flavor.differing += bool(item.differences)
            flavor.hosts += item.differing
        for difference in item.differences:
            kind = self.by_reason.setdefault(
                (difference.direction, difference.code), Kind())
            kind.requests += 1
            kind.hosts += difference.hosts
            if len(kind.examples) < _MOST_EXAMPLES:
                kind.examples.append(request)


@dataclasses.dataclass
class Found:
    """What a log has.

    :ivar refused: the number of refusals
    :ivar refusals: the last ones
    :ivar unreadable: documents that are cut or of another form
    """

    refused: int = 0
    refusals: collections.deque[refusal.Refusal] = dataclasses.field(
        default_factory=lambda: collections.deque(maxlen=MOST_REFUSALS))
    unreadable: int = 0
    shadow: Shadow = dataclasses.field(default_factory=Shadow)
    others: int = 0


def read(lines: Iterable[bytes], request: str | None) -> Found:
    """Read a log.

    :param request: only read of the request with this id, or of this
        instance; the others are counted
    """
    found = Found()
    for mark, plain in log_text.documents(lines,
                                          (refusal.MARK, shadow.MARK)):
        item = _record(mark, plain)
        if item is None:
            found.unreadable += 1
        elif request is not None and request not in (
                item.request_id, item.global_request_id, item.instance):
            found.others += 1
        elif isinstance(item, refusal.Refusal):
            found.refused += 1
            found.refusals.append(item)
        else:
            found.shadow.add(item)
    return found


def _record(mark: str, plain: object,
            ) -> refusal.Refusal | shadow.Comparison | None:
    try:
        if mark == refusal.MARK:
            return refusal.read(plain, 'log')
        return shadow.read(plain, 'log')
    except exception.InvalidInput:
        return None

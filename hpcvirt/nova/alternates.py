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

"""Remove hosts that are wrong for a guest whose build failed on another.

nova-scheduler chooses one of the hosts that pass, and up to
``[scheduler]max_attempts`` - 1 others as alternates, on which the guest is
built if the build fails. The filter cannot see which host will be what.
"""

import collections
import typing
from collections.abc import Iterator
from collections.abc import Sequence

from hpcvirt.fit import reasons
from hpcvirt.fit import retry_check
from hpcvirt.fit import supply as supplies
from hpcvirt.nova import claim_start
from hpcvirt.nova import picks

#: A HostState, and why it is refused.
Verdict = tuple[typing.Any, reasons.Misfit | None]


def sift(verdicts: Sequence[Verdict], spec: typing.Any,
         start: claim_start.ClaimStart, packing: bool) -> Iterator[Verdict]:
    """Refuse the hosts that must not become alternates.

    If no other host remains, the first one passes after all: it is chosen, and
    there is no alternate. That does not hold if several guests are created.

    :param spec: the RequestSpec
    :param packing: ``packing_host_numa_cells_allocation_strategy``
    """
    several = 'num_instances' in spec and spec.num_instances > 1
    passed = [host_state for host_state, misfit in verdicts if misfit is None]
    if len(passed) > 1 or several:
        unsafe = _unsafe(passed, spec, start, packing, several)
    else:
        unsafe = {}
    if len(unsafe) == len(passed) and unsafe and not several:
        del unsafe[id(passed[0])]
    for host_state, misfit in verdicts:
        yield host_state, misfit or unsafe.get(id(host_state))


def _unsafe(hosts: Sequence[typing.Any], spec: typing.Any,
            start: claim_start.ClaimStart, packing: bool,
            several: bool) -> dict[int, reasons.Misfit]:
    """Say what would be wrong with each host as an alternate of another."""
    claims = [_Claims(host_state, spec, start, packing)
              for host_state in hosts]
    counts = collections.Counter(
        pages for each in claims for pages in each.pages)
    unsafe = {}
    for each in claims:
        misfit = each.check({
            pages for pages, count in counts.items()
            if several or count > (pages in each.pages)})
        if misfit is not None:
            unsafe[id(each.host_state)] = misfit
    return unsafe


class _Claims:
    """The claims on a host, with the first of its allocation candidates."""

    def __init__(self, host_state: typing.Any, spec: typing.Any,
                 start: claim_start.ClaimStart, packing: bool) -> None:
        self.host_state = host_state
        self._packing = packing
        self._left: Sequence[supplies.Supply] = picks.what_is_left(
            host_state, spec, start.demand)
        allocation = start.allocation(
            host_state, host_state.allocation_candidates[0]['mappings'])
        self._demand = start.bound(allocation)
        self._providers = allocation.providers
        found = {retry_check.pages(self._demand, supply, packing,
                                   self._providers) for supply in self._left}
        self.pages = {pages for pages in found if pages is not None}

    def check(self, possible: set[retry_check.Pages],
              ) -> reasons.Misfit | None:
        for supply in self._left:
            misfit = retry_check.check(self._demand, supply, self._packing,
                                       possible, self._providers)
            if misfit is not None:
                return misfit
        return None

# SPDX-License-Identifier: Apache-2.0

"""Remove hosts that are wrong for a guest whose build failed on another.

nova-scheduler chooses one of the hosts that pass, and up to
``[scheduler]max_attempts`` - 1 others as alternates, on which the guest is
built if the build fails. The filter cannot see which host will be what.
"""

import collections
import typing
from collections.abc import Iterator
from collections.abc import Sequence

from hpcvirt.fit import move_check
from hpcvirt.fit import reasons
from hpcvirt.fit import supply as supplies
from hpcvirt.nova import charged_supply
from hpcvirt.nova import claim_input
from hpcvirt.nova import malformed_host

#: A HostState, and why it is refused.
Verdict = tuple[typing.Any, reasons.Misfit | None]


def sift(verdicts: Sequence[Verdict], spec: typing.Any,
         start: claim_input.ClaimInput, packing: bool) -> Iterator[Verdict]:
    """Refuse the hosts that must not become alternates.

    If no other host remains, the first one passes after all: it is chosen, and
    there is no alternate. That does not hold if several guests are created.

    :param spec: the RequestSpec
    :param packing: see :func:`hpcvirt.nova.config.read_packing`
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
            start: claim_input.ClaimInput, packing: bool,
            several: bool) -> dict[int, reasons.Misfit]:
    """Say what would be wrong with each host as an alternate of another."""
    unsafe: dict[int, reasons.Misfit] = {}
    claims = []
    for host_state in hosts:
        try:
            claims.append(_Claims(host_state, spec, start, packing))
        except Exception as exc:  # noqa: BLE001
            unsafe[id(host_state)] = malformed_host.misfit(host_state, exc)
    counts = collections.Counter(
        pages for each in claims for pages in each.pages)
    for each in claims:
        try:
            misfit = each.check({
                pages for pages, count in counts.items()
                if several or count > (pages in each.pages)})
        except Exception as exc:  # noqa: BLE001
            misfit = malformed_host.misfit(each.host_state, exc)
        if misfit is not None:
            unsafe[id(each.host_state)] = misfit
    return unsafe


class _Claims:
    """The claims on a host, with the first of its allocation candidates."""

    def __init__(self, host_state: typing.Any, spec: typing.Any,
                 start: claim_input.ClaimInput, packing: bool) -> None:
        self.host_state = host_state
        self._left: Sequence[supplies.Supply] = charged_supply.find_supplies(
            host_state, spec, start, packing)
        allocation = start.first_allocation(host_state)
        self._demand = start.bound(allocation)
        self._providers = allocation.providers
        found = {move_check.predict_pages(self._demand, supply,
                                          self._providers)
                 for supply in self._left}
        self.pages = {pages for pages in found if pages is not None}

    def check(self, possible: set[move_check.Pages],
              ) -> reasons.Misfit | None:
        for supply in self._left:
            misfit = move_check.check_retry(self._demand, supply, possible,
                                       self._providers)
            if misfit is not None:
                return misfit
        return None

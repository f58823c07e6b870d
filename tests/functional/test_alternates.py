# SPDX-License-Identifier: Apache-2.0

"""Builds that fail on one host and are tried again on an alternate.

Random guests are claimed by Nova on one of the hosts that the filter passes,
cleared by Nova as after a failed build, and claimed on another such host.
"""

import collections
import copy
import itertools
import random

from hpcvirt.nova import filters
from tests.builders import cases
from tests.functional import multi_create
from tests.functional import nova_objects
from tests.functional import soundness

REQUESTS = 250
HOSTS = 3

#: The claim of the retry serves the guest well, or refuses it.
HARMLESS = (None, soundness.REFUSED, soundness.NO_DEVICES, soundness.RAISED)


class AlternatesTest(soundness.ClaimingTestCase):
    def retries(self, max_attempts):
        """Return what came of all retries, and how many hosts passed."""
        soundness.CONF.set_override('max_attempts', max_attempts, 'scheduler')
        faults = collections.Counter()
        requests = hosts = 0
        for number in range(REQUESTS):
            dice = random.Random(f'alternates {number}')
            fleet = a_fleet(dice)
            soundness.CONF.set_override(
                'packing_host_numa_cells_allocation_strategy',
                fleet[0].packing, 'compute')
            states = [nova_objects.host_state(case, f'host{number}')
                      for number, case in enumerate(fleet)]
            passed = set(filters.HPCTopologyFilter().filter_all(
                states, multi_create.request_spec(fleet[0], 1)))
            requests += bool(passed)
            hosts += len(passed)
            for first, second in itertools.permutations(
                    [pair for pair in zip(fleet, states, strict=True)
                     if pair[1] in passed], 2):
                faults[retry(first, second)] += 1
        return faults, requests, hosts

    def test_periodic_no_alternate_is_wrong(self):
        faults, requests, hosts = self.retries(3)
        self.assertLessEqual(set(faults), set(HARMLESS))
        self.assertGreater(faults[None], REQUESTS // 5)
        # What it is for, and what it costs.
        unguarded, all_requests, all_hosts = self.retries(1)
        self.assertGreater(len(set(unguarded) - set(HARMLESS)), 0)
        self.assertEqual(all_requests, requests)
        self.assertLess(all_hosts * 0.9, hosts)


def a_fleet(dice):
    """Create a random guest of several cells, and hosts."""
    while True:
        case = cases.a_case(dice)
        fleet = [case, *(cases.on_another_host(dice, case)
                         for _ in range(HOSTS - 1))]
        if len(case.guest) > 1 and all(
                cell.pages for each in fleet for cell in each.host) and (
                multi_create.request_spec(case, 1) is not None):
            return [soundness.as_installed(each) for each in fleet]


def retry(first, second):
    """Build on one host, fail, and claim on another; return the fault."""
    (case, state), (other, other_state) = first, second
    guest = soundness.Claims(case).claim(
        state.allocation_candidates[0]['mappings'])
    guest = copy.deepcopy(guest).clear_host_pinning()
    claimed = soundness.Claims(other).claim(
        other_state.allocation_candidates[0]['mappings'], guest=guest)
    return soundness.fault(other, claimed)

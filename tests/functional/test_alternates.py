# SPDX-License-Identifier: Apache-2.0

"""Builds that fail on one host and are tried again on an alternate.

Random guests are claimed by Nova on one of the hosts that the filter passes,
cleared by Nova as after a failed build, and claimed on another such host.
"""

import collections
import copy
import itertools
import random
from unittest import mock

from hpcvirt.fit import move_check
from hpcvirt.fit import reasons
from hpcvirt.nova import claim_input
from hpcvirt.nova import decision
from hpcvirt.nova import filters
from tests.builders import cases
from tests.functional import filtering
from tests.functional import multi_create
from tests.functional import nova_objects
from tests.functional import soundness

REQUESTS, MANY_REQUESTS = 30, 250
HOSTS = 3

#: The claim of the retry serves the guest well, or refuses it.
HARMLESS = (None, soundness.REFUSED, soundness.NO_DEVICES, soundness.RAISED)


class AlternatesTest(soundness.ClaimingTestCase):
    def retries(self, max_attempts, guests):
        """Return what came of all retries, and how many hosts passed.

        :param guests: the number of random guests
        """
        soundness.CONF.set_override('max_attempts', max_attempts, 'scheduler')
        faults = collections.Counter()
        requests = hosts = 0
        for number in range(guests):
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

    def assert_none_is_wrong(self, guests):
        faults, requests, hosts = self.retries(3, guests)
        self.assertLessEqual(set(faults), set(HARMLESS))
        self.assertGreater(faults[None], guests // 5)
        return requests, hosts

    def test_no_alternate_is_wrong(self):
        self.assert_none_is_wrong(REQUESTS)

    def test_periodic_no_alternate_of_many_is_wrong(self):
        requests, hosts = self.assert_none_is_wrong(MANY_REQUESTS)
        # What it is for, and what it costs.
        unguarded, all_requests, all_hosts = self.retries(1, MANY_REQUESTS)
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


class PossiblePagesTest(filtering.FilterTestCase):
    """The page sizes that an instance may have from a build that failed."""

    def judge(self, pages, retry, instances=1):
        """Judge hosts for an instance of unequal cells.

        :param pages: the pages that the instance gets on each host
        :param retry: tells about page sizes whether it may be built with them
        :returns: for each host whether it passes
        """
        question = filtering.case(filtering.host(0, 0), (4, 2))
        states = self.states(*[question] * len(pages))
        spec = nova_objects.request_spec(question)
        spec.num_instances = instances
        with (mock.patch.object(move_check, 'predict_pages', autospec=True,
                                side_effect=pages),
              mock.patch.object(
                  move_check, 'check_retry', autospec=True,
                  side_effect=lambda _demand, _supply, sizes, *_:
                  retry(sizes))):
            verdicts = list(decision.FilterDecision(spec).judge(states))
        return [misfit is None for _, misfit in verdicts]

    def possible(self, *pages, instances=1):
        """Return the page sizes with which each host would be tried again."""
        asked = []
        self.assertEqual([True] * len(pages), self.judge(
            pages, asked.append, instances))
        return asked

    def test_if_all_are_unsafe_the_first_is_selected_without_alternates(self):
        wrong = reasons.Misfit(reasons.Code.UNSAFE_ALTERNATE)
        for instances, passed in ((1, [True, False, False]), (2, [False] * 3)):
            self.assertEqual(passed, self.judge(
                [(4,)] * 3, lambda _: wrong, instances))

    def test_without_retries_there_are_no_alternates(self):
        soundness.CONF.set_override('max_attempts', 1, 'scheduler')
        self.addCleanup(soundness.CONF.clear_override, 'max_attempts',
                        'scheduler')
        wrong = reasons.Misfit(reasons.Code.UNSAFE_ALTERNATE)
        self.assertEqual([True] * 3, self.judge(
            [(4,)] * 3, lambda _: wrong))

    def test_a_move_has_no_alternates_that_are_unsafe(self):
        # Nova builds the instance on no other host after it has failed.
        with mock.patch.object(claim_input, 'read', side_effect=self.move,
                               autospec=True):
            self.assertEqual([True] * 3, self.judge(
                [(4,)] * 3, lambda _: reasons.Misfit(
                    reasons.Code.UNSAFE_ALTERNATE)))

    @staticmethod
    def move(_spec, demand):
        return claim_input.ClaimInput(
            demand, [], move_check.MoveClaim(
                demand, demand, reasons.Defect.FORMER_HOST))

    def test_a_single_host_has_no_alternates(self):
        wrong = reasons.Misfit(reasons.Code.UNSAFE_ALTERNATE)
        self.assertEqual([True], self.judge([(4,)], lambda _: wrong))
        self.assertEqual([False], self.judge([(4,)], lambda _: wrong, 2))

    def test_a_host_is_no_alternate_of_itself(self):
        self.assertEqual([{(4,)}, {(2048,)}], self.possible((2048,), (4,)))

    def test_equal_hosts_are_alternates_of_each_other(self):
        self.assertEqual([{(4,)}] * 2, self.possible((4,), (4,)))

    def test_a_host_whose_claim_refuses_leaves_no_pages(self):
        self.assertEqual([set(), {(4,)}], self.possible((4,), None))

    def test_a_host_that_cannot_be_read_is_refused(self):
        self.assertEqual([True, False, True], self.judge(
            [(4,), RuntimeError('it is malformed'), (4,)], lambda _: None))

    def test_another_instance_may_fail_on_the_same_host(self):
        self.assertEqual([{(4,), (2048,)}] * 2,
                         self.possible((2048,), (4,), instances=2))

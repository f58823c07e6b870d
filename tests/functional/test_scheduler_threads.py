# SPDX-License-Identifier: Apache-2.0

"""The threads of nova-scheduler share one filter and its weigher.

With eventlet, the threads are greenlets, which take turns only where they
wait, so that these tests show little on the releases that use it.
"""

import dataclasses
import itertools
import logging
import random
import sys
import threading
import time
import typing
import unittest

import fixtures
from nova.scheduler import weights as nova_weights

from hpcvirt.nova import filters
from hpcvirt.nova import host_record
from hpcvirt.nova import weights
from tests.builders import cases
from tests.functional import nova_objects

THREADS = 8
REQUESTS, MANY_REQUESTS = 300, 1000
KINDS = 60
HOSTS = 3
#: Python's default is 5 ms, in which a thread decides about several requests.
SWITCH_INTERVAL_S = 10e-6
#: The weigher forgets its ratings when it knows more than this.
KNOWN_RATINGS = 60


class TopologyWeigher(weights.HPCTopologyWeigher):
    """Notes the order in which it sees requests: its weights depend on it."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def _weigh(self, hosts, spec):
        self.seen.append(spec.number)
        return super()._weigh(hosts, spec)


class Slow(str):
    """Lets other threads run whenever it is looked up."""

    __slots__ = ()

    def __hash__(self):
        time.sleep(0.01)
        return super().__hash__()


class Passed(typing.NamedTuple):
    """A host that passed for a request."""

    host: str
    limits: dict
    candidates: list
    weight: float


class Answers(logging.Handler):
    """Keeps why hosts and allocation candidates were refused.

    :ivar messages: number of a request -> what was logged about it
    :ivar warnings: each warning, which is not about one request alone
    """

    def __init__(self):
        super().__init__(logging.DEBUG)
        self.messages = {}
        self.warnings = []
        self.request = threading.local()

    def emit(self, record):
        if record.levelno == logging.DEBUG:
            self.messages.setdefault(self.request.number, []).append(
                record.getMessage())
        elif record.levelno == logging.WARNING:
            self.warnings.append(record.getMessage())


class Scheduler:
    """One filter and one weigher, as nova-scheduler holds them."""

    def __init__(self):
        self.filter = filters.HPCTopologyFilter()
        self.weigher = TopologyWeigher()
        self.answers = Answers()

    def decide(self, number, spec, states):
        """Filter the hosts of a request, and weigh those that pass."""
        self.answers.request.number = spec.number = number
        passed = list(self.filter.filter_all(states, spec))
        hosts = [nova_weights.WeighedHost(state, 0) for state in passed]
        weighed = self.weigher.weigh_objects(hosts, spec) if hosts else []
        return [Passed(
            state.host, {name: limit.obj_to_primitive()
                         for name, limit in state.limits.items()},
            state.allocation_candidates, weight)
            for state, weight in zip(passed, weighed, strict=True)]


def fleets(requests):
    """Draw requests: the cases of the hosts of each.

    :param requests: their number
    """
    dice = random.Random('threads 2')
    kinds = [dice.choice((cases.a_plain_case, cases.a_case_with_devices,
                          cases.a_case, cases.a_case_with_devices))(dice)
             for _ in range(KINDS)]
    return [draw_hosts(dice, kind) for kind in dice.choices(kinds, k=requests)]


def draw_hosts(dice, case):
    return [with_sets(cases.on_another_host(dice, case))
            for _ in range(HOSTS)]


def with_sets(case):
    """Join each two devices that Placement tracks to a set."""
    if not case.pools:
        return case
    return dataclasses.replace(case, pools=tuple(
        dataclasses.replace(pool, tags={
            **pool.tags, 'hpcvirt_device_sets': f'pair:{number // 2}:2'})
        if pool.provider else pool
        for number, pool in enumerate(case.pools)))


def make_request(number, fleet):
    """Make the objects of a request, anew as nova-scheduler does.

    Every tenth request meets a host with a malformed record.
    """
    states = [nova_objects.host_state(case, f'host{host}')
              for host, case in enumerate(fleet)]
    if number % 10 == 0:
        for cell in states[0].numa_topology.cells:
            cell._obj_memory = None
    return nova_objects.request_spec(fleet[0]), states


class SchedulerThreadsTest(unittest.TestCase):
    def setUp(self):
        super().setUp()
        self.addCleanup(sys.setswitchinterval, sys.getswitchinterval())
        self.replace('hpcvirt.nova.host_record._warned', {})
        self.logger = logging.getLogger('hpcvirt')
        self.addCleanup(self.logger.setLevel, self.logger.level)
        self.logger.setLevel(logging.DEBUG)

    def replace(self, name, value):
        patch = fixtures.MonkeyPatch(name, value)
        patch.setUp()
        self.addCleanup(patch.cleanUp)

    def start(self, work):
        """Run a function in all threads at once, and wait for them."""
        errors = []
        barrier = threading.Barrier(THREADS)

        def run():
            barrier.wait()
            try:
                work()
            except Exception as exc:  # noqa: BLE001
                errors.append(exc)

        threads = [threading.Thread(target=run) for _ in range(THREADS)]
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([], errors)

    def decide(self, scheduler, numbers, start):
        """Decide about requests.

        :param start: calls the function that takes requests until none is left
        :returns: number of a request -> the hosts that pass
        """
        requests = [make_request(number, fleet) for number, fleet
                    in enumerate(fleets(len(numbers)))]
        left = iter(numbers)
        found = {}

        def work():
            for number in left:
                found[number] = scheduler.decide(number, *requests[number])

        self.logger.addHandler(scheduler.answers)
        try:
            start(work)
        finally:
            self.logger.removeHandler(scheduler.answers)
        return found

    def test_many_threads_decide_as_one(self):
        self.assert_decide_as_one(REQUESTS)

    def test_periodic_they_do_so_for_many_requests(self):
        self.assert_decide_as_one(MANY_REQUESTS)

    def assert_decide_as_one(self, requests):
        self.replace('hpcvirt.nova.weights.MAX_KNOWN', KNOWN_RATINGS)
        # Candidates that break equal sets are in random order.
        self.replace('random.shuffle', lambda _: None)
        together, alone = Scheduler(), Scheduler()
        numbers = list(range(requests))
        found = self.decide(together, numbers, self.start)
        weighed = together.weigher.seen
        self.assertCountEqual(weighed, set(weighed))
        expected = self.decide(
            alone, [*set(numbers).difference(weighed), *weighed],
            lambda work: work())
        self.assertEqual(expected, found)
        self.assertEqual(alone.answers.messages, together.answers.messages)
        self.assert_varied(expected, together.answers)

    def assert_varied(self, expected, answers):
        """Check that there was something to decide."""
        several = [rows for rows in expected.values() if len(rows) > 1]
        self.assertGreater(sum(map(len, expected.values())),
                           len(expected) // 3)
        self.assertGreater(len(several), len(expected) // 10)
        self.assertTrue(any(len({row.weight for row in rows}) > 1
                            for rows in several))
        reasons = [*itertools.chain(*answers.messages.values())]
        self.assertGreater(len(reasons), len(expected))
        self.assertTrue(any('removed' in line for line in reasons))
        # Each kind of malformed record has one warning.
        self.assertCountEqual(answers.warnings, set(answers.warnings))
        self.assertTrue(answers.warnings)

    def test_only_one_thread_warns(self):
        firsts = []
        self.start(lambda: firsts.append(
            host_record.is_first(Slow('host'), 'is malformed')))
        self.assertEqual([False] * (THREADS - 1) + [True], sorted(firsts))

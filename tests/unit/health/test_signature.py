# SPDX-License-Identifier: Apache-2.0

"""When a host is slow, and when it is no longer."""

import dataclasses
import itertools
import random
import unittest

from benchmarks import host_samples
from hpcvirt import bibliography
from hpcvirt.health import rates
from hpcvirt.health import signature

QUIET = {'system': 0.02, 'interrupts': 1000.0, 'iowait': 0.001}
SLOW = host_samples.SHOOTDOWNS


def follow(minutes, state=None, first=None):
    """Follow a host; return the states after each sample."""
    found = []
    state = state or signature.HostHealth()
    for sample in host_samples.make_samples(minutes, first or state.last):
        state, _ = signature.follow(state, sample)
        found.append(state)
    return found


class SignatureTest(unittest.TestCase):
    def test_the_published_slow_hosts_are_found_in_ten_minutes(self):
        for slow, words in (
                (SLOW, ('system time 40%, 3750 interrupts per second and CPU, '
                        'of them 2500 TLB shoot-downs')),
                (host_samples.SWAPPING,
                 'iowait 25% and 2000 pages swapped per second')):
            states = follow([QUIET] * 30 + [{**QUIET, **slow}] * 10)
            self.assertEqual('', states[-2].reason)
            self.assertEqual(words, states[-1].reason)
            self.assertTrue(states[-1].wanted)

    def test_one_quantity_of_a_sign_is_not_enough(self):
        for part in SLOW:
            states = follow([{**QUIET, part: SLOW[part]}] * 300)
            self.assertEqual('', states[-1].reason)

    def test_a_burst_is_no_sign(self):
        minutes = ([SLOW] * 9 + [QUIET]) * 50
        self.assertEqual({''}, {state.reason for state in follow(minutes)})

    def test_a_quiet_minute_is_no_release(self):
        states = follow([SLOW] * 10 + ([QUIET] * 29 + [SLOW]) * 10)
        self.assertTrue(all(state.wanted for state in states[10:]))

    def test_half_an_hour_of_quiet_is_a_release(self):
        states = follow([SLOW] * 10 + [QUIET] * 30)
        self.assertTrue(states[-2].wanted)
        self.assertFalse(states[-1].wanted)

    def test_a_little_below_the_limit_changes_nothing(self):
        nearly = {**SLOW, 'system': 0.25}
        states = follow([SLOW] * 5 + [nearly] * 99 + [SLOW] * 5
                        + [nearly] * 99)
        self.assertEqual('', states[5 + 99 + 4].reason)
        self.assertTrue(states[-1].reason)

    def test_what_is_not_known_changes_nothing(self):
        slow = follow([SLOW] * 10)[-1]
        blind = dataclasses.replace(slow.last, cpu_time=None,
                                    interrupts=None, shootdowns=None)
        for _ in range(100):
            blind = dataclasses.replace(blind, uptime_s=blind.uptime_s + 60)
            slow, found = signature.follow(slow, blind)
        self.assertNotIn('system', found)
        self.assertTrue(slow.wanted)

    def test_a_boot_is_no_release_by_itself(self):
        slow = follow([SLOW] * 10)[-1]
        booted = dataclasses.replace(
            next(host_samples.make_samples([])), boot_id='two', uptime_s=10.0)
        states = [signature.follow(slow, booted)[0]]
        states += follow([QUIET] * 30, states[0])
        self.assertTrue(states[-2].wanted)
        self.assertFalse(states[-1].wanted)

    def test_a_gap_neither_holds_nor_releases(self):
        slow = follow([SLOW] * 9)[-1]
        late = dataclasses.replace(slow.last,
                                   uptime_s=slow.last.uptime_s + 86400)
        after, _ = signature.follow(slow, late)
        self.assertEqual(slow.signs, after.signs)
        self.assertTrue(follow([SLOW], after)[-1].wanted)

    def test_slab_that_leaks_is_found_and_freed_by_a_boot(self):
        states = follow([{**QUIET, 'slab': 0.001}] * 60)
        self.assertIn('unreclaimable slab', states[-1].reason)
        booted = dataclasses.replace(states[-1].last, boot_id='two',
                                     slab_kib=1 << 20)
        state, _ = signature.follow(states[-1], booted)
        self.assertFalse(follow([QUIET] * 31, state)[-1].wanted)

    def test_a_lost_state_releases_nothing_too_early(self):
        states = follow([QUIET] * 31)
        self.assertIsNone(states[29].wanted)
        self.assertIs(False, states[30].wanted)

    def test_a_host_that_is_slow_in_all_ways_says_so(self):
        minutes = [{
            'system': 0.5, 'interrupts': 9e3, 'shootdowns': 9e3,
            'iowait': 0.3, 'swapped': 900.0,
            'steal': 0.2, 'foreign_tasks': 0.3, 'errors': 9.0,
            'throttles': 200.0,
            'slab': 0.01}] * 125
        state = follow(minutes)[-1]
        self.assertEqual({sign.name for sign in signature.SIGNS},
                         {name for name, each in state.signs.items()
                          if each.on})

    def test_sources_are_in_the_bibliography(self):
        for sign in signature.SIGNS:
            if sign.source is not None:
                bibliography.get(sign.source)

    def test_healthy_hosts_raise_no_alarm(self):
        dice = random.Random('three days')
        states = follow(host_samples.healthy(dice, 3 * 1440))
        self.assertEqual({''}, {state.reason for state in states})


class UsualTest(unittest.TestCase):
    def recording(self, number, **more):
        dice = random.Random(f'{number}')
        return list(host_samples.make_samples(
            {**each, **more} for each in itertools.islice(
                host_samples.healthy(dice, 300), 300)))

    def limits(self, *recordings):
        return next(dict(sign.limits) for sign
                    in signature.learn_signs(recordings)
                    if sign.name == 'shootdowns')

    def test_limits_are_never_lowered(self):
        found = self.limits(*map(self.recording, range(3)))
        for sign in signature.SIGNS[:1]:
            for name, limit in sign.limits.items():
                self.assertGreaterEqual(found[name], limit)

    def test_what_the_class_has_is_no_sign(self):
        busy = [self.recording(number, interrupts=9000.0 + number)
                for number in range(3)]
        self.assertGreater(
            self.limits(*busy)[rates.Quantity.INTERRUPTS], 9000.0)

    def test_one_slow_host_of_five_hardly_counts(self):
        hosts = [self.recording(number) for number in range(4)]
        slow = self.recording(5, system=0.9, interrupts=50_000.0)
        with_it, without = self.limits(*hosts, slow), self.limits(*hosts)
        self.assertLess(with_it[rates.Quantity.SYSTEM],
                        without[rates.Quantity.SYSTEM] + 0.1)

    def test_a_few_frames_say_nothing(self):
        few = [self.recording(1, interrupts=9000.0)[:50]]
        self.assertEqual(dict(signature.SIGNS[0].limits), self.limits(*few))

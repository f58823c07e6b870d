# SPDX-License-Identifier: Apache-2.0

"""How much a host looks like a slow node."""

import dataclasses
import unittest

import hypothesis
from hypothesis import strategies as st

from hpcvirt import bibliography
from hpcvirt.health import host_watch
from hpcvirt.health import signature
from hpcvirt.health.signature import HOST
from hpcvirt.health.signature import HostSample
from hpcvirt.health.signature import Quantity

SIGNS = {sign.name: sign for sign in signature.SIGNS}


def cpus(number, values):
    """The rates of a host of which the first CPUs do this."""
    return {
        Quantity.BUSY: {f'cpu{cpu}': 1.0 for cpu in range(number)},
        **{name: {HOST: sum(each), **{
            f'cpu{cpu}': value for cpu, value in enumerate(each)}}
           for name, each in values.items()}}


def watch(minutes):
    """Let a host pass these minutes; return what it exports then."""
    found = host_watch.HostWatch(print)
    for minute, rates in enumerate(minutes):
        found.score(60.0 * minute, 60.0, rates)
    return found.scores


#: What the published hosts did, on their 32 CPUs.
SLOW = {Quantity.SYSTEM: 0.4 * 32, Quantity.INTERRUPTS: 120_000.0,
        Quantity.SHOOTDOWNS: 80_000.0}


class SignatureTest(unittest.TestCase):
    def test_the_published_totals_are_seen_on_32_and_on_128_cpus(self):
        for number in (32, 128):
            rates = cpus(number, {name: [value / number] * number
                                  for name, value in SLOW.items()})
            score, unit = watch([rates] * 10)['shootdowns']
            self.assertEqual(HOST, unit)
            self.assertAlmostEqual(1.5, score)

    def test_a_large_host_may_do_more_before_it_is_slow(self):
        rates = cpus(512, {name: [value / 512] * 512
                           for name, value in SLOW.items()})
        self.assertEqual(0.0, watch([rates] * 10)['shootdowns'].score)

    def test_a_storm_in_one_guest_of_a_large_host_is_seen(self):
        rates = cpus(128, {
            Quantity.SYSTEM: [0.4] * 16 + [0.01] * 112,
            Quantity.SHOOTDOWNS: [2500.0] * 16 + [10.0] * 112})
        score, unit = watch([rates] * 10)['cpu-shootdowns']
        self.assertIn(unit, {f'cpu{cpu}' for cpu in range(16)})
        self.assertGreater(score, 1)

    def test_the_cpus_of_a_sign_must_be_the_same(self):
        rates = cpus(4, {Quantity.SYSTEM: [0.9, 0.9, 0.0, 0.0],
                         Quantity.SHOOTDOWNS: [0.0, 0.0, 9e4, 9e4]})
        self.assertEqual((0.0, HOST), watch([rates] * 10)['cpu-shootdowns'])

    def test_one_foreign_task_on_one_of_120_cpus_is_seen(self):
        rates = cpus(120, {Quantity.FOREIGN_TASKS: [0.5] + [0.0] * 119})
        self.assertEqual((2.5, 'cpu0'), watch([rates] * 10)['foreign-tasks'])

    def test_units_that_take_turns_are_no_sign(self):
        minutes = [cpus(8, {Quantity.FOREIGN_TASKS: [
            float(cpu == minute // 5 % 8) for cpu in range(8)]})
            for minute in range(120)]
        self.assertEqual((0.0, HOST), watch(minutes)['foreign-tasks'])

    def test_a_burst_is_no_sign_but_what_comes_again_and_again_is(self):
        slow, quiet = ({Quantity.STEAL: {'cpu0': each}} for each in (0.3, 0.0))
        self.assertEqual(0.0, watch([slow] * 9 + [quiet] * 21)['steal'].score)
        self.assertEqual(0.0, watch(([slow] * 9 + [quiet] * 31) * 9)[
            'steal'].score)
        score = watch(([slow] * 5 + [quiet] * 5) * 3)['steal'].score
        self.assertAlmostEqual(3.0, score)

    def test_the_length_of_the_intervals_does_not_matter(self):
        for length, number in ((10.0, 60), (300.0, 2)):
            found = host_watch.HostWatch(print)
            for step in range(number):
                self.assertNotIn('steal', found.scores)
                found.score(length * step, length,
                            {Quantity.STEAL: {'cpu0': 0.3}})
            self.assertAlmostEqual(3.0, found.scores['steal'].score)

    def test_a_guest_that_has_ended_is_forgotten(self):
        slow = {Quantity.MAJOR_FAULTS: {'guest-1': 500.0}}
        after = {Quantity.MAJOR_FAULTS: {'guest-2': 0.0}}
        self.assertEqual((5.0, 'guest-1'),
                         watch([slow] * 20)['guest-swapping'])
        self.assertEqual((0.0, HOST), watch([slow] * 20 + [after] * 25)[
            'guest-swapping'])

    def test_what_is_not_known_has_no_score(self):
        self.assertEqual({}, watch([{}] * 30))
        self.assertEqual({'steal'}, watch(
            [{Quantity.STEAL: {}}] * 30).keys())

    def test_each_other_cause_is_a_sign(self):
        for name, quantity, unit, value in (
                ('frequency', Quantity.SLOWDOWN, 'cpu3', 0.6),
                ('throttling', Quantity.THROTTLED_S, 'cpu3-core', 72.0),
                ('memory-errors', Quantity.CORRECTED_ERRORS, 'mc1', 20.0),
                ('uncorrected-errors', Quantity.UNCORRECTED_ERRORS, 'mc1',
                 1.0),
                ('interrupts', Quantity.INTERRUPTS, 'cpu1', 20_000.0),
                ('link', Quantity.LINK_LOSS, '0000:3b:00.0', 0.5),
                ('slab', Quantity.SLAB, HOST, 0.03)):
            scores = watch([{quantity: {HOST: 0.0, unit: value}}] * 10)
            self.assertEqual(unit, scores[name].unit)
            self.assertGreaterEqual(scores[name].score, 1, name)

    def test_sources_are_in_the_bibliography(self):
        for sign in signature.SIGNS:
            if sign.source is not None:
                bibliography.get(sign.source)


def sample(uptime_s=1000.0, **values):
    return HostSample(time=1.8e9, uptime_s=uptime_s, values={
        Quantity(name): each for name, each in values.items()})


class RatesTest(unittest.TestCase):
    """What samples say about the time between them."""

    def compute(self, first, second, later=60.0):
        before = sample(**first)
        after = sample(1000.0 + later, **second)
        return signature.compute_rates(before, before, after)

    def test_rates_are_those_of_each_unit_and_their_sum(self):
        found = self.compute(
            {'system': {'cpu0': 10.0, 'cpu1': 5.0},
             'foreign_tasks': {'cpu1': 0.0}},
            {'system': {'cpu0': 40.0, 'cpu1': 11.0},
             'foreign_tasks': {'cpu1': 12.0}})
        self.assertEqual({'cpu0': 0.5, 'cpu1': 0.1, HOST: 0.6},
                         found[Quantity.SYSTEM])
        self.assertEqual({'cpu1': 0.2}, found[Quantity.FOREIGN_TASKS])

    def test_levels_stay_what_they_are(self):
        found = self.compute({}, {'slab': {HOST: 0.1}, 'link_loss': {'a': 0.5},
                                  'uncorrected_errors': {'mc0': 1.0}})
        self.assertEqual([{HOST: 0.1}, {'a': 0.5}, {'mc0': 1.0}],
                         list(found.values()))

    def test_what_is_rare_is_counted_since_the_earlier_sample(self):
        first, second, third = (
            sample(1000.0 + 60 * number, corrected_errors={'mc0': errors})
            for number, errors in enumerate((1, 15, 16)))
        self.assertEqual({'mc0': 15.0}, signature.compute_rates(
            first, second, third)[Quantity.CORRECTED_ERRORS])

    def test_only_a_busy_cpu_is_slowed_down(self):
        found = self.compute(
            {'busy': {'cpu0': 0.0, 'cpu1': 0.0}},
            {'busy': {'cpu0': 60.0, 'cpu1': 30.0},
             'slowdown': {'cpu0': 0.4, 'cpu1': 0.4}})
        self.assertEqual({'cpu0': 0.6, 'cpu1': 0.0},
                         found[Quantity.SLOWDOWN])
        turbo = self.compute({'busy': {'cpu0': 0.0}}, {
            'busy': {'cpu0': 60.0}, 'slowdown': {'cpu0': 1.4}})
        self.assertEqual({'cpu0': 0.0}, turbo[Quantity.SLOWDOWN])

    def test_nothing_is_compared_across_a_gap_or_a_still_clock(self):
        for later in (901.0, 0.0, -60.0):
            self.assertEqual({}, self.compute({'steal': {'cpu0': 0.0}}, {
                'steal': {'cpu0': 1.0}}, later))

    def test_a_clock_that_is_set_does_not_count(self):
        before = sample(steal={'cpu0': 0.0})
        after = dataclasses.replace(
            sample(1060.0, steal={'cpu0': 60.0}), time=0.0)
        self.assertEqual({'cpu0': 1.0}, signature.compute_rates(
            before, before, after)[Quantity.STEAL])

    @hypothesis.given(
        st.dictionaries(st.sampled_from('abcdef'), st.integers(0, 99)),
        st.dictionaries(st.sampled_from('abcdef'), st.integers(0, 99)))
    def test_a_unit_that_comes_goes_or_begins_anew_has_no_rate(
            self, first, second):
        found = self.compute({'steal': first}, {'steal': second})
        self.assertEqual(
            {unit for unit in first.keys() & second.keys()
             if second[unit] >= first[unit]}, found[Quantity.STEAL].keys())
        self.assertTrue(all(
            rate >= 0 for rate in found[Quantity.STEAL].values()))

    def test_what_was_not_known_before_has_no_rate(self):
        found = self.compute({}, {'swapped': {HOST: 7.0}})
        self.assertEqual({}, found[Quantity.SWAPPED])

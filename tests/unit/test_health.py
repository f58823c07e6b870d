# SPDX-License-Identifier: Apache-2.0

import dataclasses
import pathlib
import unittest

import hypothesis
from hypothesis import strategies as st

from benchmarks import host_samples
from hpcvirt import exception
from hpcvirt.health import quarantine_reconciler
from hpcvirt.health import rates
from hpcvirt.health import recording
from hpcvirt.health import signature
from hpcvirt.health.rates import Quantity
from tests.builders import folders


class Cloud:
    """Notes what it is asked for, unless it is down."""

    def __init__(self):
        self.down = False
        self.calls = []

    def hold(self, host, hold):
        self.calls.append((host, hold))
        if self.down:
            raise exception.Unreachable('it is down')

    def release(self, host, holder):
        self.calls.append((host, holder))
        if self.down:
            raise exception.Unreachable('it is down')


class KeeperTest(unittest.TestCase):
    """What the service does to a cloud, and when it tries again."""

    def setUp(self):
        self.cloud, self.now = Cloud(), 0.0
        self.reconciler = quarantine_reconciler.QuarantineReconciler(
            'n1', lambda: self.cloud, 'me@here', 60.0, lambda: self.now)
        self.state = signature.HostHealth()

    def pass_time(self, minutes, rates):
        lines = []
        for sample in host_samples.make_samples([rates] * minutes,
                                           self.state.last):
            self.now += 60
            self.state, _ = signature.follow(self.state, sample)
            self.state, line = self.reconciler.settle(self.state, 'then')
            lines += [line] if line else []
        return lines

    def test_a_slow_host_is_held_once_and_released_once(self):
        self.pass_time(30, host_samples.SHOOTDOWNS)
        ((host, hold),) = self.cloud.calls
        self.assertEqual(('n1', 'watch', 'then', 'me@here'),
                         (host, hold.holder, hold.since, hold.by))
        self.assertIn('system time 40%', hold.reason)
        self.pass_time(99, {})
        self.assertEqual([('n1', 'watch')], self.cloud.calls[1:])

    def test_what_failed_is_tried_again_ever_later_until_it_is_done(self):
        self.cloud.down = True
        lines = self.pass_time(180, host_samples.SHOOTDOWNS)
        self.assertIn('quarantine failed, next attempt in 60 s: it is down',
                      lines[0])
        self.assertIn('next attempt in 900 s', lines[-1])
        self.assertEqual(15, len(lines))
        self.assertEqual(15, self.reconciler.failures)
        self.assertIsNone(self.state.held)
        self.cloud.down = False
        self.assertEqual(['quarantine is done'],
                         self.pass_time(20, host_samples.SHOOTDOWNS))
        self.assertTrue(self.state.held)

    def test_an_outage_that_outlasts_the_signature_harms_nothing(self):
        self.pass_time(20, host_samples.SHOOTDOWNS)
        self.cloud.down = True
        self.pass_time(60, {})
        self.assertTrue(self.state.held)
        self.cloud.down = False
        self.assertEqual(['release from quarantine is done'],
                         self.pass_time(20, {}))
        self.assertIs(False, self.state.held)

    def test_a_long_reason_is_cut(self):
        self.pass_time(130, {
            'system': 0.5, 'interrupts': 9e3, 'shootdowns': 9e3,
            'steal': 0.2, 'errors': 9.0,
            'throttles': 200.0, 'foreign_tasks': 0.5, 'iowait': 0.3,
            'swapped': 900.0})
        self.assertTrue(all(len(hold.reason) <= 150
                            for _, hold in self.cloud.calls))


def pair(**change):
    """A sample, and the next one after a minute with changes."""
    first, second = host_samples.make_samples([{
        'system': 0.25, 'iowait': 0.1, 'interrupts': 1000.0,
        'shootdowns': 10.0, 'swapped': 5.0, 'foreign_tasks': 0.5,
        'errors': 2.0,
        'throttles': 3.0}])
    return first, dataclasses.replace(second, **change)


class RatesTest(unittest.TestCase):
    """What samples say about the time between them."""

    def test_rates_are_those_of_the_host(self):
        found = rates.compute_rates(*pair())
        self.assertEqual(
            {'system': 0.25, 'iowait': 0.1, 'steal': 0.0, 'interrupts': 1000.0,
             'shootdowns': 10.0, 'swapped': 5.0, 'foreign_tasks': 0.5,
             'errors': 2.0, 'throttles': 3.0},
            {name.value: round(value, 9) for name, value in found.items()})

    def test_slab_grows_from_where_it_was(self):
        first, second = pair(slab_kib=3 << 20)
        self.assertEqual(1 / 32, rates.compute_rates(
            first, second, 1 << 20)[Quantity.SLAB])
        self.assertEqual(0.0, rates.compute_rates(
            first, second, 4 << 20)[Quantity.SLAB])

    def test_nothing_is_compared_across_a_boot_a_gap_or_a_still_clock(self):
        first, second = pair()
        for change in ({'boot_id': 'two'},
                       {'uptime_s': first.uptime_s + 901},
                       {'uptime_s': first.uptime_s},
                       {'uptime_s': first.uptime_s - 60}):
            self.assertEqual({}, rates.compute_rates(
                first, dataclasses.replace(second, **change)))

    def test_a_clock_that_is_set_does_not_count(self):
        for jump in (-1e9, 1e6):
            first, second = pair(time=1.8e9 + jump)
            self.assertAlmostEqual(1000.0, rates.compute_rates(
                first, second)[Quantity.INTERRUPTS])

    def test_a_counter_that_begins_anew_is_unknown(self):
        for field, quantity in (
                ('interrupts', 'interrupts'), ('swapped_pages', 'swapped'),
                ('corrected_errors', 'errors'), ('throttles', 'throttles'),
                ('foreign_tasks_s', 'foreign_tasks')):
            first, second = pair()
            first = dataclasses.replace(first, **{field: 10 ** 12})
            self.assertNotIn(quantity, rates.compute_rates(first, second))
            first = dataclasses.replace(first, **{field: None})
            self.assertNotIn(quantity, rates.compute_rates(first, second))

    @hypothesis.given(
        st.lists(st.integers(0, (1 << 32) - 1), min_size=1, max_size=8),
        st.lists(st.integers(0, 100_000), min_size=8, max_size=8))
    def test_counters_of_32_bits_may_wrap(self, cpus, more):
        now = [(cpu + grown) % (1 << 32)
               for cpu, grown in zip(cpus, more, strict=False)]
        first, second = pair(shootdowns=sum(now))
        first = dataclasses.replace(first, shootdowns=sum(cpus))
        self.assertAlmostEqual(
            sum(more[:len(cpus)]) / 60 / 32,
            rates.compute_rates(first, second)[Quantity.SHOOTDOWNS])

    def test_a_cpu_that_goes_takes_its_counters_with_it(self):
        found = rates.compute_rates(*pair(online='0-30', cpus=31,
                                          shootdowns=5))
        self.assertNotIn('shootdowns', found)
        self.assertNotIn('throttles', found)
        self.assertIn('system', found)


class RecordingTest(unittest.TestCase):
    """The files of the service."""

    def setUp(self):
        self.folder = folders.make(self)
        self.path = str(self.folder / 'samples')
        self.samples = list(host_samples.make_samples([{'system': 0.1}] * 3))

    def test_frames_are_appended_and_read(self):
        for sample in self.samples:
            recording.append(self.path, sample)
        self.assertEqual(self.samples, list(recording.read(self.path)))

    def test_a_line_that_was_interrupted_is_left_out(self):
        for sample in self.samples[:2]:
            recording.append(self.path, sample)
        whole = pathlib.Path(self.path).read_bytes()
        pathlib.Path(self.path).write_bytes(whole[:-30])
        self.assertEqual(self.samples[:1], list(recording.read(self.path)))
        recording.append(self.path, self.samples[2])
        self.assertEqual([self.samples[0], self.samples[2]],
                         list(recording.read(self.path)))

    def test_a_line_that_is_no_frame_is_named(self):
        recording.append(self.path, self.samples[0])
        for line in ('{}', '{"schema_version": 1}', '{"schema_version": 9}',
                     '[{}'):
            pathlib.Path(self.path).write_text(f'\n{line}\n')
            with self.assertRaisesRegex(exception.InvalidInput, 'line 2'):
                list(recording.read(self.path))

    def test_the_state_is_kept(self):
        state = signature.HostHealth()
        for sample in host_samples.make_samples([host_samples.SHOOTDOWNS]
                                                * 12):
            state, _ = signature.follow(state, sample)
        recording.save(self.path, state)
        self.assertEqual(state, recording.load(self.path))
        self.assertTrue(recording.load(self.path).reason)
        self.assertEqual(['samples'], [
            path.name for path in self.folder.iterdir()])

    def test_without_a_file_the_state_is_new(self):
        self.assertEqual(signature.HostHealth(), recording.load(self.path))

    def test_what_cannot_be_written_is_one_line(self):
        for act in (lambda: recording.save('/nowhere/x',
                                           signature.HostHealth()),
                    lambda: recording.append('/nowhere/x', self.samples[0])):
            with self.assertRaisesRegex(exception.InvalidInput,
                                        'cannot be written'):
                act()

    def test_what_is_put_aside_replaces_nothing(self):
        names = []
        for text in 'ab':
            pathlib.Path(self.path).write_text(text)
            names.append(recording.put_aside(self.path))
        self.assertEqual(['a', 'b'], [
            pathlib.Path(name).read_text() for name in names])

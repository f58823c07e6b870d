# SPDX-License-Identifier: Apache-2.0

"""Which hosts are slow, and when that is too many."""

import unittest

from hpcvirt.health import signature
from hpcvirt.health import supervision

HOUR, DAY = 60, 1440
CLASSES = {'all': ('n0', 'n1', 'n2', 'n3', 'n4')}


class Fleet:
    """A class of hosts from minute to minute."""

    def __init__(self, classes=None):
        self.classes = classes or CLASSES
        self.record = supervision.FleetRecord()
        self.minute = 0

    def run(self, minutes, scores=lambda _: {}, sign='steal', step=5):
        """Let minutes pass; all hosts have the score 0 but some.

        :returns: the hosts that were slow at some time
        """
        slow = set()
        for _ in range(0, minutes, step):
            self.minute += step
            now = scores(self.minute)
            self.record = supervision.follow(self.record, {
                name: {sign: signature.SignScore(now.get(name, 0.0), 'cpu1')}
                for names in self.classes.values() for name in names
                if now.get(name, 0.0) is not None},
                self.classes, 60.0 * self.minute)
            slow |= self.slow()
        return slow

    def slow(self):
        return {name for name, host in self.record.hosts.items()
                if host.reason}


class SupervisionTest(unittest.TestCase):
    def setUp(self):
        self.fleet = Fleet()
        self.assertEqual(set(), self.fleet.run(3 * DAY + 15, step=15))

    def test_a_sign_with_a_source_comes_on_at_once(self):
        self.assertEqual({'n1'}, self.fleet.run(
            1, lambda _: {'n1': 1.1}, 'cpu-shootdowns'))
        self.assertEqual('cpu-shootdowns on cpu1 at 1.1 times its limit',
                         self.fleet.record.hosts['n1'].reason)

    def test_any_other_sign_must_last_for_an_hour(self):
        self.assertEqual(set(), self.fleet.run(
            HOUR - 5, lambda _: {'n1': 1.1}))
        self.assertEqual({'n1'}, self.fleet.run(1, lambda _: {'n1': 1.1}))

    def test_it_goes_off_after_half_an_hour_of_quiet(self):
        self.fleet.run(1, lambda _: {'n1': 1.5}, 'cpu-shootdowns')
        # A little below the limit changes nothing.
        for score, minutes, slow in ((0.8, 300, {'n1'}), (0.6, 25, {'n1'}),
                                     (1.1, 5, {'n1'}), (0.6, 25, {'n1'}),
                                     (0.6, 5, set())):
            self.fleet.run(minutes, lambda _, score=score: {'n1': score},
                           'cpu-shootdowns')
            self.assertEqual(slow, self.fleet.slow())

    def test_what_is_not_known_changes_nothing(self):
        self.fleet.run(1, lambda _: {'n1': 1.5}, 'cpu-shootdowns')
        self.fleet.run(DAY, lambda _: {'n1': None}, 'cpu-shootdowns')
        self.assertEqual({'n1'}, self.fleet.slow())

    def test_a_long_pause_of_the_program_is_no_evidence(self):
        self.fleet.run(5, lambda _: {'n1': 1.5})
        self.fleet.minute += DAY
        self.assertEqual(set(), self.fleet.run(5, lambda _: {'n1': 1.5}))

    def test_what_a_quarter_of_the_class_does_is_no_fault_of_one(self):
        for hosts in (('n1', 'n2'), CLASSES['all']):
            self.assertEqual(set(), self.fleet.run(
                DAY // 2, lambda _, hosts=hosts: dict.fromkeys(hosts, 3.0)))
            self.assertEqual(('all: steal',), self.fleet.record.common)
        worse = {**dict.fromkeys(CLASSES['all'], 1.0), 'n3': 3.0}
        self.assertEqual({'n3'}, self.fleet.run(DAY // 2, lambda _: worse))

    def test_two_hosts_are_no_class_to_compare_with(self):
        fleet = Fleet({'all': ('n0', 'n1', 'n2')})
        fleet.run(3 * DAY, step=15)
        self.assertEqual({'n0', 'n1', 'n2'}, fleet.run(
            2 * HOUR, lambda _: dict.fromkeys(('n0', 'n1', 'n2'), 3.0)))


def backup(minute):
    """Two hours of every night are like a slow node."""
    return {'n1': 2.0 if 2 * HOUR <= minute % DAY < 4 * HOUR else 0.0}


class UsualTest(unittest.TestCase):
    def setUp(self):
        self.fleet = Fleet()

    def test_nothing_is_decided_about_a_new_host(self):
        self.assertEqual(set(), self.fleet.run(
            3 * DAY - 5, lambda _: {'n1': 9.0}))

    def test_a_backup_of_each_night_is_usual(self):
        self.assertEqual(set(), self.fleet.run(10 * DAY, backup))

    def test_a_host_that_is_slow_after_a_backup_is_found(self):
        self.fleet.run(5 * DAY, backup)
        for score, minutes, slow in ((2.0, 4 * HOUR, set()),
                                     (2.0, 3 * HOUR, {'n1'})):
            self.assertEqual(slow, self.fleet.run(
                minutes, lambda _, score=score: {'n1': score}))

    def test_more_than_usual_is_found_in_the_same_hour(self):
        self.fleet.run(5 * DAY, backup)
        self.assertEqual({'n1'}, self.fleet.run(
            4 * HOUR, lambda minute: {'n1': 2 * backup(minute)['n1']}))

    def test_twelve_minutes_of_paging_each_night_are_usual(self):
        self.assertEqual(set(), self.fleet.run(9 * DAY, lambda minute: {
            'n1': 2.5 * (190 <= minute % DAY < 202)}, 'swapping', step=3))

    def test_one_bad_day_is_not_usual(self):
        self.fleet.run(DAY, backup)
        self.fleet.run(3 * DAY, step=15)
        self.assertEqual({'n1'}, self.fleet.run(DAY, backup))

    def test_a_slow_host_is_not_learned(self):
        self.fleet.run(3 * DAY, step=15)
        self.assertEqual({'n1'}, self.fleet.run(5 * DAY, lambda _: {
            'n1': 2.0}))
        self.assertEqual({'n1'}, self.fleet.slow())

    def test_what_is_old_is_forgotten(self):
        self.fleet.run(3 * DAY, backup)
        self.fleet.run(15 * DAY, step=15)
        self.assertEqual({'n1'}, self.fleet.run(DAY, backup))


class ExcessTest(unittest.TestCase):
    """The brake."""

    def find(self, slow, held=0, holds=0, hosts=40):
        names = [f'n{number}' for number in range(hosts)]
        on = {'steal': supervision.SignProgress(on=True, reason='steal')}
        record = supervision.FleetRecord(holds=(0.0,) * holds, hosts={
            name: supervision.HostRecord(
                since=0.0, signs=on if number < slow + held else {},
                held=number < held) for number, name in enumerate(names)})
        return supervision.find_excess(record, {'cpu': names}, 0.1, 5)

    def test_a_tenth_of_a_class_may_be_in_quarantine(self):
        self.assertIsNone(self.find(slow=4))
        self.assertIsNone(self.find(slow=1, held=3))
        self.assertEqual(
            '4 hosts of the class cpu are in quarantine, 1 more look slow, '
            'and no more than 4 of 40 may be in quarantine',
            self.find(slow=1, held=4))
        self.assertIsNotNone(self.find(slow=5))

    def test_one_host_of_a_small_class_may_be(self):
        self.assertIsNone(self.find(slow=1, hosts=3))
        self.assertIsNotNone(self.find(slow=2, hosts=3))

    def test_few_hosts_in_an_hour_may_be(self):
        self.assertIsNone(self.find(slow=1, holds=4))
        self.assertIn('5 hosts were put in quarantine within an hour',
                      self.find(slow=1, holds=5))

    def test_hosts_that_are_held_already_are_no_excess(self):
        self.assertIsNone(self.find(slow=0, held=9, holds=9))

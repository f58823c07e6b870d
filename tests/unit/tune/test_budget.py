# SPDX-License-Identifier: Apache-2.0

import math
import re
import unittest

from hpcvirt import exception
from hpcvirt.tune import budget
from hpcvirt.tune import effects
from hpcvirt.tune import experiment
from hpcvirt.tune import space as spaces

COST = spaces.HostCost(2, 120, 1024)
SPACE = spaces.Space(
    tuple(spaces.Choice(name, ('today', 'other'), (COST, COST))
          for name in 'abc'), {'hpcc': 1.0}, math.log(1.02))
#: The same, and one of the choices needs a reboot.
REBOOTED = spaces.Space((
    spaces.Choice('a', ('today', 'other'), (COST, COST), True),
    *SPACE.choices[1:]), {'hpcc': 1.0}, math.log(1.02))


def make(hours, reboots=0, **more):
    return experiment.read({
        'schema_version': 1, 'name': 'milan', 'fleet': 'fleet.yaml',
        'class': 'epyc', 'programs': {
            'hpcc': {'benchmark': 'hpcc', 'minutes': 4},
            'stream': {'benchmark': 'stream', 'minutes': 1}},
        'choices': {'a': {'other': {'guests_per_host': 2}}},
        'samples': 2, 'boot_minutes': 5, 'reboot_minutes': 30,
        'matters_percent': 2, 'noise_percent': 1, 'confirm_boots': 6,
        'limits': {'hours': hours, 'reboots': reboots}, **more}, 'e.yaml')


class TestCounts(unittest.TestCase):
    def test_a_trial_is_a_boot_and_the_runs_of_all_programs(self):
        # Two samples and a warm-up of five minutes, and the boot: 20 minutes.
        # Three choices take four trials or eight.
        found = budget.count(make(8), SPACE, spaces.Budget(2, 6))
        self.assertIn(found['boots'], (2 * 4 + 12, 2 * 8 + 12))
        self.assertEqual((found['boots'] * 4, 0),
                         (found['runs'], found['reboots']))
        self.assertAlmostEqual(found['boots'] / 3, found['hours'])

    def test_a_native_trial_has_no_boot(self):
        guests = budget.count(make(8), SPACE, spaces.Budget(2, 6))
        found = budget.count(make(8), SPACE,
                             spaces.Budget(2, 6, has_native=True))
        self.assertEqual((guests['runs'] + 6 * 4, guests['boots']),
                         (found['runs'], found['boots']))
        self.assertAlmostEqual(guests['hours'] + 6 * 15 / 60, found['hours'])

    def test_whole_plots_and_the_confirmation_need_reboots(self):
        # Both boots of a pair, and each host back to today's settings.
        none, two = (budget.count(make(8), REBOOTED, spaces.Budget(
            replicates, 6, hosts=3)) for replicates in (0, 2))
        self.assertEqual(2 * 6 + 3, none['reboots'])
        self.assertLess(none['reboots'] + 2, two['reboots'])
        plain = budget.count(make(8), SPACE, spaces.Budget(0, 6, hosts=3))
        self.assertAlmostEqual(plain['hours'] + 15 * 30 / 60, none['hours'])


class TestLimits(unittest.TestCase):
    def refused(self, document, space):
        with self.assertRaises(exception.InvalidInput) as caught:
            budget.make(document, space, 1, 'e.yaml')
        return str(caught.exception)

    def test_the_limits_are_used(self):
        for hours in (20, 30, 55.5):
            document = make(hours)
            found = budget.make(document, SPACE, 1, 'e.yaml')
            self.assertEqual(6, found.pairs)
            self.assertLessEqual(
                budget.count(document, SPACE, found)['hours'], hours)
            self.assertGreater(budget.count(document, SPACE, spaces.Budget(
                found.replicates + 1, 6))['hours'], hours)

    def test_reboots_limit_the_replicates(self):
        free = budget.make(make(1000, 10_000), REBOOTED, 1, 'e.yaml')
        tight = budget.make(make(1000, 100), REBOOTED, 1, 'e.yaml')
        self.assertLess(tight.replicates, free.replicates)
        self.assertGreaterEqual(100, budget.count(
            make(1000, 100), REBOOTED, tight)['reboots'])

    def test_an_accepted_experiment_shows_what_matters(self):
        found = budget.make(make(30), SPACE, 1, 'e.yaml')
        self.assertGreaterEqual(SPACE.matters, max(
            effects.smallest_effects(SPACE, found, math.log(1.01))))

    def test_what_is_needed_suffices_and_less_does_not(self):
        for space, said in ((SPACE, self.refused(make(1), SPACE)),
                            (REBOOTED, self.refused(make(1, 5), REBOOTED))):
            match = re.fullmatch(
                r'e.yaml: limits: are too tight for differences of 2 %; '
                r'needed are hours: ([0-9.]+) and reboots: ([0-9]+)', said)
            hours, reboots = float(match[1]), int(match[2])
            budget.make(make(hours, reboots), space, 1, 'e.yaml')
            self.refused(make(hours - 0.2, reboots), space)
            if reboots:
                self.refused(make(hours, reboots - 1), space)

    def test_a_difference_that_no_experiment_shows_is_refused(self):
        self.assertIn(
            'even 1000 replicates are too few, so let matters_percent be '
            'larger', self.refused(make(10_000, noise_percent=50),
                                   SPACE))

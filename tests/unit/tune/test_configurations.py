# SPDX-License-Identifier: Apache-2.0

import math
import re
import unittest

from hpcvirt import exception
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from hpcvirt.tune import configurations
from hpcvirt.tune import effects
from hpcvirt.tune import experiment
from hpcvirt.tune import model
from tests.builders import hosts
from tests.builders import refusals

EPYC = hosts.named('epyc-2s-64c-nps4')
PAGES = {'1G': {'profile': {'page_size': '1G'}}}
SHARES = {'half': {'extra_specs': {'quota:cpu_shares': '512'}}}
GUESTS = {'four': {'guests_per_host': 4}}
COST = model.HostCost(2, 120, 1024)
CHOICES = tuple(model.Choice(name, ('today', 'other'), (COST, COST))
                for name in 'abc')
#: The same, and one of the choices needs a reboot.
REBOOTED = (CHOICES[0]._replace(has_reboot=True), *CHOICES[1:])


def read(choices, **more):
    return experiment.read({
        'kind': 'experiment', 'schema_version': 1,
        'name': 'milan', 'fleet': 'fleet.yaml',
        'host_class': 'epyc', 'guests_per_host': 2, 'choices': choices,
        'apply': ['true'], 'programs': {
            'hpl': {'benchmark': 'hpcc', 'minutes': 9, 'weight': 3},
            'stream': {'benchmark': 'stream', 'minutes': 1}},
        'limits': {'hours': 8}, **more}, 'e.yaml')


def plan(choices, profile=None, **more):
    return configurations.plan(
        read(choices, **more), (EPYC,), profile or {'base': 'default'},
        'e.yaml').configurations


class TestConfiguration(unittest.TestCase):
    def refused(self, said, *args, **more):
        self.assertEqual(f'e.yaml: {said}',
                         refusals.message(self, plan, *args, **more))

    def test_today_is_the_plan_of_todays_profile(self):
        found = plan({'pages': PAGES})[0,]
        today = planner.plan([EPYC], profiles.DEFAULT)
        self.assertEqual(today.hosts[0].settings, found.settings)
        same = next(row for row in today.flavors
                    if row.flavor.name == found.flavor.name)
        self.assertEqual({EPYC.name: 2}, same.per_host)
        self.assertEqual(same.guest, found.guest)

    def test_the_flavor_is_not_marked_as_one_of_a_plan(self):
        specs = plan({'pages': PAGES})[0,].flavor.extra_specs
        self.assertFalse([key for key in specs if key.startswith('hpcvirt:g')])

    def test_values_change_the_profile(self):
        found = plan({'pages': PAGES, 'guests': GUESTS})[1, 1]
        self.assertEqual('1048576', found.flavor.extra_specs[
            'hw:mem_page_size'])
        self.assertEqual(4, found.guests)
        self.assertEqual({'base': 'default', 'page_size': '1G'},
                         found.content)

    def test_extra_specs_are_added_to_those_of_the_profile(self):
        found = plan({'shares': SHARES}, {
            'extra_specs': {'trait:CUSTOM_HPC': 'required'}})[1,]
        specs = {'trait:CUSTOM_HPC': 'required', 'quota:cpu_shares': '512'}
        self.assertEqual(specs, found.content['extra_specs'])
        self.assertLessEqual(specs.items(), found.flavor.extra_specs.items())

    def test_extra_specs_are_checked_as_those_of_operators(self):
        self.refused(
            'numa=one: profile: extra_specs: hw:numa_nodes: is set by '
            'hpcvirt, from the hosts and the other keys of the profile',
            {'numa': {'one': {'extra_specs': {'hw:numa_nodes': '1'}}}})

    def test_values_that_contradict_each_other_are_named(self):
        self.refused(
            'threads=share, cores=none: profile: emulator_threads: share '
            'needs shared_cores_per_cell of at least 1; with null, emulator '
            'threads run on the CPUs of the guest',
            {'threads': {'share': {'profile': {'emulator_threads': 'share'}}},
             'cores': {'none': {'profile': {'shared_cores_per_cell': 0}}}},
            {'base': 'dense', 'shared_cores_per_cell': 1})

    def test_the_possible_numbers_of_guests_are_named(self):
        self.refused(
            'guests=three: guests_per_host: is 3, but the flavors of the '
            'profile and never.fewer_guests_than allow 1, 2, 4, 8, 24',
            {'guests': {'three': {'guests_per_host': 3}}})

    def test_the_largest_flavor_of_a_number_is_chosen(self):
        found = plan({'pages': PAGES}, {'base': 'dense'},
                     guests_per_host=1)[0,]
        self.assertEqual(len(EPYC.cpus), found.flavor.vcpus)

    def test_too_few_guests_are_refused(self):
        self.refused(
            'guests=one: guests_per_host: is 1, but the flavors of the '
            'profile and never.fewer_guests_than allow 2, 4, 8, 24',
            {'guests': {'one': {'guests_per_host': 1}}},
            never={'fewer_guests_than': 2})

    def test_a_profile_with_a_base_replaces_todays(self):
        found = plan({'cores': {'dense': {'profile': {'base': 'dense'}}},
                      'pages': PAGES}, {'smt': 'leave'})
        self.assertEqual({'smt': 'leave', 'page_size': '1G'},
                         found[0, 1].content)
        self.assertEqual({'base': 'dense', 'page_size': '1G'},
                         found[1, 1].content)

    def test_interrupts_and_rings_are_settings_of_the_host(self):
        choices = {'interrupts': {
            'off': {'profile': {'moderate_interrupts': False}}},
            'rings': {'small': {'profile': {'ring_entries': 128}}}}
        found = plan(choices)
        states = [found[levels].host_state for levels in (
            (0, 0), (0, 1), (1, 0), (1, 1))]
        for index, state in enumerate(states):
            self.assertNotIn(state, states[:index])
        self.refused(
            "choices['interrupts']: changes the settings of hosts, which "
            'needs the key apply, the command that brings them to a host',
            choices, apply=[])

    def test_the_keys_of_a_profile_are_checked(self):
        for key, said in (('page_sise', "unknown key 'page_sise'"),
                          ('extra_specs', 'must be a mapping')):
            with self.assertRaisesRegex(exception.InvalidInput, (
                    f'^e.yaml: pages=1G: profile: .*{said}')):
                plan({'pages': {'1G': {'profile': {key: 3}}}})


class TestSpace(unittest.TestCase):
    def make(self, choices, **more):
        return configurations.plan(read(choices, **more), (EPYC,),
                                   {'base': 'default'}, 'e.yaml')

    def choose(self, choices):
        return self.make(choices).choices

    def test_the_cost_is_what_guests_have(self):
        of_today, own = self.choose(
            {'cores': {'dense': {'profile': {'base': 'dense'}}}})[0].costs
        self.assertEqual((2, 120), (of_today.guests, of_today.cores))
        self.assertEqual((2, 128), (own.guests, own.cores))
        self.assertGreater(sum(cell.memory_mib for cell in EPYC.cells),
                           own.memory_mib)

    def test_a_core_counts_once_with_and_without_its_sibling(self):
        costs = self.choose({'smt': {'leave': {'profile': {
            'smt': 'leave'}}}})[0].costs
        self.assertEqual([120, 120], [each.cores for each in costs])

    def test_what_changes_a_host_has_a_reboot(self):
        found = self.choose({
            'pages': PAGES, 'shares': SHARES, 'guests': GUESTS,
            'ept': {'off': {'host': {'ept': '0'}}}})
        self.assertEqual({'pages': True, 'shares': False, 'guests': False,
                          'ept': True},
                         {each.name: each.has_reboot for each in found})

    def test_a_reboot_that_only_two_values_together_need_is_found(self):
        step = {'step': {'small': {'profile': {'memory_step_mib': 512}}}}
        smt = {'smt': {'leave': {'profile': {'smt': 'leave'}}}}
        self.assertEqual([False], [
            each.has_reboot for each in self.choose(step)])
        self.assertEqual([True, True], [
            each.has_reboot for each in self.choose({**step, **smt})])

    def test_a_reboot_needs_a_command(self):
        with self.assertRaises(exception.InvalidInput) as caught:
            self.make({'pages': PAGES}, apply=[])
        self.assertEqual(
            "e.yaml: choices['pages']: changes the settings of hosts, which "
            'needs the key apply, the command that brings them to a host',
            str(caught.exception))

    def test_what_matters_is_that_of_the_document(self):
        self.assertAlmostEqual(math.log(1.02), self.make(
            {'shares': SHARES}, matters_percent=2).matters)


def limit(hours, reboots=0, **more):
    return experiment.read({
        'kind': 'experiment', 'schema_version': 1,
        'name': 'milan', 'fleet': 'fleet.yaml',
        'host_class': 'epyc', 'programs': {
            'hpcc': {'benchmark': 'hpcc', 'minutes': 4},
            'stream': {'benchmark': 'stream', 'minutes': 1}},
        'choices': {'a': {'other': {'guests_per_host': 2}}},
        'samples': 2, 'boot_minutes': 5, 'reboot_minutes': 30,
        'matters_percent': 2, 'noise_percent': 1, 'confirm_boots': 6,
        'limits': {'hours': hours, 'reboots': reboots}, **more}, 'e.yaml')


def make(choices, hours=8, reboots=0, replicates=0, hosts=1, **more):
    return model.Space(limit(hours, reboots, **more), choices, {},
                       (EPYC,) * hosts, replicates)


def count(*args, **more):
    return configurations.count(make(*args, **more))


class TestCounts(unittest.TestCase):
    def test_a_trial_is_a_boot_and_the_runs_of_all_programs(self):
        # Two samples and a warm-up of five minutes, and the boot: 20 minutes.
        # Three choices take four trials or eight.
        found = count(CHOICES, replicates=2)
        self.assertIn(found['boots'], (2 * 4 + 12, 2 * 8 + 12))
        self.assertEqual((found['boots'] * 4, 0),
                         (found['runs'], found['reboots']))
        self.assertAlmostEqual(found['boots'] / 3, found['hours'])

    def test_a_native_trial_has_no_boot(self):
        guests = count(CHOICES, replicates=2)
        found = count(CHOICES, replicates=2, native='ssh://{host}')
        self.assertEqual((guests['runs'] + 6 * 4, guests['boots']),
                         (found['runs'], found['boots']))
        self.assertAlmostEqual(guests['hours'] + 6 * 15 / 60, found['hours'])

    def test_whole_plots_and_the_confirmation_need_reboots(self):
        # Both boots of a pair, and each host back to today's settings.
        none, two = (count(REBOOTED, replicates=number, hosts=3)
                     for number in (0, 2))
        self.assertEqual(2 * 6 + 3, none['reboots'])
        self.assertLess(none['reboots'] + 2, two['reboots'])
        plain = count(CHOICES, hosts=3)
        self.assertAlmostEqual(plain['hours'] + 15 * 30 / 60, none['hours'])


class TestLimits(unittest.TestCase):
    def plan(self, *args, **more):
        return configurations.plan_replicates(make(*args, **more), 'e.yaml')

    def refused(self, *args, **more):
        return refusals.message(self, self.plan, *args, **more)

    def test_the_limits_are_used(self):
        for hours in (20, 30, 55.5):
            found = self.plan(CHOICES, hours)
            self.assertLessEqual(configurations.count(found)['hours'], hours)
            self.assertGreater(count(
                CHOICES, hours, replicates=found.replicates + 1,
            )['hours'], hours)

    def test_reboots_limit_the_replicates(self):
        free, tight = (self.plan(REBOOTED, 1000, reboots)
                       for reboots in (10_000, 100))
        self.assertLess(tight.replicates, free.replicates)
        self.assertGreaterEqual(100, configurations.count(tight)['reboots'])

    def test_an_accepted_experiment_shows_what_matters(self):
        space = self.plan(CHOICES, 30)
        self.assertGreaterEqual(space.matters,
                                max(effects.smallest_effects(space)))

    def test_what_is_needed_suffices_and_less_does_not(self):
        for choices, said in ((CHOICES, self.refused(CHOICES, 1)),
                              (REBOOTED, self.refused(REBOOTED, 1, 5))):
            match = re.fullmatch(
                r'e.yaml: limits: are too tight for differences of 2 %; '
                r'needed are hours: ([0-9.]+) and reboots: ([0-9]+)', said)
            hours, reboots = float(match[1]), int(match[2])
            self.plan(choices, hours, reboots)
            self.refused(choices, hours - 0.2, reboots)
            if reboots:
                self.refused(choices, hours, reboots - 1)

    def test_a_difference_that_no_experiment_shows_is_refused(self):
        self.assertIn(
            'even 1000 replicates are too few, so let matters_percent be '
            'larger', self.refused(CHOICES, 10_000, noise_percent=50))

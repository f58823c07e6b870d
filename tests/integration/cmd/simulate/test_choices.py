# SPDX-License-Identifier: Apache-2.0

"""What-ifs, against a count of what hosts of a few slots take."""

import json
import math
import os
import random
import unittest
from unittest import mock

from tests.builders import commands
from tests.builders import folders
from tests.integration.cmd.simulate import test_simulate

SMT = test_simulate.TOPOLOGIES / 'intel-2s-16c-smt.json'
HEAD = 'created_at,deleted_at,vcpus,memory_mb\n'
#: The vCPUs of one cell of such a host with SMT, and of all cells without.
HALF = 32


def count_lost(jobs, hosts, slots, needs, warm_up=0):
    """Count the core-hours that best fit loses.

    :param jobs: (time, duration, CPUs)
    :param slots: of each host
    :param needs: CPUs to the slots that a job takes on one host
    :returns: percent of the core-hours, and the lost requests of each size
    """
    free, running = [slots] * hosts, []
    lost, total = 0, 0
    refused = dict.fromkeys(needs, 0)
    for number, (time, duration, cpus) in enumerate(jobs):
        for end, host, size in [*running]:
            if end <= time:
                running.remove((end, host, size))
                free[host] += size
        size = needs[cpus]
        able = [host for host in range(hosts) if free[host] >= size]
        counts = number >= warm_up
        total += counts * cpus * duration
        if able:
            host = min(able, key=lambda host: (free[host], host))
            free[host] -= size
            running.append((time + duration, host, size))
        elif counts:
            lost += cpus * duration
            refused[cpus] += 1
    return 100 * lost / total, refused


class WhatIfTest(unittest.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = folders.make(self)
        dice = random.Random(11)
        self.jobs = [(100 * number, dice.randrange(200, 3000),
                      dice.choice((HALF, HALF, 2 * HALF)))
                     for number in range(400)]
        self.log = self.folder / 'boots.csv'
        self.log.write_text(HEAD + ''.join(
            f'{time},{time + duration},{cpus},1024\n'
            for time, duration, cpus in self.jobs))
        self.off = self.folder / 'off.yaml'
        self.off.write_text('base: dense\nsmt: leave\n')

    def run_command(self, *words):
        return commands.run('simulate', '--workload', self.log,
                            '--compare', 'best-fit', *words)

    def document(self, *words):
        return commands.read_document(
            self, self.run_command(*words, '-f', 'json'))

    def given(self, hosts=8):
        return f'n={SMT}*{hosts}', '--profile', 'dense'

    def check_lost(self, found, name, wanted):
        (row,) = [row for row in found['strategies'] if row['name'] == name]
        percent, refused = wanted
        self.assertAlmostEqual(percent, row['lost_percent'], 3)
        self.assertEqual(sum(refused.values()), row['requests']
                         - row['accepted'])
        return row

    def test_smt_off_loses_the_jobs_that_become_too_large(self):
        found = self.document(*self.given(), '--what-if',
                              f'SMT off: --profile {self.off}')
        on = count_lost(self.jobs, 8, 2, {HALF: 1, 2 * HALF: 2})
        off = count_lost(self.jobs, 8, 1, {HALF: 1, 2 * HALF: math.inf})
        self.check_lost(found, 'as given', on)
        row = self.check_lost(found, 'SMT off', off)
        self.assertEqual(off[1][2 * HALF], row['refused']['size'])
        self.assertEqual(off[1][HALF], row['refused']['capacity'])
        (paired,) = found['paired']
        self.assertEqual(('SMT off', 'as given'), (paired['strategy'],
                                                   paired['reference']))
        self.assertAlmostEqual(off[0] - on[0], paired['difference_percent'],
                               3)
        low, high = paired['interval_percent']
        self.assertLess(0, low)
        self.assertLess(low, off[0] - on[0])
        self.assertLess(off[0] - on[0], high)

    def test_ten_more_hosts_get_the_requests_at_the_same_times(self):
        needs = {HALF: 1, 2 * HALF: 2}
        plain = self.document(*self.given())
        self.check_lost(plain, 'best-fit', count_lost(self.jobs, 8, 2, needs))
        for more in ('--add n*10', f'n={SMT}*18'):
            found = self.document(*self.given(), '--load', 1.5, '--what-if',
                                  f'10 more: {more}')
            work = sum(duration * cpus for _, duration, cpus in self.jobs)
            factor = work / (self.jobs[-1][0] * 8 * 64) / 1.5
            jobs = [(time * factor, duration, cpus)
                    for time, duration, cpus in self.jobs]
            self.check_lost(found, 'as given', count_lost(jobs, 8, 2, needs))
            self.check_lost(found, '10 more', count_lost(jobs, 18, 2, needs))
            self.assertEqual([1.5, round(1.5 * 8 / 18, 4)],
                             [each['load'] for each in found['choices']])

    def test_hosts_of_several_kinds_are_added(self):
        found = self.document(
            f'n={SMT}*2', f'm={SMT}', '--profile', 'dense', '--what-if',
            'more: --add n*3 --add m*1')
        self.assertEqual([[('n', 2), ('m', 1)], [('n', 5), ('m', 2)]], [
            [(kind['name'], kind['count'])
             for kind in choice['fleet']['hosts']]
            for choice in found['choices']])
        self.check_lost(found, 'more', count_lost(
            self.jobs, 7, 2, {HALF: 1, 2 * HALF: 2}))

    def test_other_flavors_have_the_same_work(self):
        """A job of half a host gets a whole one, and counts as half."""
        flavors = self.folder / 'flavors.json'
        plan = json.loads(commands.run(
            'flavor', 'plan', SMT, '--profile', 'dense', '-f', 'json').out)
        flavors.write_text(json.dumps([
            each for each in plan['flavors'] if each['vcpus'] == 64]))
        found = self.document(*self.given(), '--what-if',
                              f'whole: --flavors {flavors}')
        self.check_lost(found, 'as given', count_lost(
            self.jobs, 8, 2, {HALF: 1, 2 * HALF: 2}))
        self.check_lost(found, 'whole', count_lost(
            self.jobs, 8, 1, {HALF: 1, 2 * HALF: 1}))
        self.assertEqual(found['strategies'][0]['core_hours']['offered'],
                         found['strategies'][1]['core_hours']['offered'])

    def test_a_warm_up_does_not_count(self):
        for share, warm_up in ((0, 0), (0.25, 100), (0.9, 360)):
            found = self.document(*self.given(), '--warm-up', share)
            row = self.check_lost(found, 'best-fit', count_lost(
                self.jobs, 8, 2, {HALF: 1, 2 * HALF: 2}, warm_up))
            self.assertEqual(400 - warm_up, row['requests'])
            self.assertEqual(400 - warm_up, found['workload']['requests'])

    def test_the_hosts_for_a_loss_are_those_of_the_count(self):
        found = self.document(
            *self.given(), '--lost-below', 5, '--what-if',
            f'SMT off: --profile {self.off}')
        losses = {hosts: count_lost(self.jobs, hosts, 2, {
            HALF: 1, 2 * HALF: 2})[0] for hosts in range(1, 40)}
        given, off = found['needed']
        self.assertEqual(min(hosts for hosts, lost in losses.items()
                             if lost < 5), given['hosts'])
        self.assertAlmostEqual(losses[given['hosts']], given['lost_percent'])
        self.assertLessEqual(given['least'], given['hosts'])
        self.assertLessEqual(given['hosts'], given['most'])
        self.assertIsNone(off['hosts'])
        self.assertIn('as given: best-fit: {hosts} ('.format(**given),
                      ' '.join(found['summary']))

    def test_choices_and_strategies_are_compared_in_pairs(self):
        found = self.document(*self.given(), '--compare', 'nova,best-fit',
                              '--what-if', 'more: --add n*2')
        lost = {row['name']: row['lost_percent']
                for row in found['strategies']}
        self.assertEqual(
            {('as given: best-fit', 'as given: nova'),
             ('more: nova', 'as given: nova'),
             ('more: best-fit', 'as given: best-fit'),
             ('more: best-fit', 'more: nova')},
            {(each['strategy'], each['reference'])
             for each in found['paired']})
        for each in found['paired']:
            self.assertAlmostEqual(
                lost[each['strategy']] - lost[each['reference']],
                each['difference_percent'], 3)

    def test_a_fleet_in_use_takes_less_at_first(self):
        flavor = {'name': 'a', 'vcpus': 64, 'ram_mib': 1024, 'disk_gib': 0,
                  'extra_specs': {'hw:cpu_policy': 'dedicated',
                                  'hw:numa_nodes': '2',
                                  'hw:mem_page_size': '2MB'}}
        fleet = self.folder / 'fleet.json'
        plain = {'schema_version': 1, 'classes': {'n': {
            'profile': 'dense', 'hosts': [f'n={SMT}*8']}}}
        fleet.write_text(json.dumps({**plain, 'instances': [{
            'id': f'i{number}', 'host': f'n-{number}', 'flavor': flavor,
            'cells': [{'id': 0, 'pages': {'2048': 256}},
                      {'id': 1, 'pages': {'2048': 256}}],
            'cpus': [*range(64)]} for number in range(1, 9)]}))
        empty, in_use = (self.document('--fleet', fleet, *more)
                         for more in ((), ('--in-use',)))
        self.assertEqual([0, 8], [found['fleet']['instances']
                                  for found in (empty, in_use)])
        self.check_lost(empty, 'best-fit', count_lost(
            self.jobs, 8, 2, {HALF: 1, 2 * HALF: 2}))
        # The first sample is after the first request, which has no room.
        self.assertEqual([self.jobs[0][2], 8 * 64], [
            found['strategies'][0]['over_time'][0]['busy_cpus']
            for found in (empty, in_use)])

    def test_tables_fit_79_columns(self):
        for words in (('--compare', 'best-fit+fullest+moves,nova+moves'), (
                '--what-if', f'{"x" * 22}: --profile {self.off}')):
            with mock.patch.dict(os.environ, COLUMNS='79'):
                done = self.run_command(*self.given(), *words)
            self.assertEqual(0, done.status, done.err)
            lines = done.out.splitlines()
            self.assertTrue(any('----' in line for line in lines))
            for number, line in enumerate(lines):
                if '----' in line or '----' in lines[number - 1]:
                    self.assertLessEqual(len(line), 79)

    def test_a_doubtful_mapping_warns(self):
        said = 'larger than every flavor, and left out'
        done = self.run_command(f'n={SMT}*8', '--profile', self.off)
        self.assertIn(said, done.err)
        page = self.folder / 'page.html'
        self.log.write_text(HEAD + '0,9,1,512\n' * 3 + '4,9,5,512\n' * 2)
        done = self.run_command(*self.given(), '--html', page)
        self.assertNotIn(said, done.err)
        self.assertRegex(done.err, r'Warning: The flavors have [0-9]+ % more')
        self.assertIn('Warning: The flavors have', page.read_text())

    def test_errors_are_one_line_and_status_2(self):
        for words, said in (
                (('--what-if', 'off'), "'off' must begin with a name"),
                (('--what-if', f'{"x" * 23}: --cpus 1'), 'at most 22'),
                (('--what-if', 'a: --cpus 1', '--what-if', 'a: --cpus 2'),
                 'a is the name of two choices'),
                (('--what-if', 'as given: --cpus 1'), 'of two choices'),
                (('--what-if', 'a: --load 3'), '--what-if a: unrecognized'),
                (('--what-if', 'a: "'), '--what-if a: No closing'),
                (('--what-if', 'a: --profile nowhere'), 'nowhere'),
                (('--what-if', 'a: --add n'), '--what-if a: argument --add'),
                (('--what-if', 'a: --add m*2'), 'm: must be a kind of hosts'),
                (('--what-if', 'a: --add n*99999'), 'from 1 to 10000'),
                (('--lost-below', '5', '--grow', 'm'),
                 'm: must be a kind of hosts'),
                (('--in-use',), '--in-use: needs --fleet')):
            with self.subTest(words):
                commands.check_refused(self, said, self.run_command(
                    *self.given(), *words))
        for words in (('--lost-below', '0'), ('--warm-up', '1')):
            self.assertEqual(2, self.run_command(*self.given(), *words)[0])

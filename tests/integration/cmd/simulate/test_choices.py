# SPDX-License-Identifier: Apache-2.0

"""Fleets that are compared, against a count of what their hosts take."""

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


class ChoicesTest(unittest.TestCase):
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

    def fleet(self, name, *hosts, profile='dense', **more):
        """Write a fleet document.

        :returns: the arguments that name it
        """
        path = self.folder / f'{name}.json'
        path.write_text(json.dumps({
            'schema_version': 1, **more,
            'classes': {'n': {'profile': profile, 'hosts': hosts}}}))
        return '--fleet', path

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
        found = self.document(
            *self.fleet('SMT on', f'n={SMT}*8'),
            *self.fleet('SMT off', f'n={SMT}*8', profile=str(self.off)))
        on = count_lost(self.jobs, 8, 2, {HALF: 1, 2 * HALF: 2})
        off = count_lost(self.jobs, 8, 1, {HALF: 1, 2 * HALF: math.inf})
        self.check_lost(found, 'SMT on', on)
        row = self.check_lost(found, 'SMT off', off)
        self.assertEqual(off[1][2 * HALF], row['refused']['size'])
        self.assertEqual(off[1][HALF], row['refused']['capacity'])
        (paired,) = found['paired']
        self.assertEqual(('SMT off', 'SMT on'), (paired['strategy'],
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
        found = self.document(
            '--load', 1.5, *self.fleet('8', f'n={SMT}*8'),
            *self.fleet('18', f'n={SMT}*12', f'm={SMT}*6'))
        work = sum(duration * cpus for _, duration, cpus in self.jobs)
        factor = work / (self.jobs[-1][0] * 8 * 64) / 1.5
        jobs = [(time * factor, duration, cpus)
                for time, duration, cpus in self.jobs]
        self.check_lost(found, '8', count_lost(jobs, 8, 2, needs))
        self.check_lost(found, '18', count_lost(jobs, 18, 2, needs))
        self.assertEqual([1.5, round(1.5 * 8 / 18, 4)],
                         [each['load'] for each in found['choices']])
        self.assertEqual([[('n', 8)], [('n', 12), ('m', 6)]], [
            [(kind['name'], kind['count'])
             for kind in choice['fleet']['hosts']]
            for choice in found['choices']])

    def test_other_flavors_have_the_same_work(self):
        """A job of half a host gets a whole one, and counts as half."""
        plan = json.loads(commands.run(
            'flavor', 'plan', SMT, '--profile', 'dense', '-f', 'json').out)
        (self.folder / 'flavors.json').write_text(json.dumps([
            each for each in plan['flavors'] if each['vcpus'] == 64]))
        found = self.document(
            *self.fleet('all', f'n={SMT}*8'),
            *self.fleet('whole', f'n={SMT}*8',
                        flavor_files=['flavors.json']))
        self.check_lost(found, 'all', count_lost(
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

    def test_choices_and_strategies_are_compared_in_pairs(self):
        found = self.document(
            '--compare', 'nova,best-fit', *self.fleet('a', f'n={SMT}*8'),
            *self.fleet('b', f'n={SMT}*10'))
        lost = {row['name']: row['lost_percent']
                for row in found['strategies']}
        self.assertEqual(
            {('a: best-fit', 'a: nova'),
             ('b: nova', 'a: nova'),
             ('b: best-fit', 'a: best-fit'),
             ('b: best-fit', 'b: nova')},
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
        fleet = self.fleet('fleet', f'n={SMT}*8', instances=[{
            'id': f'i{number}', 'host': f'n-{number}', 'flavor': flavor,
            'cells': [{'id': 0, 'pages': {'2048': 256}},
                      {'id': 1, 'pages': {'2048': 256}}],
            'cpus': [*range(64)]} for number in range(1, 9)])
        empty, in_use = (self.document(*fleet, *more)
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
        for words in (
                (*self.given(),
                 '--compare', 'best-fit+fullest+moves,nova+moves'),
                (*self.fleet('y', f'n={SMT}*8'),
                 *self.fleet('x' * 22, f'n={SMT}*8',
                             profile=str(self.off)))):
            with mock.patch.dict(os.environ, COLUMNS='79'):
                done = self.run_command(*words)
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
        fleet = self.fleet('a', f'n={SMT}*8')
        for words, said in (
                ((*fleet, *fleet), 'a.json: is another fleet of the name a'),
                ((*fleet, '--fleet', self.folder / 'b.json'), 'b.json'),
                ((*fleet, *self.fleet('b', 'nowhere.json')), 'nowhere.json'),
                ((*fleet, '--cpus', '1'), '--cpus names CPU 1 but not its'),
                ((*fleet, *self.given()), 'cannot be used with --fleet'),
                ((*self.given(), '--in-use'), '--in-use: needs --fleet')):
            with self.subTest(words):
                commands.check_refused(self, said, self.run_command(*words))
        self.assertEqual(2, self.run_command(*self.given(), '--warm-up',
                                             '1').status)

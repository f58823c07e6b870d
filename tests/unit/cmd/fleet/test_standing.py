# SPDX-License-Identifier: Apache-2.0

import argparse
import json
import unittest
from unittest import mock

from hpcvirt.cmd.fleet import standing
from tests import pages
from tests.builders import commands
from tests.builders import folders

ETC = pages.ROOT / 'etc' / 'hpcvirt'
FLEET = ('--fleet', ETC / 'fleets' / 'three-hosts.json')
REFUSAL = (
    '2026-11-22 18:09:45.000 7 INFO hpcvirt.nova.no_valid_host_log '
    '[None req-{number} a - - - -] No host of 1 can take the guest: too few '
    'free PCPUs in a cell (1); time="2026-11-22T18:09:45.{number:03}+00:00" '
    'request_id="req-{number}" global_request_id=- instance="i{number}" '
    'flavor="{flavor}" hosts=1 examples="n7" reason="no cell has room" of=1 '
    'code="no-cell" root="free-pcpus" asked="4 vCPUs"\n')


def run(*words):
    return commands.run('make-room', *words, *FLEET)


class QuietTest(unittest.TestCase):
    def test_an_end_may_be_of_the_next_day(self):
        for parts, quiet in (
                (['08:00-18:00'], ('08:00', '12:00', '17:59')),
                (['22:00-06:00'], ('22:00', '23:59', '00:00', '05:59')),
                (['08:00-09:00', '23:30-00:30'], ('08:30', '23:30', '00:29')),
                ([], ())):
            for time in ('00:00', '00:29', '00:30', '05:59', '06:00', '07:59',
                         '08:00', '08:30', '12:00', '17:59', '18:00', '21:59',
                         '22:00', '23:30', '23:59'):
                with mock.patch('time.strftime', return_value=time):
                    found = standing.is_quiet(argparse.Namespace(quiet=parts))
                self.assertEqual(
                    any(self.hold(part, time) for part in parts), found)
                self.assertLessEqual(time in quiet, found)

    def hold(self, part, time):
        """Count the minutes of the part one by one."""
        def minutes(word):
            return 60 * int(word[:2]) + int(word[3:])
        begin, end = map(minutes, part.split('-'))
        return minutes(time) in {
            minute % 1440 for minute in range(
                begin, end if end > begin else end + 1440)}


class StandingTest(unittest.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = folders.make(self)

    def log(self, text):
        path = self.folder / 'log'
        path.write_text(text)
        return path

    def kept(self, *words):
        """Return the flavors for which room is kept."""
        status, text, error = run(*words, '--format', 'json')
        self.assertIn(status, (0, 1), error)
        return [(row['flavor'], row['count'])
                for row in json.loads(text)['standing']]

    def test_a_table_of_instances_says_what_is_usual(self):
        log = self.log(
            'created_at,deleted_at,vcpus,memory_mb,flavor,extra_specs\n'
            + '1,2,16,28672,hpc.16c1n.2m,{}\n' * 2
            + '1,2,8,14336,hpc.8c1n.2m,{}\n' * 50
            + '1,2,999,99,gone,{}\n' * 9)
        words = '--standing', '--log', log
        # The flavor with 16 CPUs has 32 of 432; the cloud lacks the other.
        self.assertEqual([('hpc.16c1n.2m', 1), ('hpc.8c1n.2m', 1)],
                         self.kept(*words))
        self.assertEqual(
            [('hpc.16c1n.2m', 1), ('hpc.8c1n.2m', 2), ('hpc.8c1n.2m', 1)],
            self.kept(*words, '--standing', 'hpc.8c1n.2m=2'))

    def test_a_log_of_the_scheduler_says_what_is_refused(self):
        log = self.log(''.join(
            REFUSAL.format(number=number, flavor=flavor)
            for number, flavor in enumerate(
                ['hpc.8c1n.2m'] * 3 + ['hpc.16c1n.2m'] * 2)))
        self.assertEqual([('hpc.16c1n.2m', 1), ('hpc.8c1n.2m', 1)],
                         self.kept('--standing', '--log', log))

    def test_the_last_pass_is_written_for_prometheus(self):
        path = self.folder / 'standing.prom'
        status, *_ = run('--standing', 'hpc.16c1n.2m=1',
                         '--standing', 'hpc.8c1n.2m=1', '--textfile', path)
        self.assertEqual(0, status)
        lines = path.read_text().splitlines()
        # Nothing was moved without --apply.
        for line in ('hpcvirt_standing_room{flavor_name="hpc.16c1n.2m"} 0.0',
                     'hpcvirt_standing_room{flavor_name="hpc.8c1n.2m"} 1.0',
                     'hpcvirt_standing_moves{state="made"} 0.0',
                     'hpcvirt_standing_moves{state="failed"} 0.0'):
            self.assertIn(line, lines)

    def test_in_quiet_hours_moves_wait(self):
        with mock.patch('time.strftime', return_value='12:00'):
            status, text, _ = run('--standing', 'hpc.16c1n.2m=1', '--quiet',
                                  '08:00-18:00', '--apply')
        self.assertEqual(1, status)
        self.assertTrue(text.endswith(
            '1 move must wait: these are quiet hours.\n'), text)

    def test_an_excluded_project_stays(self):
        fleet = json.loads(FLEET[1].read_text())
        fleet['classes']['plain']['hosts'] = [
            host.replace('..', str(ETC))
            for host in fleet['classes']['plain']['hosts']]
        for instance in fleet['instances']:
            instance['project'] = 'p1'
        path = self.folder / 'fleet.json'
        path.write_text(json.dumps(fleet))
        for project, status in (('p1', 1), ('p2', 0)):
            self.assertEqual(status, commands.run(
                'make-room', '--standing', 'hpc.16c1n.2m=1', '--fleet', path,
                '--exclude-project', project)[0])

    def test_wrong_arguments_are_one_line(self):
        log = self.log('created_at,deleted_at,vcpus,memory_mb,flavor\n'
                       '1,2,8,14336,absent\n')
        for words, message in (
                (('--standing',), 'without NAME=N needs --log'),
                (('--standing', '--log', log), 'has no request for a flavor'),
                (('--standing', '--log', self.folder / 'no'), 'No such file'),
                (('--standing', 'hpc.8c1n.2m=1', '--budget', '3'),
                 '--budget: needs the live cloud'),
                (('--flavor', 'hpc.8c1n.2m', '--quiet', '08:00-09:00'),
                 '--quiet: belongs to --standing'),
                (('--flavor', 'hpc.8c1n.2m', '--exclude-project', 'x'),
                 '--exclude-project: belongs to --standing')):
            commands.check_refused(self, message, run(*words))
        for word in ('8-9', '08:00-24:00', '08:00-08:00', '08:00', '',
                     '08:00-18:00-', '08:00-18:00\n'):
            self.assertEqual(2, run('--standing', 'hpc.8c1n.2m=1', '--quiet',
                                    word)[0])

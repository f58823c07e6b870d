# SPDX-License-Identifier: Apache-2.0

"""The command replays a workload over a fleet."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from tests.builders import commands
from tests.builders import folders
from tests.builders import page_reader

TOPOLOGIES = pathlib.Path(__file__).parents[4] / 'etc/hpcvirt/topologies'
SMALL = TOPOLOGIES / 'hs06-2s-16c.json'
LARGE = TOPOLOGIES / 'epyc-2s-64c-nps4.json'


def swf(*jobs):
    """Write jobs of (submit time, run time, processors) as a log."""
    return ''.join(
        f'{number} {submit} 0 {run} {cpus} -1 -1 {cpus} {run} -1 1 1 1 1 1 -1 '
        '-1 -1\n' for number, (submit, run, cpus) in enumerate(jobs, 1))


class SimulateTest(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.folder = folders.make(self)
        self.log = self.folder / 'log.swf'
        # One hour each, two at a time: of 1, 16, 32 and 64 processors.
        self.log.write_text(swf(*(
            (1800 * number, 3600, (1, 16, 32, 64)[number % 4])
            for number in range(40))))

    def run_command(self, *words):
        """Run the command.

        :returns: status, standard output, standard error
        """
        return commands.run('simulate', *words)

    def document(self, *words):
        return commands.read_document(self, self.run_command(
            '--workload', self.log, *words, '--format', 'json'))

    def test_the_document_has_what_programs_read(self):
        found = self.document(f'n={SMALL}*2', '--profile', 'dense',
                              '--load', '0.9', '--compare',
                              'nova,best-fit,hpcvirt+fullest')
        self.assertEqual(1, found['schema_version'])
        self.assertEqual(['nova', 'best-fit', 'hpcvirt+fullest'],
                         [each['name'] for each in found['strategies']])
        for each in found['strategies']:
            self.assertEqual({'capacity', 'fragmentation', 'devices', 'size',
                              'pages'}, {*each['refused']})
            self.assertEqual(40, each['accepted'] + sum(
                each['refused'].values()))
            hours = each['core_hours']
            self.assertAlmostEqual(
                100 * hours['lost'] / hours['offered'],
                each['lost_percent'], 3)
            self.assertLessEqual(0, each['largest_accepted_percent'])
            self.assertLessEqual(each['largest_accepted_percent'], 100)
        self.assertEqual(
            [('best-fit', 'nova'), ('hpcvirt+fullest', 'nova'),
             ('hpcvirt+fullest', 'best-fit')],
            [(each['strategy'], each['reference'])
             for each in found['paired']])
        for each in found['paired']:
            lost = {other['name']: other['lost_percent']
                    for other in found['strategies']}
            self.assertAlmostEqual(
                lost[each['strategy']] - lost[each['reference']],
                each['difference_percent'], 3)

    def test_an_empty_fleet_that_is_large_enough_loses_nothing(self):
        found = self.document(f'{LARGE}*3')
        for each in found['strategies']:
            self.assertEqual(0, each['lost_percent'])
            self.assertEqual(100, each['largest_accepted_percent'])
        self.assertEqual([None] * 3, [
            each['interval_percent'] for each in found['paired']])

    def test_the_largest_are_lost_on_a_host_that_is_too_small(self):
        """64 processors become two guests of 32 on the one host of 32."""
        (only,) = self.document(SMALL, '--profile', 'dense',
                                '--compare', 'nova')['strategies']
        self.assertGreaterEqual(only['refused']['capacity'], 10)
        self.assertGreater(only['lost_percent'], 100 * 640 / 1130 - 1)

    def test_the_same_input_gives_the_same_bytes(self):
        words = ('--workload', self.log, f'a={SMALL}*2',
                 f'b={LARGE}', '--load', '1.1', '--format', 'json')
        first, again = (self.run_command(*words)[1] for _ in range(2))
        self.assertEqual(first, again)

    def test_the_flavors_of_a_file_are_requested(self):
        plan = self.folder / 'plan.json'
        plan.write_text(commands.run(
            'flavor', 'plan', f'n={SMALL}', '--profile', 'dense',
            '--format', 'json').out)
        given = self.document(f'n={SMALL}*2', '--profile', 'dense',
                              '--flavors', plan)
        planned = self.document(f'n={SMALL}*2', '--profile',
                                'dense')
        self.assertEqual(planned, given)
        listed = self.folder / 'list.json'
        listed.write_text(json.dumps([{
            'Name': 'half', 'VCPUs': 16, 'RAM': 16384, 'Disk': 0,
            'Properties': {'hw:cpu_policy': 'dedicated',
                           'hw:mem_page_size': '2MB'}}]))
        found = self.document(f'n={SMALL}*2', '--flavors', listed,
                              '--profile', 'dense')
        self.assertEqual([('half', 40)], [
            (each['name'], each['requests']) for each in found['flavors']])

    def test_the_hosts_and_flavors_of_a_fleet_file_are_those_of_its_classes(
            self):
        fleet = self.folder / 'fleet.json'
        plain = {'schema_version': 1, 'classes': {'small': {
            'profile': 'dense', 'hosts': [f'n={SMALL}*2']}}}
        fleet.write_text(json.dumps(plain))
        expected = self.document(f'n={SMALL}*2', '--profile', 'dense')
        self.assertEqual(expected, self.document('--fleet', fleet))
        # Its instances do not take part.
        fleet.write_text(json.dumps({**plain, 'instances': [{
            'id': 'a', 'host': 'n-1', 'cpus': [0, 2], 'cells': [
                {'id': 0, 'pages': {'2048': 512}}], 'flavor': {
                    'name': 'a', 'vcpus': 2, 'ram_mib': 1024, 'disk_gib': 0,
                    'extra_specs': {'hw:cpu_policy': 'dedicated',
                                    'hw:mem_page_size': '2MB'}}}]}))
        self.assertEqual(expected, self.document('--fleet', fleet))
        plain['classes']['large'] = {'hosts': [str(LARGE)],
                                     'name_prefix': 'big'}
        fleet.write_text(json.dumps(plain))
        found = self.document('--fleet', fleet)
        self.assertEqual([('n', 2), ('epyc-2s-64c-nps4', 1)], [
            (host['name'], host['count'])
            for host in found['fleet']['hosts']])
        self.assertEqual({'hpc', 'big'}, {
            flavor['name'].partition('.')[0] for flavor in found['flavors']})

    def test_errors_are_one_line_and_status_2(self):
        junk = self.folder / 'junk'
        junk.write_text('a thesis')
        host = (SMALL,)
        listed = self.folder / 'list.json'
        listed.write_text(json.dumps([{
            'Name': 'half', 'VCPUs': 16, 'RAM': 16384, 'Disk': 0,
            'Properties': {}}]))
        for words, said in (
                ((f'{SMALL}*60000', f'b={SMALL}*60000'),
                 'more than 100000 hosts'),
                ((f'a={SMALL}*2', f'a={LARGE}*2'),
                 'is the name of two hosts'),
                ((junk,), 'junk'),
                (('--fleet', junk, '--cpus', '1'), 'junk'),
                ((*host, '--compare', 'nova,nova'), 'repeated'),
                ((*host, '--compare', 'packin'), 'did you mean packing?'),
                ((*host, '--flavors', junk), 'has no flavors'),
                ((*host, '--flavors', listed, '--flavors', listed),
                 'which another file has'),
                ((*host, '--profile', junk), 'junk'),
                ((*host, '--html', junk), 'exists and is not a report'),
                ((*host, '--html', self.folder), 'irectory'),
                ((*host, '--html', self.folder / 'no/page'), 'No such')):
            with self.subTest(words):
                commands.check_refused(self, said, self.run_command(
                    '--workload', self.log, *words))
        self.assertEqual('a thesis', junk.read_text())
        for words in (('--load', '0'), ('--load', '-1'), ('--load', 'nan'),
                      ('--load', 'inf'), ('--vf-share', '1.1')):
            with self.subTest(words):
                self.assertEqual(2, self.run_command(
                    '--workload', self.log, *host, *words)[0])

    def test_a_log_that_requests_nothing_is_an_error(self):
        for text in ('; Version: 2\n', swf((0, -1, 4), (1, 0, 4)), ''):
            self.log.write_text(text)
            commands.check_refused(
                self, '', self.run_command('--workload', self.log, SMALL))

    def test_the_model_has_a_replay_for_each_seed(self):
        found = commands.read_document(self, self.run_command(
            '--workload', 'cloud:100', f'n={SMALL}*8', '--seeds',
            3, '--load', 1, '--format', 'json'))
        self.assertEqual((3, 300), (found['workload']['replays'],
                                    found['workload']['requests']))
        self.assertEqual({3}, {each['parts'] for each in found['paired']})
        self.assertEqual((2, ''), self.run_command(
            '--workload', self.log, SMALL, '--seeds', 3)[:2])

    def test_a_share_of_the_requests_asks_for_a_virtual_function(self):
        profile = self.folder / 'vf.yaml'
        profile.write_text(
            'devices: [{vendor_id: "15b3", product_id: "101e"}]\n')
        plan = json.loads(commands.run(
            'flavor', 'plan', LARGE, '--profile', profile,
            '--format', 'json').out)
        bare = {**plan['flavors'][0], 'name': 'bare', 'extra_specs': {
            key: value
            for key, value in plan['flavors'][0]['extra_specs'].items()
            if 'pci' not in key}}
        flavors = self.folder / 'flavors.json'
        flavors.write_text(json.dumps([*plan['flavors'], bare]))
        found = self.document(f'{LARGE}*4', '--profile', profile,
                              '--flavors', flavors, '--vf-share', 0.5)
        requests = {each['name']: each['requests']
                    for each in found['flavors']}
        self.assertGreater(requests['bare'], 0)
        self.assertGreater(40 - requests['bare'], 5)

    def test_the_tables_are_those_of_the_document(self):
        words = (f'n={SMALL}*2', '--load', '1')
        found = self.document(*words)
        _, text, _ = self.run_command('--workload', self.log, *words)
        for each in found['strategies']:
            self.assertRegex(
                text, rf'(?m)^{each["name"]} +{each["lost_percent"]:.1f} % +'
                rf'{each["refused"]["capacity"]} +'
                rf'{each["refused"]["fragmentation"]}( |$)')
        for line in found['workload']['rule']:
            self.assertIn(line, ' '.join(text.split()))

    def test_the_page_shows_each_strategy(self):
        target = self.folder / 'page.html'
        words = (f'n={SMALL}*2', f'm={LARGE}', '--load',
                 '1', '--html', target, '--compare', 'nova,hpcvirt')
        for _ in range(2):
            found = self.document(*words)
        text = target.read_text()
        root = page_reader.Reader(text).root
        self.assertNotIn('<script', text)
        tables = [[[page_reader.words(cell) for cell in row] for row in body]
                  for body in root.iter('tbody')]
        lost, paired, refused, flavors = tables
        self.assertEqual(
            [(each['name'], f'{each["lost_percent"]:.2f} %')
             for each in found['strategies']],
            [(row[0], row[1]) for row in lost])
        self.assertEqual(
            [[str(number) for number in each['refused'].values()]
             for each in found['strategies']],
            [row[2:7] for row in refused])
        self.assertEqual([f'{each["difference_percent"]:+.2f}'
                          for each in found['paired']],
                         [row[2] for row in paired])
        self.assertEqual(len(found['flavors']), len(flavors))
        cards = [item for item in root.iter() if item.get('class') == 'card']
        self.assertEqual([3, 3], [len([*card.iter('svg')])
                                  for card in cards])

    def test_the_page_shows_requests_of_no_length(self):
        log = self.folder / 'boots.csv'
        log.write_text('created_at,deleted_at,vcpus,memory_mb\n'
                       + '0,0.0001,1,512\n' * 4)
        target = self.folder / 'page.html'
        status, *_ = self.run_command(
            '--workload', log, SMALL, '--html', target)
        self.assertEqual(0, status)
        text = target.read_text()
        self.assertIn('over 4 windows with equal numbers', text)
        card = next(item for item in page_reader.Reader(text).root.iter()
                    if item.get('class') == 'card')
        # No label covers another one.
        self.assertEqual([['0', '30', '0 hours'], ['0', '0 hours'],
                          ['0', '0 hours']],
                         [[label.text for label in drawing.iter('text')]
                          for drawing in card.iter('svg')])


class ProcessTest(unittest.TestCase):

    def test_an_interrupt_ends_all_processes(self):
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder, 'log')
            log.write_text(swf(*((number, 9000, 1 + number % 60)
                                 for number in range(8000))))
            child = subprocess.Popen(
                [sys.executable, '-m', 'hpcvirt.cmd.main', 'simulate',
                 '--workload', log, f'{LARGE}*200'],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                start_new_session=True)
            children = pathlib.Path(
                f'/proc/{child.pid}/task/{child.pid}/children')
            deadline = time.monotonic() + 60
            while not children.read_text() and time.monotonic() < deadline:
                time.sleep(0.05)
            own = children.read_text().split()
            self.assertTrue(own)
            os.killpg(child.pid, signal.SIGINT)
            out, error = child.communicate(timeout=60)
        self.assertEqual((130, b'', []), (child.returncode, out, [
            line for line in error.splitlines()
            if not line.startswith(b'Warning: ')]))
        for number in own:
            self.assertFalse(pathlib.Path('/proc', number).exists())

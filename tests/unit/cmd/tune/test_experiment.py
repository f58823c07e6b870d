# SPDX-License-Identifier: Apache-2.0

import csv
import io
import json
import pathlib
import unittest

import yaml

from hpcvirt.cmd.tune import experiment
from hpcvirt.fit import capacity
from hpcvirt.flavors import compiled_flavor
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from tests.builders import commands
from tests.builders import folders
from tests.builders import hosts

EXPERIMENTS = pathlib.Path(__file__).parents[4] / 'etc/hpcvirt/experiments'
SHIPPED = [path for path in sorted(EXPERIMENTS.glob('*.yaml'))
           if path.name != 'fleet.yaml']
PLAIN = {
    'kind': 'experiment', 'schema_version': 1, 'name': 'small',
    'fleet': 'fleet.yaml',
    'host_class': 'small', 'matters_percent': 10, 'guests_per_host': 2,
    'programs': {'md': {'benchmark': 'gromacs', 'minutes': 1}},
    'choices': {'guests': {'four': {'guests_per_host': 4}}},
    'limits': {'hours': 24}}


class TestShipped(unittest.TestCase):
    def test_the_experiments_that_are_shipped_can_be_planned(self):
        self.assertGreaterEqual(len(SHIPPED), 2)
        for path in SHIPPED:
            ended = commands.run('bench', 'tune', 'plan', path)
            self.assertEqual((0, ''), (ended.status, ended.err))

    def test_one_of_them_has_whole_plots(self):
        reboots = [json.loads(commands.run(
            'bench', 'tune', 'plan', path, '-f', 'json').out)['reboots']
            for path in SHIPPED]
        self.assertEqual([True, False], [number > 0 for number in reboots])


class TestPlan(unittest.TestCase):
    def setUp(self):
        self.folder = folders.make(self)
        hosts.as_json(hosts.build(name='host'), self.folder / 'host.json')
        self.write_class(['n1=host.json'])

    def write_class(self, names):
        (self.folder / 'fleet.yaml').write_text(yaml.safe_dump({
            'schema_version': 1, 'classes': {'small': {
                'hosts': names, 'profile': 'dense', 'name_prefix': 'own'}}}))

    def write(self, **changes):
        path = self.folder / 'e.yaml'
        path.write_text(yaml.safe_dump({**PLAIN, **changes}))
        return path

    def run_(self, *words, **changes):
        return commands.run('bench', 'tune', 'plan', self.write(**changes),
                            *words)

    def refused(self, said, **changes):
        commands.check_refused(self, said, self.run_(**changes))

    def test_the_document_has_all_configurations(self):
        plan = commands.read_document(self, self.run_('-f', 'json'))
        found = {each['values']: (each['guests'], each['flavor']['vcpus'])
                 for each in plan['configurations']}
        self.assertEqual({'today': (2, 16), 'guests=four': (4, 8)}, found)
        self.assertEqual(['n1'], plan['hosts'])
        self.assertEqual(plan['runs'], 3 * plan['boots'])
        self.assertEqual(plan['boots'], 2 * plan['pairs'] + plan[
            'replicates'] * len(plan['configurations']))

    def test_the_rows_are_values(self):
        rows = list(csv.DictReader(io.StringIO(self.run_('-f', 'csv').out)))
        self.assertEqual([('guests', 'today', '2', '32'),
                          ('guests', 'four', '4', '32')], [
            (row['Choice'], row['Value'], row['Guests'], row['Cores'])
            for row in rows])

    def test_the_table_says_what_it_takes(self):
        out = self.run_().out
        plan = commands.read_document(self, self.run_('-f', 'json'))
        self.assertIn(f'{plan["runs"]} runs of programs, {plan["boots"]} '
                      f'boots, 0 reboots and {plan["hours"]:.1f} hours',
                      ' '.join(out.split()))

    def test_interactions_that_cannot_be_told_apart_are_named(self):
        shipped = EXPERIMENTS / 'class-with-reboots.yaml'
        plan = json.loads(commands.run(
            'bench', 'tune', 'plan', shipped, '-f', 'json').out)
        self.assertEqual([], plan['confounded'])
        document = yaml.safe_load(shipped.read_text())
        document['fleet'] = str(EXPERIMENTS / document['fleet'])
        del document['choices']['interrupt-moderation']
        document['choices']['emulator-threads'] = {
            'with-guest': {'profile': {'emulator_threads': None}}}
        path = self.folder / 'confounded.json'
        path.write_text(json.dumps(document))
        plan = json.loads(commands.run(
            'bench', 'tune', 'plan', path, '-f', 'json').out)
        self.assertIn([['nested-paging', 'guests'],
                       ['pages', 'emulator-threads']],
                      [sorted(pairs) for pairs in plan['confounded']])

    def test_the_hosts_of_a_class_have_its_profile(self):
        self.write_class(['n=host.json*2'])
        found = experiment.read(str(self.write()))
        self.assertEqual(['n-1', 'n-2'], [host.name for host in found.hosts])
        self.assertEqual({'base': 'dense', 'name_prefix': 'own'},
                         found.configurations[0,].content)
        self.refused("host_class: 'large' is not in", host_class='large')

    def test_hosts_must_be_alike(self):
        hosts.as_json(hosts.build(name='odd', cores=4),
                      self.folder / 'odd.json')
        self.write_class(['n1=host.json', 'n2=host.json', 'odd.json'])
        self.refused('class: n1 and odd are not alike; of odd: has 8 cores')

    def test_hosts_may_differ_by_the_memory_of_the_kernel(self):
        less = (65536 - 37, 65536 + 21)
        hosts.as_json(hosts.build(name='less', mib=less),
                      self.folder / 'less.json')
        hosts.as_json(hosts.build(name='n1', mib=65536),
                      self.folder / 'more.json')
        self.write_class(['more.json', 'less.json'])
        found = experiment.read(str(self.write()))
        self.assertEqual(['n1', 'less'], [host.name for host in found.hosts])
        for own in found.configurations.values():
            guest = compiled_flavor.make(own.flavor)
            for host in found.hosts:
                # Each host is configured by the same profile.
                profile = profiles.build(own.content, 'profile')
                plan = planner.plan([host], profile)
                self.assertEqual(own.guests, capacity.fill(
                    guest, plan.hosts[0].state).count)

    def test_a_host_without_a_module_is_named_with_what_it_lacks(self):
        hosts.as_json(hosts.build(name='less', mib=(65536, 61440)),
                      self.folder / 'less.json')
        hosts.as_json(hosts.build(name='n1', mib=65536),
                      self.folder / 'more.json')
        self.write_class(['more.json', 'less.json'])
        self.refused('class: less and n1 are not alike; of n1: cell 1 has '
                     '4 GiB more memory: 64, not 60 GiB')

    def test_native_trials_are_planned(self):
        for more, trials in (({}, 0), ({'native': 'ssh://{host}'}, 10)):
            plan = commands.read_document(
                self, self.run_('-f', 'json', **more))
            self.assertEqual(3 * (plan['boots'] + trials), plan['runs'])

    def test_a_given_profile_is_only_confirmed(self):
        path = self.folder / 'own.yaml'
        path.write_text('memory_step_mib: 2048\n')
        document = self.write(apply=['true'])
        found = experiment.plan(yaml.safe_load(document.read_text()),
                                str(document), str(path))
        self.assertEqual(0, found.replicates)
        self.assertEqual(('today', 'given'), found.choices[0].values)
        self.assertEqual({'base': 'default', 'memory_step_mib': 2048},
                         found.configurations[1,].content)

    def test_a_program_must_be_usable(self):
        for said, program in (
                ("programs['md'].metric: must be one of ns_per_day",
                 {'benchmark': 'gromacs', 'metric': 'ns'}),
                ("programs['md'].metric: must be one of ",
                 {'benchmark': 'hpcc'}),
                ("programs['md'].metric: must be one of latency_us[BYTES]",
                 {'benchmark': 'osu-latency', 'settings': {'osu': '/osu'}}),
                ("programs['md']: stream: source is not set",
                 {'benchmark': 'stream'}),
                ("programs['md']: gromacs: no size 'x'",
                 {'benchmark': 'gromacs', 'settings': {'x': '1'}}),
                ("programs['md']: gromax: no such benchmark",
                 {'benchmark': 'gromax'})):
            self.refused(said, programs={'md': {**program, 'minutes': 1}})

    def test_a_configuration_that_cannot_be_planned_is_refused(self):
        self.refused('guests=three: guests_per_host: is 3, but the flavors',
                     choices={'guests': {'three': {'guests_per_host': 3}}})

    def test_too_tight_limits_are_refused(self):
        self.refused('limits: are too tight for differences of 10 %; needed '
                     'are hours: ', limits={'hours': 0.5})

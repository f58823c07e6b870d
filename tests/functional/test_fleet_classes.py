# SPDX-License-Identifier: Apache-2.0

"""Boot the planned flavors of a fleet with classes, isolated and not."""

import dataclasses
import json

import yaml
from nova import conf
from nova.pci import request
from oslo_config import cfg

from hpcvirt.deployment import host_files
from hpcvirt.fleet import count
from hpcvirt.nova import config
from hpcvirt.nova_live import view
from testing import settings
from tests.builders import commands
from tests.builders import hosts
from tests.builders import wired
from tests.functional import base
from tests.functional import test_flavor_apply

_PROFILE = {'base': 'dense', 'disk_gib': 0, 'host_reserve_mib_per_cell': 512,
            'guest_overhead_mib': 32}


class ClassesOfNova(test_flavor_apply.CloudOfNova):
    def setUp(self):
        super().setUp()
        self.machines = {
            'big': hosts.build(cells=2, cores=4, mib=8192, name='big'),
            'small': hosts.build(cells=1, cores=4, mib=8192, name='small')}

    def write_fleet(self, **special):
        """Write a fleet of a common class and a special one."""
        for host in self.machines.values():
            self.write(host)
        path = self.folder / 'fleet.yaml'
        path.write_text(yaml.safe_dump({'schema_version': 1, 'classes': {
            'common': {'hosts': ['small.json'], 'profile': _PROFILE},
            'special': {'hosts': ['big.json'], 'name_prefix': 's',
                        'profile': _PROFILE, **special}}}))
        return '--fleet', str(path)

    def plan(self, *words):
        _, text, _ = commands.run('flavor', 'plan', *words, '-f', 'json')
        return json.loads(text)

    def start(self, plan):
        """Start the hosts as planned, with the traits of their class."""
        self.add_machines(*(test_flavor_apply.machine(
            host, plan['host_config'][name])
            for name, host in self.machines.items()))

    def give_traits(self, host, *traits):
        uuid = self._get_provider_uuid_by_name(host)
        for trait in traits:
            self._create_trait(trait)
        self._set_provider_traits(
            uuid, [*self._get_provider_traits(uuid), *traits])

    def read_aggregates(self):
        return self.api.api_get('os-aggregates').body['aggregates']

    def assert_boots_as_planned(self, rows):
        """Fill the empty hosts with each flavor; return where it was."""
        flavors = self.flavors()
        found = {}
        for row in rows:
            number = flavors[row['name']]['id']
            servers = self.boot_many(number, sum(row['per_host'].values()))
            self.boot(number, status='ERROR')
            for server in servers:
                found.setdefault(row['name'], []).append(self.host_of(server))
                self.delete(server)
            self.assertEqual(
                {name: count for name, count in row['per_host'].items()
                 if count},
                {name: found[row['name']].count(name)
                 for name in set(found[row['name']])})
        return found

    def assert_counted_live(self, plan):
        """Compare the counts of the cloud with those of the plan."""
        seen = view.read()
        planned = {row['name']: row['per_host'] for row in plan['flavors']}
        for item in count.count(seen.fleet, [
                flavor for flavor in seen.flavors if flavor.name in planned]):
            self.assertEqual(planned[item.flavor.name], item.per_host)


class FleetClassesTest(ClassesOfNova):
    OPTIONS = (('scheduler', 'enable_isolated_aggregate_filtering', True),)

    def test_an_isolated_class_takes_its_own_flavors_only(self):
        words = self.write_fleet(traits=['CUSTOM_SPECIAL'], isolated=True)
        plan = self.plan(*words)
        self.start(plan)
        self.give_traits('big', 'CUSTOM_SPECIAL')
        status, text, _ = commands.run(
            'flavor', 'apply', *words, '--aggregates')
        self.assertEqual(0, status)
        self.assertIn('create   aggregate special (1 host, '
                      'trait:CUSTOM_SPECIAL=required)\n', text)
        self.assertEqual([], self.read_aggregates())
        status, text, error = commands.run(
            'flavor', 'apply', *words, '--aggregates', '--apply')
        self.assertEqual(0, status, text + error)
        (aggregate,) = self.read_aggregates()
        self.assertEqual(
            ('special', ['big'], {'trait:CUSTOM_SPECIAL': 'required'}),
            (aggregate['name'], aggregate['hosts'], aggregate['metadata']))
        self.assert_counted_live(plan)
        # A small flavor of the one class, and the largest of the other.
        found = self.assert_boots_as_planned(plan['flavors'][1::6])
        self.assertEqual({'hpc.2c1n.2m', 's.8c2n.2m'}, {*found})
        for name, places in found.items():
            self.assertEqual({'big' if name.startswith('s.') else 'small'},
                             set(places))
        status, text, _ = commands.run(
            'flavor', 'apply', *words, '--aggregates', '--apply')
        self.assertEqual(0, status)
        self.assertIn('same     aggregate special', text)

    def test_periodic_without_isolation_others_come_and_are_counted(self):
        words = self.write_fleet(traits=['CUSTOM_SPECIAL'],
                                 aggregate='special')
        plan = self.plan(*words)
        self.start(plan)
        self.give_traits('big', 'CUSTOM_SPECIAL')
        commands.run('flavor', 'apply', *words, '--aggregates', '--apply')
        (aggregate,) = self.read_aggregates()
        self.assertEqual({}, aggregate['metadata'])
        found = self.assert_boots_as_planned(plan['flavors'])
        self.assertEqual({'big', 'small'}, set().union(
            *(places for name, places in found.items()
              if not name.startswith('s.'))))
        said = [item['message'] for item in plan['warnings']
                if item['code'] == 'fits-elsewhere']
        self.assertEqual(1, len(said))
        self.assertIn('also fit on 1 host of the class special', said[0])

    def test_hosts_of_others_are_not_isolated(self):
        words = self.write_fleet(traits=['CUSTOM_SPECIAL'], isolated=True)
        self.start(self.plan(*words))
        aggregate = self.api.post_aggregate({'aggregate': {'name': 'special'}})
        self.api.add_host_to_aggregate(aggregate['id'], 'small')
        status, text, _ = commands.run(
            'flavor', 'apply', *words, '--aggregates', '--apply')
        self.assertEqual(1, status)
        self.assertIn('foreign  aggregate special', text)
        self.assertIn('also has the hosts small: ', text)
        (aggregate,) = self.read_aggregates()
        self.assertEqual((['small'], {}),
                         (aggregate['hosts'], aggregate['metadata']))
        # Nor is a fleet without aggregates.
        status, _, error = commands.run(
            'flavor', 'apply', *self.write_fleet(), '--aggregates')
        self.assertEqual(2, status)
        self.assertRegex(error, '^[^\n]*--aggregates: needs a fleet document '
                         '[^\n]*\n$')


class WrittenFilesTest(ClassesOfNova):
    """Nova and Placement with the files that "host config" writes.

    A class has sets of GPUs and is isolated, one has virtual functions, and
    one has neither.
    """

    AVAILABLE_FILTERS = base.HPCNova.AVAILABLE_FILTERS
    ENABLED_FILTERS = base.HPCNova.ENABLED_FILTERS

    def setUp(self):
        config.register()
        super().setUp()
        self.machines = {
            'sets': wired.tree(switches=1, nics=0, cores=4, name='sets'),
            'vf': hosts.build(cells=2, cores=4, mib=8192, vfs={0: 4},
                              name='vf'),
            'plain': hosts.build(cells=1, cores=4, mib=8192, name='plain')}
        for host in self.machines.values():
            self.write(host)
        self.fleet = self.folder / 'fleet.yaml'
        self.fleet.write_text(yaml.safe_dump({
            'schema_version': 1, 'classes': {
                'gpu': {'hosts': ['sets.json'], 'name_prefix': 'g',
                        'traits': ['CUSTOM_GPU'], 'isolated': True,
                        'profile': {**_PROFILE, 'devices': [{
                            'kind': 'whole', 'vendor_id': '10de',
                            'product_id': '2330', 'alias': 'gpu',
                            'sets': 'link', 'sizes': [1, 2, 4],
                            'affinity': 'required'}]}},
                'eth': {'hosts': ['vf.json'], 'name_prefix': 'e',
                        'profile': {**_PROFILE, 'devices': [{
                            'vendor_id': '15b3', 'product_id': '101e',
                            'alias': 'eth', 'affinity': 'preferred'}]}},
                'cpu': {'hosts': ['plain.json'], 'profile': _PROFILE}}}))

    def read(self, path):
        """Read a file as a service of Nova does."""
        found = cfg.ConfigOpts()
        for module in (conf.base, conf.compute, conf.pci, conf.scheduler):
            module.register_opts(found)
        found([], project='nova', default_config_dirs=[],
              default_config_files=[str(self.folder / 'files' / path)])
        return found

    def start(self, plan):
        controller = self.read('controllers/nova.conf')
        for group, name in (('pci', 'alias'),
                            ('filter_scheduler', 'pci_in_placement'),
                            ('scheduler', 'max_placement_results'),
                            ('scheduler',
                             'enable_isolated_aggregate_filtering')):
            self.flags(group=group, **{name: controller[group][name]})
        request.get_alias_from_config.cache_clear()
        self.addCleanup(request.get_alias_from_config.cache_clear)
        started, reports = [], []
        for name, host in self.machines.items():
            own = self.read(f'{name}/{host_files.NOVA_CONF}')
            machine = test_flavor_apply.machine(host,
                                                plan['host_config'][name])
            started.append(dataclasses.replace(
                machine, settings=settings.ComputeSettings(
                    cpu_dedicated_set=own.compute.cpu_dedicated_set,
                    cpu_shared_set=own.compute.cpu_shared_set,
                    reserved_host_memory_mb=own.reserved_host_memory_mb,
                    device_spec=tuple(own.pci.device_spec))))
            if own.pci.device_spec:
                reports.append(own.pci.report_in_placement)
        # The hosts of this Nova share the option.
        self.flags(group='pci', report_in_placement=all(reports))
        self.add_machines(*started)

    def test_periodic_flavors_boot_as_often_as_planned_under_the_files(self):
        words = '--fleet', str(self.fleet)
        status, _, error = commands.run(
            'host', 'config', *words, '--write', self.folder / 'files')
        self.assertEqual(0, status, error)
        for said in ('report_in_placement cannot be taken back',
                     'off the hosts of the class gpu only once'):
            self.assertIn(said, error)
        plan = self.plan(*words)
        self.start(plan)
        provider = yaml.safe_load((
            self.folder / 'files/sets' / host_files.PROVIDER).read_text())
        (own,) = provider['providers']
        self.give_traits('sets', *own['traits']['additional'])
        status, text, error = commands.run(
            'flavor', 'apply', *words, '--aggregates', '--apply')
        self.assertEqual(0, status, text + error)
        found = self.assert_boots_as_planned(plan['flavors'])
        self.assertEqual({'sets'}, set().union(*(
            places for name, places in found.items()
            if name.startswith('g.'))))
        self.assertEqual({'vf', 'plain'}, set().union(*(
            places for name, places in found.items()
            if not name.startswith('g.'))))
        self.assertEqual({'vf'}, set().union(*(
            places for name, places in found.items()
            if name.startswith('e.'))))

# SPDX-License-Identifier: Apache-2.0

"""Boot the planned flavors of a fleet with classes, isolated and not."""

import json

import yaml

from hpcvirt.fleet import count
from hpcvirt.nova_live import view
from tests.builders import commands
from tests.builders import hosts
from tests.functional import test_flavor_apply

_PROFILE = {'base': 'dense', 'disk_gib': 0, 'host_reserve_mib_per_cell': 512,
            'guest_overhead_mib': 32}


class FleetClassesTest(test_flavor_apply.CloudOfNova):
    OPTIONS = (('scheduler', 'enable_isolated_aggregate_filtering', True),)

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

    def assert_boots_as_planned(self, plan):
        """Fill the empty hosts with each flavor; return where it was."""
        flavors = self.flavors()
        found = {}
        for row in plan['flavors']:
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
        found = self.assert_boots_as_planned(plan)
        for name, places in found.items():
            self.assertEqual({'big' if name.startswith('s.') else 'small'},
                             set(places))
        status, text, _ = commands.run(
            'flavor', 'apply', *words, '--aggregates', '--apply')
        self.assertEqual(0, status)
        self.assertIn('same     aggregate special', text)

    def test_without_isolation_others_come_and_are_counted(self):
        words = self.write_fleet(traits=['CUSTOM_SPECIAL'],
                                 aggregate='special')
        plan = self.plan(*words)
        self.start(plan)
        self.give_traits('big', 'CUSTOM_SPECIAL')
        commands.run('flavor', 'apply', *words, '--aggregates', '--apply')
        (aggregate,) = self.read_aggregates()
        self.assertEqual({}, aggregate['metadata'])
        found = self.assert_boots_as_planned(plan)
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

    def test_a_fleet_without_aggregates_is_refused(self):
        status, _, error = commands.run(
            'flavor', 'apply', *self.write_fleet(), '--aggregates')
        self.assertEqual(2, status)
        self.assertRegex(error, '^[^\n]*--aggregates: needs a fleet document '
                         '[^\n]*\n$')

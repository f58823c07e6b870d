# SPDX-License-Identifier: Apache-2.0

import gc
import json
import os
import unittest
from unittest import mock

import yaml

from tests.builders import commands
from tests.builders import folders
from tests.builders import hosts
from tests.unit.cloud import compute_api


class CommandTest(unittest.TestCase):
    def setUp(self):
        self.folder = folders.make(self)
        bare = {key: value for key, value in os.environ.items()
                if not key.startswith('OS_')}
        bare['OS_CLIENT_CONFIG_FILE'] = str(self.folder / 'clouds.yaml')
        patch = mock.patch.dict(os.environ, bare, clear=True)
        patch.start()
        self.addCleanup(patch.stop)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return str(path)

    def host(self, name='host', **more):
        return hosts.as_json(hosts.build(name=name, **more),
                             self.folder / f'{name}.json')

    def run_command(self, *words):
        """The status, what is printed, and the line of an error."""
        if '--profile' not in words:
            # The sizes of these tests are those of whole hosts.
            words += ('--profile', 'dense')
        return commands.run('flavor', *words)

    def assert_bad_input(self, pattern, *words):
        # What other tests left behind would complain on standard error if it
        # were collected deep in a recursion.
        if gc.isenabled():
            gc.collect()
            gc.disable()
            self.addCleanup(gc.enable)
        status, out, err = self.run_command(*words)
        self.assertEqual((2, ''), (status, out))
        self.assertEqual(1, len(err.splitlines()), err)
        self.assertRegex(err, pattern)

    def serve(self):
        api = compute_api.ComputeAPI()
        self.addCleanup(api.close)
        self.write('clouds.yaml',
                   compute_api.CLOUDS.format(endpoint=api.endpoint))
        os.environ['OS_CLOUD'] = 'test'
        return api


class PlanTest(CommandTest):
    def test_the_table_is_the_default(self):
        status, out, _ = self.run_command('plan', self.host())
        self.assertEqual(0, status)
        self.assertIn('hpc.16c1n', out)
        self.assertNotIn('nova.conf', out)

    def test_the_document_has_exactly_the_keys_it_is_documented_to_have(self):
        document = commands.read_document(self, self.run_command(
            'plan', self.host(), '--format', 'json'))
        self.assertEqual(['schema_version', 'hosts', 'flavors',
                          'host_config', 'warnings', 'alternatives'],
                         list(document))
        self.assertEqual(1, document['schema_version'])
        self.assertEqual('host', document['hosts'][0]['name'])
        self.assertEqual(['name', 'vcpus', 'ram_mib', 'disk_gib',
                          'extra_specs', 'public', 'projects', 'per_host',
                          'unused_pcpus', 'unused_memory_mib', 'devices',
                          'unused_devices', 'share', 'guest_cells', 'loss'],
                         list(document['flavors'][0]))
        self.assertEqual(['cpu_dedicated_set', 'cpu_shared_set',
                          'reserved_host_memory_mb', 'reserved_host_cpus',
                          'cpu_allocation_ratio', 'ram_allocation_ratio',
                          'reserved_huge_pages',
                          'packing_host_numa_cells_allocation_strategy',
                          'pages', 'pci_device_spec', 'mdev_types',
                          'device_counts', 'pci_alias'],
                         list(document['host_config']['host']))
        self.assertEqual(['code', 'message', 'subjects'],
                         list(document['warnings'][0]))

    def test_yaml_and_json_are_the_same_document(self):
        path = self.host()
        _, as_json, _ = self.run_command('plan', path, '--format', 'json')
        _, as_yaml, _ = self.run_command('plan', path, '--format', 'yaml')
        self.assertEqual(json.loads(as_json), yaml.safe_load(as_yaml))

    def test_two_runs_print_the_same(self):
        paths = [self.host('a'), self.host('b', cells=4, threads=2)]
        for form in ('table', 'json', 'yaml', 'shell'):
            words = ('plan', *paths, '--format', form)
            self.assertEqual(self.run_command(*words),
                             self.run_command(*words))

    def test_the_shell_gets_comments_and_commands(self):
        _, out, _ = self.run_command('plan', self.host(), '--format', 'shell')
        for line in out.splitlines():
            self.assertRegex(line, '^(#|openstack flavor create )')

    def test_the_built_in_profiles_have_names(self):
        path = self.host()
        default = self.run_command('plan', path, '--profile', 'default')[1]
        self.assertIn('30 of 32 CPUs dedicated', default)
        self.assertIn('With "--profile dense", guests get 32 of 32 CPUs, in '
                      'flavors of 8, 16, 24 and 32 vCPUs.', default)
        self.assertEqual(default, commands.run('flavor', 'plan', path).out)
        dense = self.run_command('plan', path, '--profile', 'dense')[1]
        self.assertIn('32 of 32 CPUs dedicated', dense)
        self.assertIn('With "--profile default", guests get 30 of 32', dense)
        self.assert_bad_input('./dense', 'plan', path, '--profile', './dense')

    def test_a_profile_is_obeyed(self):
        profile = self.write('p.yaml', 'base: dense\nname_prefix: big\n'
                             'page_size: 1G\n')
        _, out, _ = self.run_command('plan', self.host(), '--profile', profile)
        self.assertRegex(out, r'big\.16c1n\.1g')

    def test_a_part_of_the_host_is_planned_applied_and_linted(self):
        path = self.host()
        part = ('--cpus', '2-5', '--pages', '0:2M:1024')
        ended = self.run_command('plan', path, *part, '--format', 'json')
        document = commands.read_document(self, ended)
        self.assertEqual('2-5', document['host_config']['host'][
            'cpu_dedicated_set'])
        self.assertEqual([], document['alternatives'])
        names = {flavor['name'] for flavor in document['flavors']}
        api = self.serve()
        self.assertEqual(
            0, self.run_command('apply', path, *part, '--apply')[0])
        self.assertEqual(names, {flavor['name'] for flavor
                                 in api.flavors.values()})
        plan = self.write('plan.json', ended.out)
        self.assertEqual(0, self.run_command('lint', plan, '--host', path,
                                             *part)[0])
        _, out, _ = self.run_command('plan', path, '--format', 'json')
        status, out, _ = self.run_command(
            'lint', self.write('whole.json', out), '--host', path, *part)
        self.assertEqual(1, status)
        self.assertIn('does-not-fit', out)

    def test_a_bad_part_is_one_line(self):
        path = self.host()
        for words, pattern in (
                (('--cpus', '2-'), '--cpus'),
                (('--pages', '2M:99999999'), 'which has 65536 MiB')):
            self.assert_bad_input(pattern, 'plan', path, *words)

    def test_bad_profiles_name_the_file_and_the_key(self):
        path = self.host()
        for text, pattern in (
                ('pagesize: 2M\n', r"p.yaml: unknown key 'pagesize'"),
                ('a: &a [*a]\n', 'p.yaml'),
                ('name_template: "{core}"\n',
                 'p.yaml: name_template: has the unknown field'),
                ('projects: p1\n', 'p.yaml: projects: must be a list'),
                ('projects: [7]\n', r'p.yaml: projects\[0\]: must be text'),
                ('extra_specs: [a]\n', 'p.yaml: extra_specs: must be a map'),
                ('extra_specs: {hw:pmu: true}\n',
                 'p.yaml: extra_specs: hw:pmu: must be text, in quotes'),
                ('extra_specs: {hw:pmu: "maybe"}\n',
                 "p.yaml: extra_specs: hw:pmu: 'maybe' is not one of"),
                ('extra_specs: {hw:cpu_polcy: dedicated}\n',
                 'p.yaml: extra_specs: hw:cpu_polcy: is unknown'),
                ('extra_specs: {trait:HW_CPU_HYPERTHREADING: required}\n',
                 'p.yaml: extra_specs: .*cannot be combined'),
                ('extra_specs: {hpcvirt:exclusive_cells: often}\n',
                 'p.yaml: extra_specs: hpcvirt:exclusive_cells: .often. is'),
                ('extra_specs: {a: "c\\x1b[2J"}\n',
                 'p.yaml: extra_specs: a: must be printable text'),
                ('base: dense\nsmallest_cores: 17\n',
                 'host: smallest_cores is 17, but no cell has more than 16'),
                ('smt: ' + '9' * 5000 + '\n', 'p.yaml')):
            profile = self.write('p.yaml', text)
            self.assert_bad_input(pattern, 'plan', path, '--profile', profile)
        self.assert_bad_input('directory', 'plan', path, '--profile',
                              str(self.folder))

    def test_a_profile_that_is_too_large_is_refused(self):
        profile = self.write('p.yaml', '#' * (1024 * 1024 + 1))
        self.assert_bad_input('larger than 1024 KiB', 'plan', self.host(),
                              '--profile', profile)

    def test_bad_hosts_are_one_line(self):
        self.assert_bad_input('nothing', 'plan', str(self.folder / 'nothing'))
        self.assert_bad_input('bad.json', 'plan', self.write('bad.json', '{'))
        self.assert_bad_input('no guest fits', 'plan', self.host(mib=300))
        self.assert_bad_input('PATH', 'plan')


class ApplyTest(CommandTest):
    def test_one_failure_does_not_stop_the_others(self):
        api = self.serve()
        create = api._create
        api._create = lambda wanted: (
            (403, {'forbidden': {'message': 'no such luck'}})
            if wanted['vcpus'] == 16 else create(wanted))
        status, out, _ = self.run_command('apply', self.host(), '--apply')
        self.assertEqual(1, status)
        self.assertRegex(out, r'hpc\.16c1n\S+: FAILED: .*no such luck')
        self.assertEqual(3, len(api.flavors))
        api._create = create
        self.assertEqual(0, self.run_command('apply', self.host(),
                                             '--apply')[0])
        self.assertEqual(4, len(api.flavors))

    def test_what_differs_is_told_with_the_way_out(self):
        api = self.serve()
        path = self.host()
        self.run_command('apply', path, '--apply')
        edited, foreign, grown, same = api.flavors.values()
        edited['extra_specs']['hw:mem_page_size'] = 'any'
        foreign['extra_specs'] = {'hw:cpu_policy': 'shared'}
        grown['ram'] += 1024
        del same['extra_specs']['hpcvirt:generated_by']
        before = set(api.flavors)
        status, out, _ = self.run_command('apply', path, '--apply')
        self.assertEqual((1, before), (status, set(api.flavors)))
        for reason in ('it was changed after hpcvirt created it',
                       'hpcvirt did not create this flavor',
                       f'a new id instead of {grown["id"]}',
                       'but it is as planned',
                       'Use --replace to change the flavors that'):
            self.assertIn(reason, out)

    def test_a_class_that_is_not_isolated_yet_is_named(self):
        self.serve()
        host = self.host()
        for own, said in (({}, False), ({'isolated': True}, True)):
            fleet = self.write('fleet.json', json.dumps({
                'schema_version': 1, 'classes': {'gpu': {
                    'hosts': [str(host)], 'traits': ['CUSTOM_G'], **own}}}))
            status, _, err = commands.run('flavor', 'apply', '--fleet', fleet)
            self.assertEqual((0, said), (status, 'isolated classes (gpu) take '
                                         'all instances until' in err), err)

    def test_projects_of_the_profile_get_access(self):
        api = self.serve()
        profile = self.write('p.yaml', 'base: dense\nprojects: [p1]\n'
                             'extra_specs: {"trait:CUSTOM_A": required}\n')
        words = ('apply', self.host(), '--profile', profile, '--apply')
        self.assertEqual(0, self.run_command(*words)[0])
        self.assertEqual([['p1']] * 4, list(api.projects.values()))
        self.assertEqual({'required'}, {
            flavor['extra_specs']['trait:CUSTOM_A']
            for flavor in api.flavors.values()})

    def test_flavors_of_earlier_plans_are_listed_and_kept(self):
        api = self.serve()
        self.run_command('apply', self.host(cores=6), '--apply')
        before = len(api.flavors)
        _, out, _ = self.run_command('apply', self.host(), '--apply')
        self.assertIn('left alone (see --prune): hpc.12c', out)
        self.assertEqual(before + 4, len(api.flavors))

    def test_the_document_tells_the_same(self):
        api = self.serve()
        api.failures['POST', 'os-extra_specs'] = 400
        document = commands.read_document(self, self.run_command(
            'apply', self.host(), '--apply', '--format', 'json'), status=1)
        self.assertEqual({'create'}, {step['action']
                                      for step in document['steps']})
        for step in document['steps']:
            self.assertFalse(step['done'])
            self.assertIn('not today', step['error'])

    def test_private_flavors(self):
        api = self.serve()
        profile = self.write('p.yaml', 'base: default\nprojects: []\n')
        self.run_command('apply', self.host(), '--apply', '--profile', profile)
        self.assertEqual({False}, {
            flavor['os-flavor-access:is_public']
            for flavor in api.flavors.values()})

    def test_a_cloud_out_of_reach_is_one_line(self):
        path = self.host()
        self.assert_bad_input('OS_CLOUD', 'apply', path)
        self.write('clouds.yaml', compute_api.CLOUDS.format(
            endpoint='http://127.0.0.1:1/v2.1'))
        self.assert_bad_input('cannot be used', 'apply', path, '--apply',
                              '--os-cloud', 'test')


class LintTest(CommandTest):
    GOOD = json.dumps({
        'name': 'm1', 'ram': 1024, 'vcpus': 8, 'properties': {
            'hw:cpu_policy': 'dedicated', 'hw:mem_page_size': '2048'}})

    def test_a_plan_has_no_errors(self):
        _, text, _ = self.run_command('plan', self.host(), '--format', 'json')
        status, out, _ = self.run_command('lint', self.write('p.json', text))
        self.assertEqual((0, '4 flavors: 0 errors, 0 warnings, 0 notes.\n'),
                         (status, out))

    def test_an_error_is_status_1_and_a_warning_is_not(self):
        good = self.write('good.json', self.GOOD)
        bad = self.write('bad.json', self.GOOD.replace('2048', 'huge'))
        poor = self.write('poor.json', self.GOOD.replace('8,', '7,'))
        self.assertEqual(0, self.run_command('lint', good)[0])
        self.assertEqual(0, self.run_command('lint', poor)[0])
        status, out, _ = self.run_command('lint', good, bad, poor)
        self.assertEqual(1, status)
        self.assertIn('error: bad-value: hw:mem_page_size: ', out)
        self.assertIn('3 flavors: 1 error, 1 warning, 0 notes.', out)

    def test_hosts_are_held_against_flavors(self):
        path = self.write('f.json', self.GOOD.replace('8,', '6,'))
        status, out, _ = self.run_command('lint', path, '--host', self.host(),
                                          '--host', self.host('b', cores=12))
        self.assertEqual(0, status)
        self.assertIn('strands-cpus: vcpus: host: the 4 instances that fit '
                      'leave 8 of 32', out)
        self.assertNotIn('b: the', out)

    def test_a_flavor_is_checked_against_the_classes_that_take_it(self):
        small, large = self.host(cores=2), self.host('b')
        fleet = self.write('fleet.yaml', json.dumps({
            'schema_version': 1, 'classes': {
                'small': {'hosts': [small]}, 'large': {'hosts': [large]}}}))
        path = self.write('f.json', self.GOOD)
        self.assertEqual(1, self.run_command('lint', path, '--host',
                                             small)[0])
        self.assertEqual(0, self.run_command('lint', path, '--host', small,
                                             '--host', large)[0])
        self.assertEqual(0, commands.run('flavor', 'lint', path, '--fleet',
                                         fleet)[0])
        path = self.write('f.json', self.GOOD.replace('8,', '800,'))
        status, out, _ = commands.run('flavor', 'lint', path, '--fleet',
                                      fleet)
        self.assertEqual((1, 2), (status, out.count('does-not-fit')))

    def test_the_document(self):
        path = self.write('f.json', self.GOOD.replace('2048', 'huge'))
        document = commands.read_document(self, self.run_command(
            'lint', path, '--format', 'json'), status=1)
        self.assertEqual(['m1'], document['flavors'])
        self.assertEqual(
            {'code', 'severity', 'flavor', 'key', 'message', 'advice',
             'hosts'},
            set(document['findings'][0]))
        self.assertEqual('error', document['findings'][0]['severity'])
        self.assertEqual({'error': 1, 'warning': 0, 'note': 0},
                         document['counts'])

    def test_flavors_of_the_cloud(self):
        api = self.serve()
        flavor = api.add('m1', 8, 1024, extra_specs={
            'hw:cpu_policy': 'dedicated', 'hw:mem_page_size': 'huge'})
        for name in ('m1', flavor['id']):
            status, out, _ = self.run_command('lint', name)
            self.assertEqual(1, status)
            self.assertIn('bad-value', out)
        self.assert_bad_input('neither a file nor a flavor', 'lint', 'm2')

    def test_what_looks_like_a_file_is_never_asked_of_a_cloud(self):
        for name in ('none.json', 'none.yaml', './none'):
            self.assert_bad_input(f'{name}.*cannot be read', 'lint', name)

    def test_files_that_are_no_flavors_are_one_line(self):
        for text in ('', '{', '[]', '3', 'text', '{"a": [{}]}', '\0',
                     '[' * 100000, '{"flavors": [[]]}'):
            self.assert_bad_input('f.json', 'lint', self.write('f.json', text))

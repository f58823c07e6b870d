# SPDX-License-Identifier: Apache-2.0

"""The DevStack plugin, phase by phase, with stand-ins for DevStack."""

import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import unittest

import yaml

from hpcvirt.tempest_plugin import config
from tests import shown
from tests.builders import folders

HERE = pathlib.Path(__file__).resolve().parent
PLUGIN = HERE.parents[2] / 'devstack'
HARNESS = HERE.parents[2] / 'testing' / 'devstack.sh'

ALL = 'n-api,n-sch,n-cpu,tempest'
BOTH_FILTERS = ['nova.scheduler.filters.all_filters',
                'hpcvirt.nova.filters.all_filters']
BOTH_WEIGHERS = ('nova.scheduler.weights.all_weighers,'
                 'hpcvirt.nova.weights.all_weighers')

#: Two packages of one cell with 16 cores, no SMT.
MACHINE = PLUGIN.parent / 'etc' / 'hpcvirt' / 'topologies' / 'hs06-2s-16c.json'

#: Two packages of one cell with 16 cores, with SMT.
SMT_MACHINE = MACHINE.with_name('intel-2s-16c-smt.json')

# A stand-in for hpcvirt that reads neither this machine nor a cloud.
COMMAND = f"""#!/bin/sh
echo "hpcvirt $*" >>"$CALLS"
case "$1 $2" in
"host show") cat "$MACHINE" ;;
"flavor plan") exec {sys.executable} -c \
    'from hpcvirt.cmd import main; raise SystemExit(main.main())' "$@" ;;
esac
"""


class PluginTest(unittest.TestCase):
    def setUp(self):
        self.work = folders.make(self)
        (self.work / 'bin').mkdir()
        command = self.work / 'bin' / 'hpcvirt'
        command.write_text(COMMAND)
        command.chmod(0o755)
        self.machine = self.work / 'machine.json'
        self.machine.write_text(MACHINE.read_text())
        self.sysfs = self.work / 'cpu'
        for cpu in range(32):
            topology = self.sysfs / f'cpu{cpu}' / 'topology'
            topology.mkdir(parents=True)
            (topology / 'thread_siblings_list').write_text(f'{cpu}\n')
        (self.sysfs / 'online').write_text('0-31\n')
        self.knob = self.work / 'nr_hugepages'
        self.knob.write_text('7\n')
        self.nova = self.work / 'nova.conf'
        self.calls = self.work / 'calls'

    def run_phases(self, *phases, fails=False, services=ALL, **variables):
        done = subprocess.run(
            ['bash', *variables.pop('flags', ()), str(HARNESS),
             'settings', *phases],
            env={'PATH': os.environ['PATH'], 'WORK': str(self.work),
                 'CALLS': str(self.calls), 'PLUGIN': str(PLUGIN),
                 'MACHINE': str(self.machine),
                 'PYTHON': sys.executable,
                 'HPCVIRT_NR_HUGEPAGES': str(self.knob),
                 'HPCVIRT_SYSFS_CPU': str(self.sysfs),
                 'ENABLED_SERVICES': services,
                 'HARNESS_DEVSTACK': os.environ.get('HARNESS_DEVSTACK', ''),
                 **variables},
            capture_output=True, text=True, check=False)
        self.assertEqual(fails, done.returncode != 0,
                         done.stdout + done.stderr)
        return done

    def printed(self, done, name):
        return dict(line.split('=', 1) for line in
                    done.stdout.splitlines() if '=' in line)[name]

    def values(self, path, option):
        found = []
        for line in path.read_text().splitlines():
            name, _, value = line.partition('=')
            if name.strip() == option:
                found.append(value.strip())
        return found

    def test_filter_is_added_to_devstacks_filters_once(self):
        done = self.run_phases('settings')
        self.assertEqual('ComputeFilter,SameHostFilter,HPCTopologyFilter,'
                         'PciPassthroughFilter',
                         self.printed(done, 'NOVA_FILTERS'))

    def test_filter_can_be_left_out(self):
        done = self.run_phases('stack/post-config', HPCVIRT_FILTER='no',
                               HPCVIRT_WEIGHERS='False')
        self.assertNotIn('HPCTopologyFilter',
                         self.printed(done, 'NOVA_FILTERS'))
        self.assertNotIn('hpcvirt', self.nova.read_text())

    def test_tempest_plugin_is_added_where_there_is_none(self):
        for before in ('', '0'):
            with self.subTest(before=before):
                done = self.run_phases(TEMPEST_PLUGINS=before)
                self.assertEqual(str(PLUGIN.parent),
                                 self.printed(done, 'TEMPEST_PLUGINS'))

    def test_tempest_plugin_is_added_to_others_once(self):
        done = self.run_phases('settings', TEMPEST_PLUGINS='/opt/other')
        self.assertEqual(f'/opt/other {PLUGIN.parent}',
                         self.printed(done, 'TEMPEST_PLUGINS'))

    def test_scheduler_keeps_novas_own_classes(self):
        self.run_phases('stack/post-config')
        self.assertEqual(BOTH_FILTERS,
                         self.values(self.nova, 'available_filters'))
        self.assertEqual([BOTH_WEIGHERS],
                         self.values(self.nova, 'weight_classes'))

    def test_scheduler_keeps_classes_of_others(self):
        self.nova.write_text(
            '[filter_scheduler]\n'
            'available_filters = nova.scheduler.filters.all_filters\n'
            'available_filters = other.filters.Filter\n'
            'weight_classes = other.Weigher\n')
        self.run_phases('stack/post-config')
        self.assertEqual(
            ['nova.scheduler.filters.all_filters', 'other.filters.Filter',
             'hpcvirt.nova.filters.all_filters'],
            self.values(self.nova, 'available_filters'))
        self.assertEqual(
            ['other.Weigher,hpcvirt.nova.weights.all_weighers'],
            self.values(self.nova, 'weight_classes'))

    def test_second_run_changes_nothing(self):
        variables = {'HPCVIRT_CPU_DEDICATED_SET': '4-7'}
        self.run_phases('stack/post-config', **variables)
        before = self.nova.read_text()
        self.run_phases('stack/post-config', 'stack/post-config', **variables)
        self.assertEqual(before, self.nova.read_text())

    def test_plugin_waits_for_neutrons_part_of_nova_conf(self):
        self.run_phases('stack/post-config')
        self.assertEqual('async_wait configure_neutron_nova',
                         self.calls.read_text().splitlines()[0])

    def test_no_cpus_are_dedicated_by_default(self):
        self.run_phases('stack/post-config')
        self.assertEqual([], self.values(self.nova, 'cpu_dedicated_set'))

    def test_dedicated_cpus_are_those_of_the_variable(self):
        self.run_phases('stack/post-config', HPCVIRT_CPU_DEDICATED_SET='4-7')
        self.assertEqual(['4-7'], self.values(self.nova, 'cpu_dedicated_set'))
        self.assertEqual([], self.values(self.nova, 'cpu_shared_set'))

    def test_planned_sets_leave_cores_to_the_host(self):
        self.run_phases('stack/pre-install', 'stack/post-config',
                        HPCVIRT_CPU_DEDICATED_SET='plan',
                        HPCVIRT_CPU_SHARED_SET='plan')
        self.assertEqual(['2-31'], self.values(self.nova, 'cpu_dedicated_set'))
        self.assertEqual(['0-1'], self.values(self.nova, 'cpu_shared_set'))

    def test_a_profile_without_shared_cpus_cannot_plan_them(self):
        done = self.run_phases(
            'stack/pre-install', 'stack/post-config', fails=True,
            HPCVIRT_PROFILE='dense', HPCVIRT_CPU_DEDICATED_SET='plan',
            HPCVIRT_CPU_SHARED_SET='plan')
        self.assertIn('HPCVIRT_CPU_SHARED_SET=plan: the profile dense',
                      done.stdout + done.stderr)

    def test_bad_values_stop_the_stack_before_anything_is_installed(self):
        own = self.work / 'own.yaml'
        own.write_text('name_prefx: own\n')
        (self.sysfs / 'cpu2/topology/thread_siblings_list').write_text('2,18')
        for values, words in (
                ({'HUGEPAGES_2M': '2G'}, 'HUGEPAGES_2M is not a number'),
                ({'HUGEPAGES_2M': 'many'}, 'HUGEPAGES_2M is not a number'),
                ({'HUGEPAGES_2M': '-1'}, 'HUGEPAGES_2M is not a number'),
                ({'CPU_SHARED_SET': '40'},
                 'CPU_SHARED_SET names CPU 40; this node has 0-31'),
                ({'CPU_SHARED_SET': 'abc'}, "CPU_SHARED_SET: 'abc' is not"),
                ({'CPU_SHARED_SET': '^3'}, 'CPU_SHARED_SET names no CPU'),
                ({'CPU_DEDICATED_SET': '4-', 'CPU_SHARED_SET': '0'},
                 "CPU_DEDICATED_SET: '4-' is not"),
                ({'CPU_DEDICATED_SET': '4-99'},
                 'CPU_DEDICATED_SET names CPU 32-99;'),
                ({'CPU_DEDICATED_SET': '4-7', 'CPU_SHARED_SET': '0-4'},
                 'CPU_SHARED_SET and HPCVIRT_CPU_DEDICATED_SET both name'),
                ({'CPU_DEDICATED_SET': '2-7'},
                 'CPU_DEDICATED_SET names CPU 2 but not its SMT sibling 18'),
                ({'CPU_SHARED_SET': 'plan'}, 'CPU_SHARED_SET does not go'),
                ({'CPU_SHARED_SET': '0', 'CPU_DEDICATED_SET': 'plan'},
                 'CPU_SHARED_SET does not go with'),
                ({'PROFILE': '/no/such.yaml'},
                 'PROFILE: /no/such.yaml cannot be read'),
                ({'PROFILE': str(own)}, f'PROFILE: {own}')):
            with self.subTest(values):
                done = self.run_phases('stack/pre-install', fails=True, **{
                    f'HPCVIRT_{name}': text for name, text in values.items()})
                self.assertIn(f'HPCVIRT_{words}', done.stdout + done.stderr)
                self.assertEqual(('7\n', ''), (
                    self.knob.read_text(), self.nova.read_text()))

    def test_good_values_pass(self):
        for values in (
                {'HUGEPAGES_2M': '0', 'CPU_SHARED_SET': '0-1'},
                {'CPU_DEDICATED_SET': '4-7,^5', 'CPU_SHARED_SET': '0-3',
                 'PROFILE': 'dense'},
                {'CPU_DEDICATED_SET': 'plan', 'HUGEPAGES_2M': '64'}):
            with self.subTest(values):
                self.run_phases('stack/pre-install', **{
                    f'HPCVIRT_{name}': text for name, text in values.items()})

    def test_warnings_of_the_plan_are_printed_where_they_are_true(self):
        for cpus, expected in (('plan', True), ('4-7', False)):
            done = self.run_phases('stack/post-config',
                                   HPCVIRT_CPU_DEDICATED_SET=cpus)
            self.assertEqual(expected, 'hpcvirt: warning: all cores are '
                             'dedicated' in done.stdout, done.stdout)

    def test_compute_node_gets_no_scheduler_options(self):
        self.run_phases('stack/post-config', services='n-cpu',
                        HPCVIRT_CPU_DEDICATED_SET='plan')
        self.assertEqual(['0-31'], self.values(self.nova, 'cpu_dedicated_set'))
        self.assertNotIn('filter_scheduler', self.nova.read_text())

    def test_controller_node_gets_no_compute_options(self):
        self.run_phases('stack/pre-install', 'stack/post-config',
                        services='n-api,n-sch', HPCVIRT_HUGEPAGES_2M='64',
                        HPCVIRT_CPU_DEDICATED_SET='4-7')
        self.assertEqual([], self.values(self.nova, 'cpu_dedicated_set'))
        self.assertEqual('7\n', self.knob.read_text())

    def test_pages_are_reserved_and_released(self):
        variables = {'HPCVIRT_HUGEPAGES_2M': '64'}
        self.run_phases('stack/pre-install', 'stack/post-config', **variables)
        self.assertEqual('64\n', self.knob.read_text())
        self.assertIn('restart_service libvirtd', self.calls.read_text())
        # Stacking again must not record these as the previous number.
        self.run_phases('stack/pre-install', **variables)
        self.run_phases('unstack/', **variables)
        self.assertEqual('7\n', self.knob.read_text())

    def test_too_few_pages_stop_the_stack(self):
        done = self.run_phases(
            'stack/pre-install', fails=True, HPCVIRT_HUGEPAGES_2M='64',
            HARNESS_FEW_PAGES='yes')
        self.assertIn('HPCVIRT_HUGEPAGES_2M: the kernel reserved 1 of 64',
                      done.stdout + done.stderr)

    def test_flavors_are_created_on_a_node_with_api_and_compute(self):
        for services, expected in ((ALL, True), ('n-api', False),
                                   ('n-cpu', False)):
            with self.subTest(services=services):
                self.calls.unlink(missing_ok=True)
                self.run_phases('stack/extra', services=services)
                self.assertEqual(expected, 'hpcvirt flavor apply --apply'
                                 in self.calls.read_text())

    def test_tempest_options_describe_the_cloud(self):
        self.run_phases('stack/post-config', 'stack/test-config',
                        HPCVIRT_CPU_DEDICATED_SET='4-7',
                        HPCVIRT_HUGEPAGES_2M='64')
        tempest = self.work / 'tempest.conf'
        plan = str(self.work / 'data' / 'hpcvirt' / 'plan.json')
        self.assertEqual([plan], self.values(tempest, 'plan_file'))
        self.assertEqual([plan], self.values(tempest, 'guest_plan_file'))
        self.assertEqual(['qemu:///system'],
                         self.values(tempest, 'libvirt_uri'))
        self.assertEqual([], self.values(tempest, 'guest_network'))

    def test_guest_network_is_the_private_network(self):
        self.run_phases('stack/post-config', 'stack/test-config',
                        services=ALL + ',q-svc', PRIVATE_NETWORK_NAME='mine')
        self.assertEqual(['mine'], self.values(self.work / 'tempest.conf',
                                               'guest_network'))

    def test_guest_network_is_not_set_if_devstack_creates_none(self):
        self.run_phases('stack/post-config', 'stack/test-config',
                        services=ALL + ',q-svc',
                        NEUTRON_CREATE_INITIAL_NETWORKS='False')
        self.assertEqual([], self.values(self.work / 'tempest.conf',
                                         'guest_network'))

    def test_nothing_is_measured_by_default(self):
        self.run_phases('stack/install', 'stack/extra', 'stack/test-config')
        self.assertNotIn('install_package', self.calls.read_text())
        self.assertNotIn('benchmark', (self.work / 'tempest.conf').read_text())

    def clone(self):
        """Make a clone whose scripts build and upload no image."""
        scripts = self.work / 'clone' / 'contrib' / 'guest_image'
        scripts.mkdir(parents=True)
        (scripts / 'packages').write_text('# a comment\nhpcc\nnumactl\n')
        (scripts / 'build').write_text(
            '#!/bin/sh\necho "build $PYTHON $*" >>"$CALLS"\n')
        (scripts / 'build').chmod(0o755)
        (scripts / 'upload.py').write_text(
            'import os, sys\nprint("id-of", *sys.argv[1:], '
            'os.environ["OS_CLOUD"], sep=":")\n')
        (self.work / 'bin' / 'python3').symlink_to(sys.executable)
        (self.work / 'clone' / 'devstack').symlink_to(PLUGIN)
        return str(scripts.parents[1])

    def test_benchmarks_are_installed_built_and_configured(self):
        clone = self.clone()
        done = self.run_phases(
            'stack/install', 'stack/extra', 'stack/test-config',
            services='n-api,tempest', HPCVIRT_DIR=clone,
            HPCVIRT_BENCHMARKS='hpcc,npb-cg')
        guest = self.work / 'data' / 'hpcvirt' / 'guest'
        self.assertEqual(
            [f'setup_develop {clone}', 'install_package hpcc numactl',
             f'build {self.work}/bin/python3 {guest}'],
            self.calls.read_text().splitlines())
        self.assertEqual(f'{clone}[bench]',
                         self.printed(done, 'TEMPEST_PLUGINS'))
        tempest = self.work / 'tempest.conf'
        image = f'id-of:benchmarks:{guest}:devstack-admin'
        for option, value in (
                ('benchmarks', 'hpcc,npb-cg'), ('native', 'local'),
                ('benchmark_image_ref', image), ('guest_image_ref', image),
                ('image_ssh_user', 'root')):
            self.assertEqual([value], self.values(tempest, option))

    def test_node_without_tempest_builds_no_image(self):
        self.run_phases('stack/extra', 'stack/test-config', services='n-cpu',
                        HPCVIRT_DIR=self.clone(), HPCVIRT_BENCHMARKS='hpcc')
        self.assertEqual('', self.calls.read_text())

    def test_failed_build_of_the_image_stops_the_stack(self):
        clone = self.clone()
        build = pathlib.Path(clone, 'contrib', 'guest_image', 'build')
        build.write_text('#!/bin/sh\nexit 2\n')
        self.run_phases('stack/extra', fails=True, services='tempest',
                        HPCVIRT_DIR=clone, HPCVIRT_BENCHMARKS='hpcc')

    def test_a_job_measures_regularly_and_on_demand(self):
        items = yaml.safe_load((PLUGIN.parent / '.zuul.yaml').read_text())
        jobs = {item['job']['name']: item['job']['vars'] for item in items
                if 'job' in item}
        (name,) = (name for name, given in jobs.items()
                   if 'HPCVIRT_BENCHMARKS' in given.get(
                       'devstack_localrc', ()))
        (project,) = (item['project'] for item in items if 'project' in item)
        for pipeline in ('experimental', 'periodic'):
            self.assertIn(name, project[pipeline]['jobs'])
        test = ('hpcvirt.tempest_plugin.tests.scenario.test_benchmarks.'
                'CompareTest')
        self.assertRegex(test, jobs[name]['tempest_test_regex'])
        given = jobs[name]['devstack_local_conf']['test-config'][
            '$TEMPEST_CONFIG']['hpcvirt']
        self.assertLessEqual(set(given), {
            option.name for option in config.OPTIONS})

    def plan(self):
        return json.loads(
            (self.work / 'data' / 'hpcvirt' / 'plan.json').read_text())

    def machine_has(self, pages):
        document = json.loads(MACHINE.read_text())
        for cell in document['cells']:
            cell['pages']['2048'] = pages // len(document['cells'])
            cell['pages']['4'] -= 512 * cell['pages']['2048']
        self.machine.write_text(json.dumps(document))

    def test_plan_divides_the_whole_host_by_default(self):
        self.run_phases('stack/post-config')
        (config,) = self.plan()['host_config'].values()
        self.assertEqual('0-31', config['cpu_dedicated_set'])

    def test_plan_divides_the_cpus_and_pages_of_the_variables(self):
        self.machine_has(2048)
        self.run_phases('stack/post-config',
                        HPCVIRT_CPU_DEDICATED_SET='4-7,16-19',
                        HPCVIRT_HUGEPAGES_2M='2048')
        plan = self.plan()
        (config,) = plan['host_config'].values()
        self.assertEqual('4-7,16-19', config['cpu_dedicated_set'])
        self.assertEqual({'0': {'2048': 1024}, '1': {'2048': 1024}},
                         {cell: {'2048': pages['2048']} for cell, pages
                          in config['pages'].items()})
        largest = max(plan['flavors'], key=lambda flavor: flavor['vcpus'])
        self.assertEqual((8, 4096), (largest['vcpus'], largest['ram_mib']))

    def test_plan_without_huge_pages_leaves_half_of_the_memory(self):
        self.run_phases('stack/post-config', HPCVIRT_CPU_DEDICATED_SET='4-7')
        flavors = self.plan()['flavors']
        self.assertEqual(4, max(flavor['vcpus'] for flavor in flavors))
        self.assertEqual({'4'}, {
            flavor['extra_specs']['hw:mem_page_size']
            for flavor in flavors})
        memory = json.loads(MACHINE.read_text())['cells'][0]['memory_mib']
        for flavor in flavors:
            cells = int(flavor['extra_specs']['hw:numa_nodes'])
            self.assertLessEqual(flavor['ram_mib'], cells * memory // 2)

    def test_cpus_that_split_a_core_stop_the_stack(self):
        self.machine.write_text(SMT_MACHINE.read_text())
        done = self.run_phases('stack/post-config', fails=True,
                               HPCVIRT_CPU_DEDICATED_SET='4-7')
        self.assertIn('not its SMT sibling', done.stdout + done.stderr)

    def test_profile_of_the_user_is_used(self):
        profile = self.work / 'own.yaml'
        profile.write_text('name_prefix: own\n')
        self.run_phases('stack/post-config', HPCVIRT_PROFILE=str(profile))
        self.assertTrue(all(flavor['name'].startswith('own.')
                            for flavor in self.plan()['flavors']))

    def test_twins_share_plan_and_topology(self):
        twins = f'{socket.gethostname()},other'
        self.run_phases('stack/post-config', 'stack/extra',
                        'stack/test-config', HPCVIRT_TWIN_HOSTS=twins,
                        HPCVIRT_CPU_DEDICATED_SET='4-7')
        tempest = self.work / 'tempest.conf'
        for option in ('hosts', 'twin_hosts'):
            self.assertEqual([twins], self.values(tempest, option))
        self.assertEqual(set(twins.split(',')),
                         set(self.plan()['host_config']))
        kept = self.work / 'data' / 'hpcvirt' / 'topologies'
        self.assertEqual({f'{name}.json' for name in twins.split(',')},
                         {path.name for path in kept.iterdir()})

    def test_tempest_hosts_are_not_set_without_dedicated_cpus(self):
        self.run_phases('stack/post-config', 'stack/test-config')
        tempest = self.work / 'tempest.conf'
        self.assertEqual([], self.values(tempest, 'hosts'))
        self.assertEqual([], self.values(tempest, 'guest_plan_file'))

    def test_variables_are_those_of_the_page(self):
        told, settings, jobs = (
            set(re.findall(pattern, path.read_text(), re.MULTILINE))
            for path, pattern in (
                (PLUGIN / 'README.rst', r'^   \* - ``(HPCVIRT_\w+)``'),
                (PLUGIN / 'settings', r'^(HPCVIRT_\w+)='),
                (PLUGIN.parent / '.zuul.yaml', r'^ +(HPCVIRT_\w+):')))
        self.assertEqual(settings - {'HPCVIRT_DIR'}, told)
        self.assertLessEqual(jobs, told)

    def test_local_conf_of_the_page_does_what_the_page_says(self):
        variables = {}
        for block in shown.configurations():
            if block.file == 'local.conf':
                self.assertIn('[[local|localrc]]', block.text)
                variables.update(re.findall(r'^(HPCVIRT_\w+)=(.*)$',
                                            block.text, re.MULTILINE))
        self.machine_has(2 * int(variables['HPCVIRT_HUGEPAGES_2M']))
        self.run_phases('stack/pre-install', 'stack/post-config',
                        'stack/extra', 'stack/test-config',
                        HPCVIRT_DIR=self.clone(), **variables)
        for option in ('cpu_dedicated_set', 'cpu_shared_set'):
            self.assertEqual([variables[f'HPCVIRT_{option.upper()}']],
                             self.values(self.nova, option))
        self.assertEqual(variables['HPCVIRT_HUGEPAGES_2M'],
                         self.knob.read_text().strip())

    def test_clean_removes_what_was_written(self):
        self.run_phases('stack/post-config')
        data = self.work / 'data' / 'hpcvirt'
        self.assertTrue(data.exists())
        self.run_phases('unstack/', 'clean/')
        self.assertFalse(data.exists())

    def test_tracing_is_left_as_it_was(self):
        for flags, expected in (((), 'off'), (('-x',), 'on')):
            done = self.run_phases('stack/post-config', 'unstack/',
                                   flags=flags)
            self.assertEqual(expected, self.printed(done, 'xtrace'))

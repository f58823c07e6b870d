# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt.deployment import formats
from hpcvirt.deployment import site_variables
from hpcvirt.deployment import steps
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from tests.builders import hosts

NODE_SET = """\
# Ours.
---
kind: OpenStackDataPlaneNodeSet
spec:
  nodes:
    edpm-compute-0:
      hostName: {host}
  nodeTemplate:
    ansible:
      ansibleVars:
        edpm_kernel_args: "console=ttyS0 hugepages=64"
        edpm_kernel_hugepages:
          1048576:
            count: 64

        edpm_tuned_profile: "cpu-partitioning"
        edpm_kernel_sysctl_extra_settings:
          vm.swappiness: {{value: 10}}
        timesync_ntp_servers:
        - hostname: pool.ntp.org
---
kind: ConfigMap
data:
  25-nova-extra.conf: |
    [compute]
    cpu_dedicated_set = 2-9
"""
COUNTS = 'only one of the values counts'


def plan(base=profiles.DEFAULT):
    return planner.plan([hosts.build(name='n1'), hosts.build(name='n2')],
                        base)


def find(deployer, site, base=profiles.DEFAULT):
    changes = steps.compare(formats.FORMATS[deployer](plan(base)), site)
    return list(dict.fromkeys(site_variables.find(
        [change.file for change in changes],
        {path: text for path, text in site.items()
         if not path.startswith('config/nova/')}, ['n1', 'n2'])))


class NodeSetTest(unittest.TestCase):
    """The hosts keep the CPUs 0 and 16."""

    def test_each_variable_and_option_is_named(self):
        self.assertEqual([
            ('compute.yaml sets edpm_kernel_args too (console=ttyS0 '
             f'hugepages=64), and {COUNTS}'),
            ('compute.yaml sets edpm_kernel_hugepages too '
             f"({{1048576: {{'count': 64}}}}), and {COUNTS}"),
            ('compute.yaml sets edpm_kernel_sysctl_extra_settings too '
             f"({{'vm.swappiness': {{'value': 10}}}}), and {COUNTS}"),
            ('compute.yaml: 25-nova-extra.conf sets [compute]cpu_dedicated_set'
             ' too; set it in one place, because either value, or both, may '
             'count')], find('edpm', {
                'compute.yaml': NODE_SET.format(host='n2.example.org')}))

    def test_node_sets_of_other_hosts_do_not_count(self):
        text = NODE_SET.format(host='n22').partition('---\nkind: Conf')[0]
        self.assertEqual([], find('edpm', {'compute.yaml': text}))

    def test_what_the_plan_wants_does_not_count(self):
        for base in profiles.BUILT_IN.values():
            site = {file.path: file.text.partition('\n---')[2].partition(
                '\n---')[0] for file in formats.FORMATS['edpm'](plan(base))}
            self.assertEqual([], find('edpm', site, base))
        self.assertEqual([
            f'a.yml sets edpm_kernel_enable_ksm too (True), and {COUNTS}'],
            find('edpm', {'a.yml': 'edpm_kernel_enable_ksm: true\n'}))
        self.assertEqual([], find('edpm', {
            'a.yml': '# edpm_kernel_hugepages: 1\nedpm_kernel_hugepages:\n',
            'b.yml': 'edpm_kernel_hugepages: {}\n'
                     'edpm_kernel_enable_ksm: false\n'}))


class GroupVariablesTest(unittest.TestCase):
    def test_variables_that_ansible_takes_instead_are_named(self):
        text = ('---\nkolla_base_distro: debian\n'
                'default_container_dimensions:\n  cpuset_cpus: "0-3"\n'
                'x: !vault |\n  abc\n')
        for deployer, path in (('kolla', 'globals.yml'),
                               ('kolla', 'inventory/host_vars/n1'),
                               ('kayobe', 'kolla/globals.yml')):
            self.assertEqual([(
                f'{path} sets default_container_dimensions too '
                f"({{'cpuset_cpus': '0-3'}}), and {COUNTS}")],
                find(deployer, {path: text}))
        self.assertEqual(1, len(find('kolla', {
            'globals.yml': 'default_container_dimensions: {}\n'})))

    def test_a_file_that_is_not_yaml_is_named(self):
        (found,) = find('kolla', {'globals.yml': 'a: {{ b }}\n'})
        self.assertRegex(
            found, '(?s)^globals.yml is not YAML.*settings may conflict$')

    def test_kayobe_counts_a_list_of_sources_as_a_whole(self):
        (found,) = find('kayobe', {'kolla.yml': (
            'kolla_sources:\n  nova-base:\n    type: git\n')})
        self.assertTrue(found.startswith('kolla.yml sets kolla_sources'))
        (found,) = find('kayobe', {'compute.yml': (
            'compute_tuned_active_builtin_profile: virtual-host\n')})
        self.assertIn('(virtual-host)', found)
        # As kayobe ships them.
        self.assertEqual([], find('kayobe', {
            'kolla.yml': '---\n#kolla_sources:\n', 'compute.yml':
            '#compute_tuned_active_builtin_profile:\n'
            'compute_default_sysctl_parameters: {}\n'}))


class SharedFileTest(unittest.TestCase):
    PATH = 'config/nova/n1/nova.conf'

    def test_lines_of_the_site_stay_and_count(self):
        line = 'sets [compute]cpu_dedicated_set too'
        site = '[libvirt]\ncpu_mode = none\n[compute]\ncpu_dedicated_set=2\n'
        for before in (site, next(
                file.text for file in formats.FORMATS['kolla'](
                    plan(profiles.DENSE)) if file.path == self.PATH) + site):
            (change,) = [change for change in steps.compare(
                formats.FORMATS['kolla'](plan()), {self.PATH: before})
                         if change.file.path == self.PATH]
            self.assertTrue(change.file.text.endswith(f'sections.\n{site}'))
            self.assertEqual(steps.FileStatus.CHANGED, change.change)
            self.assertIn('cpu_dedicated_set = 1-15', change.file.text)
            (found,) = find('kolla', {self.PATH: before})
            self.assertIn(f'{self.PATH} {line}', found)
        (found,) = find('kolla', {'config/nova.conf': site})
        self.assertIn(f'config/nova.conf {line}', found)

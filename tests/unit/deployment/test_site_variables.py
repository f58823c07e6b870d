# SPDX-License-Identifier: Apache-2.0

import unittest

import yaml

from hpcvirt.deployment import edpm
from hpcvirt.deployment import formats
from hpcvirt.deployment import site_variables
from hpcvirt.deployment import variables
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
        # Parameters.
        edpm_kernel_args: "{args}"
        edpm_kernel_hugepages:
          1048576:
            count: 64

        edpm_tuned_profile: "cpu-partitioning"
        edpm_tuned_isolated_cores: "2-31"
        edpm_kernel_sysctl_extra_settings:
          vm.swappiness: {{value: 10}}
          net.core.somaxconn:
            value: 4096
        timesync_ntp_servers:
        - hostname: pool.ntp.org
"""


def plan(base=profiles.DEFAULT):
    return planner.plan([hosts.build(name='n1'), hosts.build(name='n2')],
                        base)


def find(deployer, site, base=profiles.DEFAULT):
    files = formats.FORMATS[deployer](plan(base))
    return list(site_variables.find_conflicts(deployer, plan(base), files,
                                              site))


class NodeSetTest(unittest.TestCase):
    """The hosts keep the CPUs 0 and 16."""

    ARGS = 'console=ttyS0 iommu=pt hugepagesz=1G hugepages=64 nohz_full=2-31'

    def test_each_conflict_is_named_and_made_a_comment(self):
        text = NODE_SET.format(host='n2', args=self.ARGS)
        found = find('edpm', {'compute.yaml': text})
        self.assertEqual([
            'edpm_kernel_args: hugepagesz=1G',
            'edpm_kernel_args: hugepages=64',
            'edpm_kernel_args: nohz_full=2-31',
            "edpm_kernel_hugepages: {1048576: {'count': 64}}",
            'edpm_tuned_isolated_cores: 2-31',
            "edpm_kernel_sysctl_extra_settings: vm.swappiness {'value': 10}"],
            [conflict.found for conflict in found])
        after = found[-1].replaced.text
        self.assertEqual([], find('edpm', {'compute.yaml': after}))
        (node_set,) = yaml.safe_load_all(after)
        self.assertEqual(
            {'edpm_tuned_profile', 'timesync_ntp_servers'},
            set(node_set['spec']['nodeTemplate']['ansible']['ansibleVars']))
        self.assertEqual(text, after.replace('# hpcvirt: ', ''))

    def test_node_sets_of_other_hosts_do_not_conflict(self):
        self.assertEqual([], find('edpm', {'compute.yaml': NODE_SET.format(
            host='n22', args=self.ARGS)}))

    def test_what_the_plan_wants_does_not_conflict(self):
        for base in profiles.BUILT_IN.values():
            site = {file.path: file.text.partition('\n---')[2]
                    for file in formats.FORMATS['edpm'](plan(base))}
            self.assertEqual([], find('edpm', site, base))
        self.assertEqual(['edpm_kernel_enable_ksm: True'], [
            item.found for item in find('edpm', {
                'a.yml': 'edpm_kernel_enable_ksm: true\n'})])
        self.assertEqual([], find('edpm', {
            'a.yml': '# edpm_kernel_hugepages: 1\nedpm_kernel_hugepages:\n'
            'edpm_kernel_hugepages: {}\nedpm_kernel_enable_ksm: false\n'}))

    def test_parameters_and_values_of_the_site_are_kept(self):
        site = {'a.yaml': NODE_SET.format(host='n1', args=self.ARGS)}
        (file,) = edpm.files(plan(), site)
        node_set = next(yaml.safe_load_all(file.text))
        found = node_set['spec']['nodeTemplate']['ansible']['ansibleVars']
        self.assertRegex(found['edpm_kernel_args'],
                         '^default_hugepagesz=2M .* console=ttyS0 iommu=pt$')
        self.assertNotRegex(found['edpm_kernel_args'], '1G|=64|nohz')
        settings = found['edpm_kernel_sysctl_extra_settings']
        self.assertEqual({'value': 4096}, settings['net.core.somaxconn'])
        self.assertEqual({'value': 1}, settings['vm.swappiness'])


class GroupVariablesTest(unittest.TestCase):
    def test_variables_that_ansible_takes_instead_are_named(self):
        text = ('---\nkolla_base_distro: debian\n'
                'default_container_dimensions:\n  cpuset_cpus: "0-3"\n'
                'x: !vault |\n  abc\n')
        for deployer, path in (('kolla', 'globals.yml'),
                               ('kayobe', 'kolla/globals.yml')):
            (found,) = find(deployer, {path: text})
            self.assertEqual(
                f"{path} sets default_container_dimensions: {{'cpuset_cpus': "
                "'0-3'}, and hpcvirt sets it too", found.words)
            self.assertEqual(1, len(find(deployer, {
                path: 'default_container_dimensions: {}\n'})))
            self.assertIn('debian\n# hpcvirt: default_container_dimensions:\n'
                          '# hpcvirt:   cpuset_cpus: "0-3"\nx: !vault',
                          found.replaced.text)

    def test_kayobe_counts_a_list_of_sources_as_a_whole(self):
        (found,) = find('kayobe', {'kolla.yml': (
            'kolla_sources:\n  nova-base:\n    type: git\n')})
        self.assertEqual('kolla.yml', found.path)
        (found,) = find('kayobe', {'compute.yml': (
            'compute_tuned_active_builtin_profile: virtual-host\n')})
        self.assertIn(': virtual-host', found.words)
        # As kayobe ships them.
        self.assertEqual([], find('kayobe', {
            'kolla.yml': '---\n#kolla_sources:\n', 'compute.yml':
            '#compute_tuned_active_builtin_profile:\n'
            'compute_default_sysctl_parameters: {}\n'}))


class ReadVariablesTest(unittest.TestCase):
    def test_lines_that_belong_to_a_variable(self):
        for text, value in (
                ('a: 1', 1), ('a: |\n  x\n\n  y\n', 'x\n\ny'),
                ('a:\n- 1\n- 2\n', [1, 2]), ('a:\n  # b\n  c: 2\n', {'c': 2}),
                ('"a": b', 'b'), ("a: {{ x }}'", "{{ x }}'")):
            (found,) = variables.read('f', f'b: 0\n{text}\n\n# c\nc: 0\n', 'a')
            self.assertEqual(value, found.value)
        for text in ('a:\n', 'a: ~\n', '#a: 1\n', 'b.a: 1\n', 'xa: 1\n'):
            self.assertEqual([], list(variables.read('f', text, 'a')))

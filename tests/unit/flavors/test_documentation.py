# SPDX-License-Identifier: Apache-2.0

"""The pages on flavors against what the program does."""

import csv
import dataclasses
import re
import textwrap
import unittest

import yaml

from hpcvirt.deployment import nova_conf
from hpcvirt.flavors import diff
from hpcvirt.flavors import plan_document
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile
from hpcvirt.flavors import table
from hpcvirt.flavors import warning
from hpcvirt.model import host as host_model
from tests import pages
from tests import shown
from tests.builders import hosts

ROOT = pages.ROOT
PLAN = pages.read('user/plan-flavors')
DEVICES = pages.read('admin/gpus')


def read_codes(name: str) -> frozenset[str]:
    """Read the codes in the first column of the table of a page."""
    with pages.path(f'reference/{name}').with_suffix('.csv').open() as file:
        return frozenset(code for row in csv.reader(file)
                         for code in re.findall('``([a-z-]+)``', row[0]))


class DocumentationTest(unittest.TestCase):
    def shown(self, chosen):
        plan = planner.plan([hosts.named('hs06-2s-16c')], chosen)
        return textwrap.indent(
            table.table(plan, [plan_document.plan_other(plan)],
                        80).rstrip('\n'), '   ')

    def test_plan_of_the_default_profile_is_shown(self):
        self.assertIn(self.shown(profile.DEFAULT), PLAN)

    def test_flavors_of_the_dense_profile_are_shown(self):
        self.assertIn(self.shown(profile.DENSE).split('\n\n   With')[0], PLAN)

    def test_flavors_with_whole_devices_are_shown(self):
        block, = (each for each in shown.configurations()
                  if each.page.name == 'gpus.rst'
                  and 'kind: whole' in each.text)
        host = hosts.named('xeon-2s-20c-smt-8gpu')
        plan = planner.plan([host], profile.build(
            yaml.safe_load(block.text), str(block)))
        rows = table.table(plan, (), 80).split('\n\nShare')[0]
        self.assertIn(textwrap.indent(rows, '   '), DEVICES)
        single = dataclasses.replace(plan.hosts[0].profile.device,
                                     per_instance=1)
        self.assertEqual(plan.flavors[:1], planner.plan(
            [host], dataclasses.replace(plan.hosts[0].profile,
                                        devices=(single,))).flavors)

    def test_flavors_with_sets_of_devices_are_shown(self):
        path = hosts.TOPOLOGIES.parent / 'profiles/gpu-nic.yaml'
        plan = planner.plan(
            [hosts.named('xeon-2s-20c-smt-8gpu')],
            profile.build(yaml.safe_load(path.read_text()), path.name))
        rows = table.table(plan, (), 80).split('\n\nShare')[0]
        self.assertIn(textwrap.indent(rows, '   '), DEVICES)

    def test_options_of_gpus_are_those_of_the_profiles_shown(self):
        blocks = [each for each in shown.configurations()
                  if each.page.name == 'gpus.rst'
                  and re.search('kind: |device_spec|mdev', each.text)]
        self.assertEqual(
            ['profile.yaml', 'nova.conf'] * 2, [each.file for each in blocks])
        for number, addresses in ((0, ['0000:07:00.0']),
                                  (2, ['0000:41:00.0', '0000:c1:00.0'])):
            content = yaml.safe_load(blocks[number].text)
            wanted = content['devices'][0]
            host = dataclasses.replace(hosts.build(), devices=tuple(
                host_model.Device(address, wanted['vendor_id'],
                                  wanted['product_id'], cell,
                                  16 if wanted['kind'] == 'whole' else 0)
                for cell, address in enumerate(addresses)))
            plan = planner.plan([host], profile.build(content, 'p.yaml'))
            found = list(nova_conf.compute(plan.hosts[0], plan))
            # A line that begins with spaces continues an option.
            text = re.sub(r'\n +', ' ', blocks[number + 1].text)
            for line in text.splitlines():
                self.assertIn(line, ['', *found])

    def test_every_warning_is_explained(self):
        self.assertEqual(set(warning.WarningCode),
                         read_codes('plan-warnings'))

    def test_every_finding_is_explained(self):
        explained = read_codes('lint-findings')
        for name in ('lint.py', 'lint_hosts.py'):
            source = (ROOT / 'hpcvirt/flavors' / name).read_text()
            codes = re.findall(r"'([a-z]+(?:-[a-z]+)*)',\s+"
                               r'(?:_ERROR|_WARNING|_NOTE|lint\.LintSeverity'
                               r"|vocabulary|'vcpus')",
                               source)
            self.assertGreater(len(codes), 3)
            for code in codes:
                self.assertIn(code, explained)

    def test_every_action_is_explained(self):
        page = pages.read('user/create-flavors')
        for action in diff.Action:
            self.assertRegex(page, rf'(?m)^``{action}``$')

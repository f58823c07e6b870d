# SPDX-License-Identifier: Apache-2.0

import dataclasses
import json
import unittest

from hpcvirt.model import wiring
from hpcvirt.topology import snapshot
from tests.builders import commands
from tests.builders import folders
from tests.builders import hosts

#: An H100 NVL: 94 GiB of memory in a BAR of 128 GiB, and two small BARs.
H100 = (16, 131072, 32)
PROFILE = """\
devices:
  - {kind: whole, alias: gpu, per_instance: share, vendor_id: '10de',
     product_id: '20b0'}
"""
CODE = 'address-width'


class AddressWidthTest(unittest.TestCase):
    """A host with four GPUs, and the flavors that are planned for it."""

    def setUp(self):
        super().setUp()
        self.folder = folders.make(self)
        (self.folder / 'profile.yaml').write_text(PROFILE)

    def write_host(self, bars, **fields):
        host = hosts.build(mib=384 * 1024, gpus={0: 2, 1: 2}, name='h')
        host = dataclasses.replace(host, **fields, wiring=wiring.Wiring(
            attachments=tuple(wiring.Attachment(device.address, bars_mib=bars)
                              for device in host.devices)))
        (self.folder / 'h.json').write_text(snapshot.dumps(host))

    def plan(self):
        return commands.read_document(self, commands.run(
            'flavor', 'plan', '--profile', self.folder / 'profile.yaml',
            self.folder / 'h.json', '-f', 'json'))

    def lint(self, flavors):
        """Return flavor -> what is found of the width on the host."""
        path = self.folder / 'flavors.json'
        path.write_text(json.dumps(flavors))
        ended = commands.run(
            'flavor', 'lint', path, '--host', self.folder / 'h.json',
            '--profile', self.folder / 'profile.yaml', '-f', 'json')
        return {item['flavor']: item
                for item in json.loads(ended.out)['findings']
                if item['code'] == CODE and item['hosts']}

    def check_same(self, number):
        plan = self.plan()
        said = {}
        for item in plan['warnings']:
            if item['code'] == CODE:
                for name in item['subjects']:
                    said[name] = item['message']
        flavors = [{key: row[key] for key in (
            'name', 'vcpus', 'ram_mib', 'disk_gib', 'extra_specs')}
            for row in plan['flavors']]
        found = self.lint(flavors)
        self.assertEqual(said.keys(), found.keys())
        self.assertEqual(number, len(found))
        for name, item in found.items():
            self.assertIn(f'{item["message"].removeprefix("h: ")}; in '
                          f'extra_specs of the profile, {item["advice"]}',
                          said[name])
            self.assertEqual((['h'], 'warning'),
                             (item['hosts'], item['severity']))
        return flavors

    def test_lint_says_what_the_plan_says(self):
        self.write_host(H100)
        self.check_same(1)

    def test_devices_with_small_bars_are_no_finding(self):
        self.write_host((16, 256))
        self.check_same(0)

    def test_a_flavor_with_the_width_is_no_finding(self):
        self.write_host(H100)
        *_, large = sorted(self.check_same(1), key=lambda each: each['vcpus'])
        large['extra_specs'].update({
            'hw:maxphysaddr_mode': 'emulate', 'hw:maxphysaddr_bits': '42'})
        self.assertEqual({}, self.lint([large]))
        large['extra_specs']['hw:maxphysaddr_bits'] = '40'
        (found,) = self.lint([large]).values()
        self.assertEqual('set hw:maxphysaddr_bits: 41', found['advice'])

    def test_arm_sets_no_width(self):
        self.write_host(H100, processor='Arm, implementer 0x41, part 0xd4')
        large = max(self.check_same(0), key=lambda each: each['vcpus'])
        large['extra_specs']['hw:maxphysaddr_mode'] = 'passthrough'
        (found,) = self.lint([large]).values()
        self.assertIn('on h: it sets no width on Arm', found['message'])
        self.assertEqual('remove it', found['advice'])

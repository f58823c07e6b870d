# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""The other options of nova-compute."""

import dataclasses

from hpcvirt.audit import fact
from hpcvirt.flavors import profile as profiles
from tests import audited

MEMORY = ('DEFAULT', 'reserved_host_memory_mb')
PAGES = ('DEFAULT', 'reserved_huge_pages')
PACK = ('compute', 'packing_host_numa_cells_allocation_strategy')
MODE = ('libvirt', 'cpu_mode')


class NovaTest(audited.Case):

    def nova(self, code, options, profile=audited.PROFILE, **parts):
        found = self.found(code, self.but(nova=options, **parts), profile)
        return [severity for severity, _ in found]

    def test_no_configuration_is_unknown(self):
        for nova, expected in ((None, ['unknown']), (fact.Unknown(
                '/etc/nova/nova.conf', 'cannot be read'), [])):
            facts = dataclasses.replace(audited.GOOD, nova=nova)
            self.assertEqual(expected, [
                severity for severity, _ in self.found('nova-conf', facts)])

    def test_memory_of_the_plan(self):
        planned = int(audited.GOOD.nova.get(*MEMORY))
        for value, expected in ((planned, []), (planned - 1, ['warning']),
                                (planned + 1, ['error']),
                                ('much', ['error'])):
            self.assertEqual(expected, self.nova('nova-memory', {
                MEMORY: (str(value),)}), value)
        self.assertEqual(['warning'], self.nova('nova-memory',
                                                {MEMORY: None}))

    def test_memory_without_a_plan(self):
        huge = sum(pool.total * pool.size_kib // 1024
                   for pool in audited.GOOD.memory.huge_pages)
        left = audited.GOOD.memory.total_mib - huge
        for value, expected in ((1024, []), (1023, ['warning']), (left, []),
                                (left + 1, ['warning'])):
            self.assertEqual(expected, self.nova('nova-memory', {
                MEMORY: (str(value),)}, None), value)

    def test_reserved_pages_exist(self):
        total = audited.GOOD.host.cells[0].pool(2048).total
        for text, expected in (
                (f'node:0,size:2048,count:{total}', []),
                (f'node:0,size:2MB,count:{total}', []),
                (f'node:0,size:2048,count:{total + 1}', ['error']),
                ('node:7,size:2048,count:1', ['error']),
                ('node:0,size:big,count:1', ['error']), ('7', ['error'])):
            self.assertEqual(expected, self.nova(
                'nova-reserved-pages', {PAGES: (text,)}, None), text)

    def test_reserved_pages_are_those_of_the_plan(self):
        self.assertEqual(['warning'], self.nova(
            'nova-reserved-pages', {PAGES: ('node:0,size:2048,count:1',)}))
        own = profiles.build({'host_pages_per_cell': {'2M': 64}}, 'profile')
        facts = audited.facts(audited.tree(profile=own))
        self.assertEqual(2, len(facts.nova.all(*PAGES)))
        self.assertEqual([], self.found('nova-reserved-pages', facts, own))
        lacking = self.but(facts, nova={PAGES: facts.nova.all(*PAGES)[:1]})
        self.assertEqual(1, len(self.found('nova-reserved-pages', lacking,
                                           own)))

    def test_packing(self):
        packed = profiles.build({'pack_cells': True}, 'profile')
        for value, profile, expected in (
                (None, audited.PROFILE, []), ('true', None, ['note']),
                ('True', audited.PROFILE, ['warning']),
                (None, packed, ['warning']), ('yes', packed, ['note']),
                ('false', None, [])):
            options = {PACK: value and (value,)}
            self.assertEqual(expected, self.nova('nova-packing', options,
                                                 profile), options)

    def test_guests_see_the_processor(self):
        for mode, expected in (
                ('host-passthrough', []), (None, ['note']),
                ('host-model', ['note']), ('custom', ['note']),
                ('none', ['warning'])):
            self.assertEqual(expected, self.nova('cpu-mode', {
                MODE: mode and (mode,)}), mode)

    def test_guests_are_not_emulated(self):
        for kind, expected in (('kvm', []), ('qemu', ['error'])):
            self.assertEqual(expected, self.nova('cpu-mode', {
                ('libvirt', 'virt_type'): (kind,)}))

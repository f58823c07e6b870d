# SPDX-License-Identifier: Apache-2.0

import dataclasses

from hpcvirt.audit import fact
from hpcvirt.flavors import profile as profiles
from tests.builders import audited

MEMORY = ('DEFAULT', 'reserved_host_memory_mb')
PAGES = ('DEFAULT', 'reserved_huge_pages')
PACK = ('compute', 'packing_host_numa_cells_allocation_strategy')
MODE = ('libvirt', 'cpu_mode')


class NovaTest(audited.Case):
    """The other options of nova-compute."""

    def test_no_configuration_is_unknown(self):
        for nova, expected in ((None, ['unknown']), (fact.UnknownFact(
                '/etc/nova/nova.conf', 'cannot be read'), [])):
            facts = audited.replace(audited.GOOD, nova=nova)
            self.check('nova-conf', expected, facts)

    def test_what_nova_cannot_read_is_an_error(self):
        nova = dataclasses.replace(audited.GOOD.nova, unreadable=('/etc/x',))
        self.check('nova-conf', ['error'],
                   audited.replace(audited.GOOD, nova=nova))

    def test_memory_of_the_plan(self):
        planned = int(audited.GOOD.nova.get(*MEMORY))
        for value, expected in ((planned, []), (planned - 64, []),
                                (planned - 65, ['warning']),
                                (planned + 64, []), (planned + 65, ['error']),
                                ('much', ['error']), ('²', ['error']),
                                ('9' * 5000, ['error'])):
            self.check('nova-memory', expected, nova={MEMORY: (str(value),)})
        self.check('nova-memory', ['warning'], nova={MEMORY: None})

    def test_memory_that_no_emulator_needs_is_compared_exactly(self):
        own = profiles.build({'guest_overhead_mib': 0}, 'profile')
        facts = audited.facts(audited.tree(profile=own))
        planned = int(facts.nova.get(*MEMORY))
        for value, expected in ((planned, []), (planned - 1, ['warning']),
                                (planned + 1, ['error'])):
            self.check('nova-memory', expected,
                       self.but(facts, nova={MEMORY: (str(value),)}),
                       profile=own)

    def test_memory_without_a_plan(self):
        huge = sum(pool.total * pool.size_kib // 1024
                   for pool in audited.GOOD.memory.huge_pages)
        left = audited.GOOD.memory.total_mib - huge
        for value, expected in ((1024, []), (1023, ['warning']), (left, []),
                                (left + 1, ['warning'])):
            self.check('nova-memory', expected, profile=None,
                       nova={MEMORY: (str(value),)})

    def test_reserved_pages_exist(self):
        total = audited.GOOD.host.cells[0].pool(2048).total
        for text, expected in (
                (f'node:0,size:2048,count:{total}', []),
                (f'node:0,size:2MB,count:{total}', []),
                (f'node:0,size:2048,count:{total + 1}', ['error']),
                ('node:7,size:2048,count:1', ['error']),
                ('node:0,size:big,count:1', ['error']), ('7', ['error'])):
            self.check('nova-reserved-pages', expected, profile=None,
                       nova={PAGES: (text,)})

    def test_reserved_pages_are_those_of_the_plan(self):
        self.check('nova-reserved-pages', ['warning'],
                   nova={PAGES: ('node:0,size:2048,count:1',)})
        own = profiles.build({'host_pages_per_cell': {'2M': 64}}, 'profile')
        facts = audited.facts(audited.tree(profile=own))
        self.assertEqual(2, len(facts.nova.all(*PAGES)))
        self.check('nova-reserved-pages', [], facts, profile=own)
        lacking = self.but(facts, nova={PAGES: facts.nova.all(*PAGES)[:1]})
        self.check('nova-reserved-pages', 1, lacking, profile=own)

    def test_packing(self):
        packed = profiles.build({'pack_cells': True}, 'profile')
        for value, profile, expected in (
                (None, audited.PROFILE, []), ('true', None, ['note']),
                ('True', audited.PROFILE, ['warning']),
                (None, packed, ['warning']), ('yes', packed, ['note']),
                ('false', None, [])):
            options = {PACK: value and (value,)}
            self.check('nova-packing', expected, profile=profile, nova=options)

    def test_guests_see_the_processor(self):
        for mode, expected in (
                ('host-passthrough', []), (None, ['note']),
                ('host-model', ['note']), ('custom', ['note']),
                ('none', ['warning'])):
            self.check('cpu-mode', expected, nova={MODE: mode and (mode,)})

    def test_filters_of_a_scheduler_on_this_host(self):
        option = ('filter_scheduler', 'enabled_filters')
        for text, expected in (
                (None, []), (('ComputeFilter, NUMATopologyFilter,'
                             'PciPassthroughFilter'), []),
                ('ComputeFilter,HPCTopologyFilter', []),
                ('ComputeFilter,NUMATopologyFilter', ['warning']),
                ('ComputeFilter', ['warning'] * 2)):
            self.check('nova-filters', expected,
                       nova={option: text and (text,)})
        plain = {option: ('ComputeFilter',), ('pci', 'device_spec'): None,
                 ('compute', 'cpu_dedicated_set'): None}
        self.check('nova-filters', [], profile=None, nova=plain)

    def test_live_migration(self):
        for options, expected in (
                ({}, []), ({'permit_post_copy': 'true'}, []),
                ({'permit_post_copy': 'true', 'parallel_connections': '4'},
                 ['warning']), ({'parallel_connections': '2'}, []),
                ({'permit_auto_converge': 'True'}, ['note']),
                ({'permit_auto_converge': '1'}, ['note']),
                ({'permit_auto_converge': 'false'}, []),
                ({'timeout_action': 'force_complete'}, ['note']),
                ({'timeout_action': 'abort'}, []),
                ({'timeout_action': 'force_complete',
                  'permit_post_copy': 'true'}, [])):
            self.check('live-migration', expected, nova={
                ('libvirt', f'live_migration_{name}'): (value,)
                for name, value in options.items()})
        giant = tuple(dataclasses.replace(pool, total=4)
                      for pool in audited.GOOD.memory.huge_pages)
        self.check('live-migration', ['note'], memory={'huge_pages': giant},
                   nova={('libvirt', 'live_migration_permit_post_copy'):
                         ('true',)})

    def test_guests_are_not_emulated(self):
        for kind, expected in (('kvm', []), ('qemu', ['error'])):
            self.check('cpu-mode', expected,
                       nova={('libvirt', 'virt_type'): (kind,)})

POST_COPY = {('libvirt', 'live_migration_permit_post_copy'): ('true',)}


class LiveMigrationTest(audited.Case):
    def test_a_post_copy_fetches_pages_of_32_mib_at_once(self):
        pool = audited.GOOD.memory.huge_pages[0]
        for size_kib, total, expected in (
                (2048, 4, []), (32 * 1024, 4, []), (512 * 1024, 4, ['note']),
                (1048576, 4, ['note']), (1048576, 0, [])):
            pools = (dataclasses.replace(pool, size_kib=size_kib,
                                         total=total),)
            self.check('live-migration', expected,
                       memory={'huge_pages': pools}, nova=POST_COPY)


class AddressWidthTest(audited.Case):
    """Hosts of public reports, by the numbers of public-cases.csv."""

    def width(self, address_bits, cpu_mode, expected, **specs):
        profile = profiles.build({'extra_specs': {
            f'hw:maxphysaddr_{name}': value for name, value in specs.items()}},
            'profile')
        self.check('address-width', expected, profile=profile,
                   cpu={'address_bits': address_bits},
                   nova={MODE: cpu_mode and (cpu_mode,)})

    def test_guests_are_not_wider_than_the_processor(self):
        # W6: 42 bits for guests of a host of 39.
        self.width(39, 'host-model', ['error'], mode='emulate', bits='42')
        # W7 and W8: guests of 40 bits on hosts of 36 and 39.
        self.width(36, 'host-model', ['warning'])
        self.width(39, None, ['warning'])
        self.width(39, 'host-passthrough', [])
        self.width(39, 'custom', [], mode='emulate', bits='39')
        self.width(39, 'custom', [], mode='passthrough')

    def test_processors_of_servers_are_wide_enough(self):
        for bits in (40, 43, 46, 48, 52):
            self.width(bits, 'host-model', [])
        self.width(46, 'host-model', [], mode='emulate', bits='46')
        # Arm does not say it.
        self.width(None, 'host-model', [])

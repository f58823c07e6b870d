# SPDX-License-Identifier: Apache-2.0

import dataclasses
import re

from hpcvirt.audit.reading.cpu import Frequency
from hpcvirt.deployment import host_files
from hpcvirt.flavors import kernel_settings
from hpcvirt.flavors import profile as profiles
from tests.builders import audited
from tests.builders import hosts

CPUS = audited.HOST.cpus


class CpuTest(audited.Case):
    """SMT, frequency, C-states, microcode and cells."""

    def on(self, host, code, **fields):
        """Return the findings on another topology, without a profile."""
        facts = audited.replace(self.but(cpu=fields), host=host)
        return [severity for severity, _ in self.found(code, facts, None)]

    def frequency(self, governor='performance', preference=None,
                  driver='intel_pstate', boost=None):
        return {'frequencies': (Frequency(
            CPUS, driver, governor, preference, boost),)}

    def test_smt_as_the_profile_wants_it(self):
        leave = profiles.build({'smt': 'leave'}, 'profile')
        for state, profile, expected in (
                ('on', audited.PROFILE, []), ('off', None, []),
                ('off', audited.PROFILE, ['warning']),
                ('forceoff', audited.PROFILE, ['warning']),
                ('notsupported', audited.PROFILE, []),
                (None, audited.PROFILE, []), ('on', leave, ['note'])):
            self.check('smt', expected, profile=profile, cpu={'smt': state})

    def test_a_sibling_that_is_offline(self):
        cell = audited.HOST.cells[0]
        lost = max(cell.siblings[0])
        broken = dataclasses.replace(
            cell, cpus=cell.cpus - {lost},
            siblings=(cell.siblings[0] - {lost}, *cell.siblings[1:]))
        host = dataclasses.replace(audited.HOST, cells=(
            broken, *audited.HOST.cells[1:]))
        self.assertEqual(['warning'], self.on(host, 'smt'))
        parked = audited.replace(self.but(nova={
            ('libvirt', 'cpu_power_management'): ('true',)}), host=host)
        self.check('smt', [], parked, profile=None)

    def test_governor(self):
        for fields, expected in (
                (self.frequency(), 0), (self.frequency('powersave'), 1),
                (self.frequency('powersave', 'performance'), 0),
                (self.frequency('powersave', 'performance',
                                'amd-pstate-epp'), 0),
                (self.frequency('powersave', 'performance', 'acpi-cpufreq'),
                 1),
                (self.frequency('powersave', 'balance_performance'), 1),
                (self.frequency('schedutil'), 1), ({'frequencies': ()}, 0)):
            self.check('governor', expected, cpu=fields)

    def test_nova_may_manage_the_governor(self):
        managed = {('libvirt', 'cpu_power_management'): ('True',)}
        slow = self.but(cpu=self.frequency('powersave'), nova=managed)
        self.check('governor', 1, slow)
        slow = self.but(slow, nova={
            ('libvirt', 'cpu_power_management_strategy'): ('governor',)})
        self.check('governor', 0, slow)

    def test_turbo(self):
        for fields, expected in (
                ({'no_turbo': True}, 1), ({'no_turbo': False}, 0),
                ({'no_turbo': None, 'boost': False}, 1),
                ({'no_turbo': None, 'boost': True}, 0),
                ({'no_turbo': None, 'boost': None}, 0),
                ({'no_turbo': None, **self.frequency(boost=False)}, 1),
                ({'no_turbo': None, **self.frequency(boost=True)}, 0)):
            self.check('turbo', expected, cpu=fields)

    def test_idle_states(self):
        most = kernel_settings.MAX_LATENCY_US
        for latency, limit, expected in (
                (most, None, 0), (most + 1, None, 1), (most + 1, most, 0),
                (most + 1, most + 1, 1)):
            states = {('C6', latency): CPUS}
            self.check('c-states', expected,
                       cpu={'idle_states': states, 'wake_limit_us': limit})

    def test_the_profile_of_host_config_allows_no_state_that_is_too_deep(self):
        text = audited.tree()[host_files.TUNED[0]]
        limit = int(re.search('^force_latency=(.*)$', text, re.MULTILINE)[1])
        server = dict.fromkeys((('POLL', 0), ('C1', 2), ('C1E', 10),
                                ('C6', 133)), CPUS)
        self.check('c-states', [], cpu={'idle_states': server,
                                        'wake_limit_us': limit})
        # What virtual-host alone allows there.
        self.check('c-states', ['warning'], cpu={'idle_states': server,
                                                 'wake_limit_us': 133})

    def test_microcode(self):
        two = {'1': frozenset({0}), '2': CPUS - {0}}
        self.check('microcode', 1, cpu={'microcode': two})
        self.check('microcode', 0, cpu={'microcode': two, 'is_guest': True})
        self.check('microcode', 0, cpu={'microcode': None})
        for name, state, expected in (
                ('mds', ('Vulnerable: Clear CPU buffers attempted, no '
                 'microcode; SMT vulnerable'), 1),
                ('gather_data_sampling', 'Vulnerable: No microcode', 1),
                ('old_microcode', 'Vulnerable', 1),
                ('old_microcode', 'Not affected', 0),
                ('spec_store_bypass', 'Vulnerable', 0)):
            self.check('microcode', expected,
                       kernel={'vulnerabilities': {name: state}})

    def test_sockets_have_as_many_cells(self):
        amd = {'vendor': 'AuthenticAMD'}
        uneven = hosts.build(3, 4, sockets=2)
        self.assertEqual(['warning'], self.on(uneven, 'cells-per-socket'))
        for host, expected in (
                (hosts.build(2, 8, llc_cores=2), ['note']),
                (hosts.build(2, 6, llc_cores=2), []),
                (hosts.build(8, 8, llc_cores=2, sockets=2), [])):
            self.assertEqual(expected, self.on(host, 'cells-per-socket',
                                               **amd))
        self.assertEqual([], self.on(hosts.build(2, 8, llc_cores=2),
                                     'cells-per-socket'))

    def test_cells_have_as_much_memory(self):
        for sizes, expected in (
                ((65536, 65536), []), ((65536, 58983), []),
                ((65536, 58982), ['warning']), ((4096, 3072), []),
                ((4096, 3071), ['warning'])):
            host = hosts.build(2, 4, mib=sizes)
            self.assertEqual(expected, self.on(host, 'cell-memory'), sizes)

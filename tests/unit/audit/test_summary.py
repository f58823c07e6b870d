# SPDX-License-Identifier: Apache-2.0

import dataclasses

from hpcvirt.audit import audit
from hpcvirt.audit import fact
from hpcvirt.audit import summary
from tests.builders import audited
from tests.builders import hosts

UNKNOWN = fact.UnknownFact('/proc/x', 'was not captured')


class SummaryTest(audited.Case):
    def host(self, name, **parts):
        facts = self.but(**parts)
        return audited.replace(facts, name=name, host=dataclasses.replace(
            facts.host, name=name))

    def make(self, *hosts):
        return summary.make_document(
            [audit.audit(each, audited.PROFILE) for each in hosts],
            list(map(summary.describe, hosts)))

    def differences(self, *hosts):
        return {item['subject']: {each['value']: each['hosts']
                                  for each in item['values']}
                for item in self.make(*hosts)['differences']}

    def test_equal_hosts_differ_in_nothing(self):
        found = self.make(*map(self.host, ('a', 'b')))
        self.assertEqual(([], [], True), (
            found['differences'], found['summary'], found['clean']))

    def test_hosts_with_other_widths_of_addresses_are_told_apart(self):
        # W8: a guest that is migrated to the narrower one fails.
        self.assertEqual(
            {'address bits': {'46': ['a'], '52': ['b']}}, self.differences(
                self.host('a', cpu={'address_bits': 46}),
                self.host('b', cpu={'address_bits': 52})))

    def test_findings_are_counted_the_worst_and_most_frequent_first(self):
        slow = {'memory': {'swappiness': 60}}
        found = self.make(
            self.host('a', **slow), self.host('b', **slow),
            self.host('c', kernel={'tuned_profile': 'balanced'}),
            self.host('d', memory={'thp': UNKNOWN}), self.host('e'))
        self.assertEqual(
            [('unknown-fact', '/proc/x: was not captured', ['d']),
             ('swappiness', '', ['a', 'b']), ('tuned', '', ['c'])],
            [(item['code'], item['unknown'], item['hosts'])
             for item in found['summary']])
        self.assertIn('UNKNOWN unknown-fact: /proc/x: was not captured: '
                      '1 of 5 hosts (d)\n', summary.text(found))

    def test_versions_and_settings_are_compared(self):
        command_line = audited.GOOD.kernel.command_line
        cpus = audited.GOOD.host.cpus
        for subject, values, parts in (
                ('microcode', ('0x2b000571', '0x1'),
                 {'cpu': {'microcode': {'0x1': cpus}}}),
                ('kernel', ('6.1.0', '6.2'), {'kernel': {'release': '6.2'}}),
                ('kernel parameters', (None, None),
                 {'kernel': {'command_line': (*command_line, 'debug')}}),
                ('BIOS', ('none', 'X 1'),
                 {'hardware': {'firmware': {'BIOS': 'X 1'}}}),
                ('firmware of MT_1', ('none', '16'),
                 {'hardware': {'firmware': {'MT_1': '16'}}}),
                ('firmware', ('none', 'unknown'),
                 {'hardware': {'firmware': UNKNOWN}}),
                ('KSM', ('0', 'unknown'), {'memory': {'ksm': UNKNOWN}}),
                ('SMT', ('on', 'none'), {'cpu': {'smt': None}}),
                ('no_turbo', ('False', 'True'), {'cpu': {'no_turbo': True}}),
                ('IOMMU', ('identity', 'none'),
                 {'hardware': {'iommu_types': frozenset()}}),
                ('[libvirt]cpu_mode', ('host-passthrough', 'custom'),
                 {'nova': {('libvirt', 'cpu_mode'): ('custom',)}})):
            found = self.differences(*map(self.host, 'ab'),
                                     self.host('c', **parts))
            self.assertEqual([subject], list(found))
            self.assertEqual([['a', 'b'], ['c']],
                             list(found[subject].values()))
            if values[0]:
                self.assertEqual(values, tuple(found[subject]))

    def test_a_host_of_another_nps_or_snc_setting_is_named(self):
        def host(name, cells):
            return audited.replace(
                self.but(), name=name, host=hosts.build(
                    cells, 32 // cells, mib=131072 // cells, sockets=2,
                    name=name))

        subject = 'cells per socket (NPS, SNC)'
        for many, few in ((9, 1), (1, 1), (8, 3)):
            names = [f'a{number}' for number in range(many)]
            odd = [f'b{number}' for number in range(few)]
            found = self.make(*(host(name, 8) for name in names),
                              *(host(name, 2) for name in odd))
            self.assertEqual([{
                'class': names + odd, 'subject': subject, 'values': [
                    {'value': '4', 'hosts': names},
                    {'value': '1', 'hosts': odd}]}], found['differences'])
        self.assertIn('  cells per socket (NPS, SNC)\n    4: 8 hosts (a0, ',
                      summary.text(found))
        uneven = host('c', 8)
        cells = [dataclasses.replace(cell, socket=int(cell.id > 2))
                 for cell in uneven.host.cells]
        uneven = audited.replace(uneven, host=dataclasses.replace(
            uneven.host, cells=tuple(cells)))
        self.assertEqual('3, 5', summary.describe(uneven)[1][subject])

    def test_every_subject_is_known_of_a_good_host(self):
        for subject, value in summary.describe(audited.GOOD)[1].items():
            self.assertNotEqual('unknown', value, subject)

    def test_the_place_of_the_system_is_its_own(self):
        own = {'kernel': {'command_line': (
            *audited.GOOD.kernel.command_line, 'root=UUID=1', 'rd.lvm=x')}}
        self.assertEqual({}, self.differences(
            self.host('a'), self.host('b', **own)))

    def test_hosts_of_two_classes_are_not_compared(self):
        half = audited.replace(
            audited.GOOD, host=dataclasses.replace(
                audited.GOOD.host, cells=audited.GOOD.host.cells[:1]))
        other = self.but(half, memory={'swappiness': 60})
        other = audited.replace(other, name='b', host=dataclasses.replace(
            other.host, name='b'))
        self.assertEqual({}, self.differences(self.host('a'), other))
        unknown = audited.replace(other, host=UNKNOWN)
        self.assertEqual({}, self.differences(self.host('a'), unknown))

    def test_a_class_of_many_hosts_is_shortened(self):
        found = self.make(*(self.host(f'c{number}') for number in range(9)),
                          self.host('d', memory={'swappiness': 2}))
        self.assertIn("""
Differences within the class of 10 hosts (c0, c1, ...):
  swappiness
    1: 9 hosts (c0, c1, ...)
    2: d
""", summary.text(found))

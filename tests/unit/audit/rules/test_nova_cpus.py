# SPDX-License-Identifier: Apache-2.0

import dataclasses

from hpcvirt.audit import audit
from hpcvirt.flavors import profile as profiles
from hpcvirt.model import cpuset
from tests.builders import audited

DEDICATED = ('compute', 'cpu_dedicated_set')
SHARED = ('compute', 'cpu_shared_set')
CORES = [core for cell in audited.HOST.cells for core in cell.siblings]


def words(cpus):
    return (cpuset.render(cpus),)


class NovaCpusTest(audited.Case):
    """The CPU sets of nova-compute against the topology."""

    def test_what_nova_compute_refuses(self):
        for options, expected in (
                ({}, 0), ({DEDICATED: ('2-x',)}, 1),
                ({DEDICATED: ('1,99',)}, 1), ({SHARED: ('99',)}, 1),
                ({DEDICATED: ('1-3',), SHARED: ('3-4',)}, 1),
                ({DEDICATED: ('1-3',), SHARED: ('4-5',)}, 0),
                ({DEDICATED: ('3,^3',)}, 1),
                ({('DEFAULT', 'vcpu_pin_set'): ('1-3',)}, 1)):
            self.check('nova-cpu-sets', ['error'] * expected, nova=options)

    def test_power_management_takes_dedicated_cpus_offline(self):
        asleep = {DEDICATED: ('1,99',),
                  ('libvirt', 'cpu_power_management'): ('true',)}
        self.check('nova-cpu-sets', [], nova=asleep)
        asleep['libvirt', 'cpu_power_management_strategy'] = ('governor',)
        self.check('nova-cpu-sets', ['error'], nova=asleep)

    def test_dedicated_cpus_are_set(self):
        for profile in (None, audited.PROFILE):
            self.check('nova-dedicated', ['error'], profile=profile,
                       nova={DEDICATED: None, SHARED: None})
            self.check('nova-dedicated', ['error' if profile else 'note'],
                       profile=profile, nova={DEDICATED: None})
            self.check('nova-dedicated', [], profile=profile)
        # Nothing says that this host is for guests with dedicated CPUs.
        plain = self.but(kernel={'nohz_full': frozenset()},
                         nova={DEDICATED: None, SHARED: None})
        self.check('nova-dedicated', ['note'], plain, None)
        self.check('nova-dedicated', ['error'], plain)
        self.check('nova-dedicated', ['error'], self.but(
            plain, kernel={'isolated': audited.ONE}), None)

    def test_cpus_that_nova_has_parked_are_no_fault(self):
        """Nova takes dedicated CPUs offline that no guest has."""
        dedicated = cpuset.parse(audited.GOOD.nova.get(*DEDICATED))
        second = audited.HOST.cells[1]
        parked = second.cpus & dedicated - {max(second.cpus)}
        cell = dataclasses.replace(
            second, cpus=second.cpus - parked, siblings=tuple(
                core - parked for core in second.siblings if core - parked),
            llc=tuple(cache - parked for cache in second.llc))
        facts = audited.replace(self.but(nova={
            ('libvirt', 'cpu_power_management'): ('true',)}),
            host=dataclasses.replace(audited.HOST, cells=(
                audited.HOST.cells[0], cell)))
        self.assertEqual([], self.codes(facts, None))
        self.assertEqual(
            [('note', ('Nova has taken the dedicated CPUs '
                       f'{cpuset.render(parked)} offline, so that the host is '
                       'judged without the profile'))],
            self.found('nova-planned-cpus', facts))
        self.assertTrue(audit.audit(facts, audited.PROFILE).is_clean)

    def test_sets_are_those_of_the_plan(self):
        dedicated = cpuset.parse(audited.GOOD.nova.get(*DEDICATED))
        for options, expected in (
                ({DEDICATED: words(dedicated - {min(dedicated)})}, ['error']),
                ({SHARED: None}, ['warning']), ({DEDICATED: None}, []),
                ({}, [])):
            self.check('nova-planned-cpus', expected, nova=options)
            self.check('nova-planned-cpus', [], profile=None, nova=options)

    def test_siblings_stay_together(self):
        first, second, *rest = CORES
        whole = frozenset().union(*rest)
        for dedicated, shared, expected in (
                (whole, first, 0), (whole | {min(second)}, first, 1),
                (whole | {min(second)}, first | {max(second)}, 1)):
            self.check('nova-siblings', ['warning'] * expected, profile=None,
                       nova={DEDICATED: words(dedicated),
                             SHARED: words(shared)})

    def test_one_change_joins_the_siblings_of_all_cells(self):
        first, *rest = CORES
        firsts = frozenset(min(core) for core in rest)
        whole = cpuset.render(frozenset().union(*rest))
        for options, change in (
                ({DEDICATED: words(firsts), SHARED: None},
                 f'cpu_dedicated_set = {whole}'),
                ({DEDICATED: words(firsts), SHARED: words(
                    first | frozenset(max(core) for core in rest))},
                 f'cpu_shared_set = {cpuset.render(first)}')):
            found = [item for item in audit.audit(self.but(
                nova=options)).findings if item.code == 'nova-siblings']
            self.assertEqual(2, len(found))
            self.assertEqual({('# nova.conf', '[compute]', change)},
                             {item.change for item in found})

    def test_a_wrong_set_is_the_only_fault_of_a_host_as_planned(self):
        """No other change follows the set that has to be changed."""
        for options, expected in (
                ({DEDICATED: '1-7', SHARED: '0'},
                 ['nova-planned-cpus'] * 2),
                ({SHARED: None}, ['nova-planned-cpus'])):
            self.assertEqual(expected, self.codes(self.but(nova=options)))

    def test_equal_cells_give_as_many_cpus(self):
        half = len(CORES) // 2
        for cores, expected in ((CORES[2:half] + CORES[half + 2:], 0),
                                (CORES[2:half] + CORES[half + 1:], 1)):
            cpus = frozenset().union(*cores)
            self.check('nova-cells', ['warning'] * expected, profile=None,
                       nova={DEDICATED: words(cpus)})

    def test_a_cell_without_shared_cpus_is_noted(self):
        self.check('nova-cells', ['note'], profile=None,
                   nova={SHARED: words(CORES[0])})

    def test_each_cell_has_a_cpu_for_the_host(self):
        half = len(CORES) // 2
        all_of_one = frozenset().union(*CORES[:half], *CORES[half + 1:])
        self.check('host-cpus', ['warning'], profile=None,
                   nova={DEDICATED: words(all_of_one)})
        self.check('host-cpus', [], profile=None)

    def test_emulator_threads_have_cpus_of_their_own(self):
        self.check('emulator-threads', ['warning'], profile=None,
                   nova={SHARED: None})
        # The rule nova-planned-cpus says so.
        self.check('emulator-threads', [], nova={SHARED: None})
        self.check('emulator-threads', [], profile=profiles.DENSE,
                   nova={SHARED: None})

    def test_connections_of_live_migration_need_cores(self):
        option = ('libvirt', 'live_migration_parallel_connections')
        # The plan leaves one core of each of the two cells.
        for text, expected in (('1', []), ('2', []), ('3', ['warning']),
                               ('many', []), ('²', []), ('9' * 5000, [])):
            self.check('migration-cores', expected, nova={option: (text,)})

PARKING = {('libvirt', 'cpu_power_management'): ('true',)}


class NovaCpuSetsTest(audited.Case):
    def findings(self, **options):
        found = audit.audit(self.but(nova=options['nova']), None).findings
        return [item for item in found if item.code == 'nova-cpu-sets']

    def test_shared_cpus_are_online_even_where_nova_parks_dedicated_ones(self):
        for parking in ({}, PARKING):
            found, = self.findings(nova={SHARED: ('0,99',), **parking})
            self.assertEqual('[compute]cpu_shared_set names CPU 99, which the '
                             'host does not have online', found.found)

    def test_the_change_leaves_the_cpus_that_are_online(self):
        found, = self.findings(nova={SHARED: ('0,99',)})
        self.assertEqual(('# nova.conf', '[compute]', 'cpu_shared_set = 0'),
                         found.change)


class SiblingsTest(audited.Case):
    def test_a_profile_may_leave_siblings_to_the_host(self):
        leave = profiles.build({'smt': 'leave'}, 'profile')
        facts = audited.facts(audited.tree(profile=leave))
        self.check('nova-siblings', [], facts, leave)
        self.check('nova-siblings', ['warning'] * 2, facts, None)

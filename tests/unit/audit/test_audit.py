# SPDX-License-Identifier: Apache-2.0

"""The audit of a host: what is clean, what is unknown."""

from hpcvirt import bibliography
from hpcvirt.audit import audit
from hpcvirt.audit import costs
from hpcvirt.audit import fact
from hpcvirt.audit import finding
from hpcvirt.audit import report
from hpcvirt.audit.reading import hardware
from hpcvirt.flavors import profile as profiles
from tests.builders import audited
from tests.builders import hosts
from tests.builders import packages
from tests.builders import refusals

LOST = fact.UnknownFact('/the/file', 'cannot be read (Permission denied)')


class AuditTest(audited.Case):
    def test_a_host_with_its_configuration_has_no_finding(self):
        for host, profile in (
                (audited.HOST, audited.PROFILE),
                (audited.HOST, profiles.DEFAULT),
                (hosts.build(1, 4), profiles.DEFAULT),
                (hosts.build(2, 2, 2), profiles.DENSE),
                (hosts.build(4, 2, sockets=2), profiles.DEFAULT),
                (hosts.build(1, 4, 2, small_kib=64), profiles.DEFAULT)):
            facts = audited.facts(audited.tree(host, profile))
            result = audit.audit(facts, profile)
            self.assertEqual((), result.findings)
            self.assertTrue(result.is_clean)
            self.assertEqual(len(audit.RULES), len(result.checked))
            # By itself, a host that keeps no CPU is not as it should be.
            self.assertEqual(profile is not profiles.DENSE,
                             audit.audit(facts).is_clean)

    def test_a_fact_that_is_not_known_is_never_fine(self):
        """Each fact that any rule looks at is missed."""
        silent = set()
        for part in ('cpu', 'memory', 'kernel', 'hardware'):
            group = getattr(audited.GOOD, part)
            for name in audited.values(group):
                facts = self.but(**{part: {name: LOST}})
                result = audit.audit(facts, audited.PROFILE)
                if result.findings:
                    self.assertFalse(result.is_clean)
                    self.assertEqual([finding.Severity.UNKNOWN], [
                        item.severity for item in result.findings])
                else:
                    silent.add(name)
        # They matter where another fact is bad: with deep idle states, a
        # driver without turbo switch, nested paging off, InfiniBand or
        # NVSwitches, a profile with rings and so on. Firmware is only compared
        # between hosts.
        self.assertEqual(
            {'activators', 'fabric_mode', 'firmware', 'guids', 'rings',
             'wake_limit_us', 'slab_unreclaimable_mib', 'total_mib'}, silent)

    def test_facts_that_matter_only_then_are_missed_then(self):
        card = hardware.GroupedFunction(
            audited.HOST.devices[0].address, 20, '0207', '15b3', '101d', None)
        for parts, code in (
                ({'hardware': {'guids': LOST, 'grouped': (card,)}},
                 'infiniband-guids'),
                ({'cpu': {'wake_limit_us': LOST, 'idle_states': {
                    ('C6', 133): frozenset({0})}}}, 'c-states'),
                ({'kernel': {'command_line': LOST,
                             'nohz_full': frozenset()}}, 'rcu-callbacks')):
            facts = self.but(**parts)
            self.assertNotIn(code, audit.audit(facts, audited.PROFILE).checked)
            self.assertIn(audit.UNKNOWN, self.codes(facts))

    def test_one_unknown_file_is_one_finding(self):
        facts = audited.replace(audited.GOOD, nova=LOST)
        item, = audit.audit(facts).findings
        self.assertEqual('/the/file: cannot be read (Permission denied)',
                         item.found)
        self.assertIn('isolation', item.expected)
        self.assertIn('nova-cpu-sets', item.expected)
        self.assertEqual(('# run the audit as root',), item.change)

    def test_without_topology_the_rules_that_need_none_answer(self):
        facts = audited.replace(audited.GOOD, host=LOST)
        result = audit.audit(facts, audited.PROFILE)
        self.assertFalse(result.is_clean)
        for code in ('swap', 'kvm', 'governor', 'tuned'):
            self.assertIn(code, result.checked)

    def test_a_host_that_cannot_be_planned(self):
        profile = profiles.build({'page_size': '16M'}, 'profile')
        result = audit.audit(audited.GOOD, profile)
        self.assertFalse(result.is_clean)
        self.assertTrue(any('the plan of this host' in item.found
                            for item in result.findings))

    def test_the_worst_comes_first(self):
        facts = self.but(memory={'swappiness': 60, 'swap_used_mib': LOST},
                         kernel={'has_kvm': False,
                                 'nohz_full': frozenset()})
        found = [item.severity for item in audit.audit(
            facts, audited.PROFILE).findings]
        self.assertEqual(sorted(found, key=finding.ORDER.index), found)
        self.assertEqual(['error', 'unknown', 'warning', 'note'],
                         list(dict.fromkeys(found)))

    def test_the_costliest_comes_first(self):
        """Nested paging off costs ten times the time, old microcode little."""
        facts = self.but(
            kernel={'nested_paging': ('kvm_intel.ept', False),
                    'vulnerabilities': {'old_microcode': 'Vulnerable'}},
            memory={'swap_used_mib': 9999, 'swappiness': 60})
        found = audit.audit(facts, audited.PROFILE).findings
        self.assertEqual(['nested-paging', 'swap', 'microcode', 'swappiness'],
                         [item.code for item in found])
        self.assertEqual(
            [('a few jobs took 10 times as long, at 30 to 50 % of system time '
             '[CERN-HEPiX-2015]'), costs.NOT_MEASURED],
            [found[0].cost, found[-1].cost])
        shown = report.text(audit.audit(facts, audited.PROFILE), None)
        self.assertLess(shown.index('WARNING nested-paging'),
                        shown.index('WARNING microcode'))

    def test_findings_of_one_rule_stay_together(self):
        facts = self.but(kernel={'release': '6.1.0+debug',
                                 'command_line': ('kasan=on', 'mem=64G')},
                         memory={'swap_used_mib': 9999})
        self.assertEqual(['debugging'] * 3 + ['swap'], [
            item.code for item in audit.audit(facts, audited.PROFILE).findings
            if item.code in ('debugging', 'swap')])

    def test_costs_are_of_rules_and_have_a_source(self):
        self.assertLessEqual(costs.BY_RULE.keys(),
                             {rule.code for rule in audit.RULES})
        for cost in (*costs.BY_RULE.values(), costs.SMALL_PAGES,
                     costs.DEBUG_KERNEL):
            bibliography.get(cost.source)

    def test_costs_are_those_of_the_studies(self):
        for cost, ratio in (
                (costs.SMALL_PAGES, 0.03805 / 0.01561),  # StarRandomAccess
                (costs.BY_RULE['nova-dedicated'], 1 / (1 - 0.204)),
                (costs.BY_RULE['swap'], 1 / (1 - 0.30))):
            self.assertEqual(round((ratio - 1) * 100), cost.percent)

    def test_notes_alone_are_clean(self):
        facts = self.but(kernel={'nohz_full': frozenset(),
                                 'banned_cpus': audited.HOST.cpus})
        result = audit.audit(facts, audited.PROFILE)
        self.assertTrue(result.findings)
        self.assertTrue(result.is_clean)


SITE_RULES = """
from hpcvirt.audit import finding
from hpcvirt.audit import rule


def find(subject):
    yield rule.Violation(f'{len(subject.host.cells)} cells', '9 cells')


def fail(subject):
    raise KeyError('cells')
    yield


def make(code, find=find, sources=()):
    return rule.Rule(code, finding.Severity.WARNING, 'Cells.', 'cells',
                     sources, find)


CELLS, FAILING, TAKEN = make('site-a'), make('site-b', fail), make('swap')
UNCITED, RULES = make('site-c', sources=('NONE',)), (make('site-d'),)
NONE = 3
"""


class RulesOfPackagesTest(audited.Case):
    def install(self, *names):
        packages.install(self, SITE_RULES, '[hpcvirt.audit.rules]\n' + ''.join(
            f'{name.lower()} = site_hpc:{name}\n' for name in names))

    def test_they_are_applied_after_those_of_hpcvirt(self):
        self.install('CELLS')
        facts = audited.facts(audited.tree(audited.HOST, audited.PROFILE))
        result = audit.audit(facts, audited.PROFILE)
        self.assertEqual(['site-a'], [item.code for item in result.findings])
        self.assertEqual('site-a', result.checked[-1])
        self.assertIn('site-a', report.text(result, 80))

    def test_a_module_may_have_several(self):
        packages.install(self, SITE_RULES,
                         '[hpcvirt.audit.rules]\nx = site_hpc\n')
        self.assertEqual('site-d', audit.all_rules()[-1].code)

    def test_one_that_fails_has_no_answer(self):
        self.install('FAILING')
        facts = audited.facts(audited.tree(audited.HOST, audited.PROFILE))
        [found] = audit.audit(facts, audited.PROFILE).findings
        self.assertEqual(finding.Severity.UNKNOWN, found.severity)
        self.assertIn('KeyError', found.found)

    def test_what_is_no_rule_is_refused(self):
        for name, what in (('TAKEN', "has the code 'swap' of another"),
                           ('UNCITED', 'is not in the bibliography'),
                           ('NONE', 'is neither a Rule nor a module')):
            self.install(name)
            self.assertIn(what, refusals.message(self, audit.all_rules))
            self.doCleanups()


class RulesTest(audited.Case):
    def test_codes_are_unique_and_sources_exist(self):
        codes = [rule.code for rule in audit.RULES]
        self.assertEqual(len(codes), len(set(codes)))
        self.assertNotIn(audit.UNKNOWN, codes)
        for rule in audit.RULES:
            self.assertRegex(rule.code, '^[a-z]+(-[a-z]+)*$')
            self.assertTrue(rule.sources, rule.code)
            for key in rule.sources:
                bibliography.get(key)

    def test_texts_are_sentences_and_clauses(self):
        for rule in audit.RULES:
            self.assertTrue(rule.checks.endswith('.'), rule.code)
            self.assertFalse(rule.why.endswith('.'), rule.code)

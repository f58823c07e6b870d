# SPDX-License-Identifier: Apache-2.0

import dataclasses

import testtools

from hpcvirt.bench.model import record
from hpcvirt.bench.report import study as report_study
from hpcvirt.bench.report import text
from hpcvirt.bench.studies import catalogue as study_catalogue
from hpcvirt.bench.studies import preconditions
from tests.builders import study_runs


class TestInstructions(testtools.TestCase):
    def test_every_host_setting_of_every_case_is_explained(self):
        for study_ in study_catalogue.studies():
            for case in study_.cases:
                guests = case.guests
                settings = len(case.host_settings) + bool(
                    guests.pages) + bool(guests.device)
                instructions = list(preconditions.instructions(case))
                self.assertEqual(settings, len(instructions), case.id)


class TestUnmet(testtools.TestCase):
    """What the machines report, and what the case requires."""

    def unmet(self, study, case, native, guest=None):
        run = study_runs.measured(1, 1, study=study, case=case)
        facts = {record.Side.NATIVE: native, record.Side.GUEST: guest or {}}
        run = dataclasses.replace(run, samples=tuple(
            dataclasses.replace(sample, environment=facts[sample.side])
            for sample in run.samples))
        return preconditions.find_unmet(run), run

    def test_a_host_that_is_set_as_required_is_not_mentioned(self):
        for case, native in (
                ('small-on', {'kvm.ept': 'Y', 'cpu.smt': '0',
                              'pages.thp': 'always madvise [never]'}),
                ('large-off', {'kvm.npt': '0', 'cpu.smt': '0',
                               'pages.thp': '[always] madvise never'}),
                ('large-off', {}), ('large-off', {'cpu.smt': 'x'})):
            self.assertEqual((), self.unmet('S1', case, native)[0])
        self.assertEqual((), self.unmet('S5', 'sriov', {'cpu.smt': '1'})[0])

    def test_ksm_has_three_states(self):
        for state, unmet in (('0', ()), ('2', ()), ('1', ('KSM was on',))):
            self.assertEqual(unmet, self.unmet(
                'S4', '1x32-numa-services', {'pages.ksm': state})[0])
        self.assertEqual(('KSM was off',), self.unmet(
            'S4', '1x32-numa-ksm', {'pages.ksm': '0'})[0])

    def test_each_wrong_setting_is_reported_once(self):
        clauses, run = self.unmet(
            'S1', 'large-off',
            {'kvm.ept@a': 'N', 'kvm.ept@b': 'Y', 'cpu.smt': '1',
             'pages.thp': 'always [madvise] never'},
            {'kvm.ept': 'Y', 'cpu.smt': '1',
             'pages.thp': 'always madvise [never]'})
        self.assertEqual(
            {'nested paging was on', 'SMT was on',
             'transparent huge pages were "madvise" on the native side',
             'transparent huge pages were "never" on the guest side'},
            set(clauses))
        self.assertEqual(4, len(clauses))
        result = record.Result((run,))
        self.assertIn('not as S1/large-off requires: nested paging was on',
                      text.table(result))

    def test_a_case_that_no_longer_exists_does_not_stop_the_report(self):
        for name, case in (('S1', 'gone'), ('S9', 'large-off')):
            _, run = self.unmet('S1', 'large-off', {'cpu.smt': '1'})
            run = dataclasses.replace(run, study=name, case=case)
            self.assertEqual((), preconditions.find_unmet(run))
            self.assertIn('mops_total', text.table(record.Result((run,))))

    def test_the_page_of_the_study_reports_it(self):
        run = study_runs.hpcc(0.04, 0.038)
        facts = {'cpu.smt': '1'}
        run = dataclasses.replace(run, samples=tuple(
            dataclasses.replace(sample, environment=facts)
            for sample in run.samples))
        compared = study_runs.of_row([run], 'S1', 'hpl-small-on')
        self.assertEqual(('SMT was on',), compared.results[0].unmet)
        page = report_study.studies([record.Result((run,))])
        whys = [result['why'] for row in page[0]['rows']
                for result in row['results']]
        self.assertIn('SMT was on', whys)

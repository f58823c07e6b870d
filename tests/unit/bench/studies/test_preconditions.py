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

import dataclasses

import testtools

from hpcvirt.bench.model import record
from hpcvirt.bench.report import study
from hpcvirt.bench.report import text
from hpcvirt.bench.studies import catalogue as study_catalogue
from hpcvirt.bench.studies import preconditions
from tests.unit.bench.studies import study_runs


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
        facts = {record.Arm.NATIVE: native, record.Arm.GUEST: guest or {}}
        run = dataclasses.replace(run, samples=tuple(
            dataclasses.replace(sample, environment=facts[sample.arm])
            for sample in run.samples))
        return preconditions.unmet(run), run

    def test_a_host_that_is_set_as_required_is_not_mentioned(self):
        for case, native in (
                ('small-on', {'kvm.ept': 'Y', 'cpu.smt': '0',
                              'pages.thp': 'always madvise [never]'}),
                ('large-off', {'kvm.npt': '0', 'cpu.smt': '0',
                               'pages.thp': '[always] madvise never'}),
                ('large-off', {}), ('large-off', {'cpu.smt': 'x'})):
            self.assertEqual((), self.unmet('S1', case, native)[0])
        self.assertEqual((), self.unmet('S5', 'sriov', {'cpu.smt': '1'})[0])

    def test_each_wrong_setting_is_reported_once(self):
        clauses, run = self.unmet(
            'S1', 'large-off',
            {'kvm.ept@a': 'N', 'kvm.ept@b': 'Y', 'cpu.smt': '1',
             'pages.thp': 'always [madvise] never'},
            {'kvm.ept': 'Y', 'cpu.smt': '1',
             'pages.thp': 'always madvise [never]'})
        self.assertEqual(
            {'nested paging was on', 'SMT was on',
             'transparent huge pages were "madvise" in the native arm',
             'transparent huge pages were "never" in the guest arm'},
            set(clauses))
        self.assertEqual(4, len(clauses))
        result = record.Result((run,))
        self.assertIn('not as S1/large-off requires: nested paging was on',
                      text.table(result))

    def test_a_case_that_no_longer_exists_does_not_stop_the_report(self):
        for name, case in (('S1', 'gone'), ('S9', 'large-off')):
            _, run = self.unmet('S1', 'large-off', {'cpu.smt': '1'})
            run = dataclasses.replace(run, study=name, case=case)
            self.assertEqual((), preconditions.unmet(run))
            self.assertIn('mops_total', text.table(
                record.Result((run,))))

    def test_the_page_of_the_study_reports_it(self):
        run = study_runs.hpcc(0.04, 0.038)
        facts = {'cpu.smt': '1'}
        run = dataclasses.replace(run, samples=tuple(
            dataclasses.replace(sample, environment=facts)
            for sample in run.samples))
        compared = study_runs.of_row([run], 'S1', 'hpl-small-on')
        self.assertEqual(('SMT was on',), compared.results[0].unmet)
        page = study.studies([record.Result((run,))])
        whys = [result['why'] for row in page[0]['rows']
                for result in row['results']]
        self.assertIn('SMT was on', whys)

# SPDX-License-Identifier: Apache-2.0

import json
import os
import pathlib
from unittest import mock

import testtools

from hpcvirt import bibliography
from tests.builders import commands
from tests.builders import folders
from tests.builders import hosts

SMT = str(hosts.TOPOLOGIES / 'intel-2s-16c-smt.json')
#: What standard error has at most for these hosts.
NO_HOUSEKEEPING = r'\A(Warning: no-housekeeping: [^\n]*\n)?\Z'
PLAIN = str(hosts.TOPOLOGIES / 'hs06-2s-16c.json')


class StudyCase(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.folder = folders.make(self)

    def call(self, *words):
        """Run the command; its status, standard output and standard error."""
        return commands.run('bench', 'study', *words)

    def document(self, *words):
        status, out, err = self.call(*words, '--format', 'json')
        self.assertRegex(err, NO_HOUSEKEEPING)
        return status, json.loads(out)

    def assert_unusable(self, what, *words):
        commands.check_refused(self, what, self.call(*words))


class ListTest(StudyCase):
    def test_every_study_is_listed_with_its_citation(self):
        status, out, _ = self.call('show')
        self.assertEqual(0, status)
        status, studies = self.document('show')
        self.assertEqual(0, status)
        self.assertEqual(['S1', 'S2', 'S3', 'S4', 'S5'],
                         [each['id'] for each in studies])
        for each in studies:
            line = next(line for line in out.splitlines()
                        if line.startswith(each['id']))
            self.assertIn(each['title'], line)
            self.assertTrue(line.endswith(f'[{each["source"]}]'), line)


class ShowTest(StudyCase):
    def test_the_document_is_described_as_the_bibliography_has_it(self):
        for name in ('S1', 'S2', 'S3', 'S4', 'S5'):
            _, study_ = self.document('show', name)
            document = bibliography.get(study_['source'])
            status, out, _ = self.call('show', name.lower())
            self.assertEqual(0, status)
            text = ' '.join(out.split())
            for what in (document.citation, document.authors, document.title,
                         document.venue, document.year, document.found):
                self.assertIn(what, text)
            self.assertNotIn(document.file, out)

    def test_a_study_of_the_list_is_shown_alike(self):
        for each in self.document('show')[1]:
            self.assertEqual(each, self.document('show', each['id'])[1])

    def test_ratios_are_computed(self):
        _, study_ = self.document('show', 'S1')
        self.assertAlmostEqual(0.01561 / 0.01842, study_['rows'][0]['ratio'])

    def test_one_case_is_shown_alone(self):
        status, out, _ = self.call('show', 'S4', '--case', '2x16-tuned')
        self.assertEqual(0, status)
        self.assertIn('2x16-tuned', out)
        self.assertNotIn('1x24-', out.partition('Lessons')[0])
        _, study_ = self.document('show', 'S4', '--case', '2x16-tuned')
        self.assertEqual(1, len(study_['rows']))

    def test_an_unknown_study_or_case_is_refused(self):
        self.assert_unusable('no such study', 'show', 'S9')
        self.assert_unusable('no case', 'show', 'S4', '--case', 'sriov')
        self.assert_unusable('needs STUDY', 'show', '--case', '4x8-tuned')


class ScaleTest(StudyCase):
    def test_every_case_has_its_line_or_its_reason(self):
        status, out, _ = self.call('show', 'S3', PLAIN)
        self.assertEqual(0, status)
        lines = {line.split()[0]: line for line in out.splitlines() if line}
        self.assertIn('1x32', lines['off-1vm-4'])
        self.assertIn('cannot be run: it needs SMT', lines['on-1vm-4'])
        cases = [line for line in lines if line.startswith(('on', 'off'))]
        self.assertEqual(16, len(cases))

    def test_cases_that_differ_in_ranks_or_pages_have_different_lines(self):
        for study_id in ('S1', 'S3'):
            _, out, _ = self.call('show', study_id, SMT)
            lines = [line.partition(' ')[2] for line in out.splitlines()
                     if ' smt=' in line or 'nested_paging=' in line]
            self.assertEqual(len(lines), len(set(lines)), out)
        _, (plan,) = self.document('show', 'S3', SMT, '--case',
                                   'on-2vm-1net-4')
        self.assertEqual(['16'], [
            each['ranks'] for each in plan['benchmarks']])

    def test_a_document_has_the_flavor_or_the_reason(self):
        status, plans = self.document('show', 'S3', SMT, '--case',
                                      'on-4vm-4net-8')
        self.assertEqual(0, status)
        plan, = plans
        self.assertEqual((4, 16, {}), (
            plan['per_host'], plan['flavor']['vcpus'],
            plan['flavor']['extra_specs']))
        status, plans = self.document('show', 'S5', SMT)
        self.assertEqual(1, status)
        self.assertTrue(all(plan['refused'] for plan in plans))

    def fleet(self, *classes):
        """Write a fleet document of classes with a topology each."""
        path = self.folder / 'fleet.yaml'
        path.write_text(json.dumps({'schema_version': 1, 'classes': {
            name: {'hosts': [{'topology': json.loads(
                pathlib.Path(topology).read_text()), 'name': name,
                'count': count}], 'profile': profile}
            for name, topology, count, profile in classes}}))
        return str(path)

    def test_all_cases_are_scaled_to_each_class_of_a_fleet(self):
        path = self.fleet(('plain', PLAIN, 1, 'dense'),
                          ('smt', SMT, 2, 'dense'),
                          ('kept', PLAIN, 1, {'base': 'dense',
                           'housekeeping_cores_per_cell': 2}))
        status, plans = self.document('show', 'S4', '--fleet', path)
        self.assertEqual(0, status)
        for name, topology in (('plain', PLAIN), ('smt', SMT)):
            own = [each for each in plans if each['class'] == name]
            _, alone = self.document('show', 'S4', topology)
            self.assertEqual([each['case'] for each in alone],
                             [each['case'] for each in own])
            self.assertEqual([each.get('flavor') for each in alone],
                             [each.get('flavor') for each in own])
        (kept,) = [each for each in plans if each['class'] == 'kept'
                   and each['case'] == '4x8-tuned']
        self.assertEqual(7, kept['flavor']['vcpus'])
        _, out, _ = self.call('show', 'S4', '--fleet', path)
        self.assertEqual(['plain:', 'smt:', 'kept:'], [
            line for line in out.splitlines() if line.endswith(':')])
        _, out, _ = self.call('show', 'S4', '--fleet', path, '--format', 'csv',
                              '--column', 'Case', '--column', 'Class')
        self.assertIn('"4x8-tuned","kept"', out)

    def test_classes_and_hosts_of_a_fleet_are_chosen(self):
        path = self.fleet(('plain', PLAIN, 1, 'dense'),
                          ('smt', SMT, 2, 'dense'))
        for chosen, names in ((('plain',), {'plain'}),
                              (('smt-2',), {'smt-2'}),
                              (('plain', 'smt-1'), {'plain', 'smt-1'})):
            _, plans = self.document('show', 'S4', '--fleet', path, *chosen)
            self.assertEqual(names, {host for each in plans
                                     for host in each.get('hosts', ())})
        for what, *words in (
                ('smd: is neither a class nor a host of', 'smd'),
                ('(did you mean smt?)', 'smd')):
            self.assert_unusable(what, 'show', 'S4', '--fleet', path, *words)

    def test_hosts_may_follow_options(self):
        status, (plan,) = self.document('show', 'S4', '--case', '4x8-tuned',
                                        PLAIN)
        self.assertEqual((0, '4x8-tuned'), (status, plan['case']))

    def test_what_cannot_be_used_is_named(self):
        for what, *words in (
                ('no case', 'S4', PLAIN, '--case', 'sriov'),
                ('/nowhere', 'S4', '/nowhere'),
                ('/nowhere', 'S4', '--fleet', '/nowhere'),
                ('NAME=', 'S5', PLAIN, PLAIN)):
            self.assert_unusable(what, 'show', *words)
        self.assert_unusable('--fleet: needs STUDY', 'show', '--fleet', 'x')

    def test_warnings_about_the_hosts_are_shown_once(self):
        uneven = str(hosts.TOPOLOGIES / 'xeon-2s-24c-snc2-1g.json')
        for words in (('--case', 'numa-host-warm'), ()):
            _, _, err = self.call('show', 'S2', f'n7={uneven}', *words)
            self.assertEqual(
                ['huge-pages-given-back', 'no-housekeeping', 'no-parts'],
                sorted(line.split(': ')[1] for line in err.splitlines()))
            self.assertIn('Warning: no-parts: n7: no flavor is smaller', err)


class CompareTest(StudyCase):
    def test_a_folder_without_results_is_refused(self):
        folder = str(self.folder / 'none')
        self.assert_unusable('bench.sqlite', 'compare', 'S4', '--data',
                             folder)
        self.assertFalse(pathlib.Path(folder).exists())

    def test_before_any_result_the_published_figures_are_shown(self):
        with mock.patch.dict(os.environ, XDG_DATA_HOME=str(self.folder)):
            status, out, err = self.call('compare', 'S4')
        self.assertEqual((0, 19, ''), (
            status, out.count('not yet run'), err))
        self.assertEqual([], [*self.folder.iterdir()])

    def test_an_empty_store_shows_what_is_not_yet_run(self):
        url = f'sqlite:///{self.folder}/bench.sqlite'
        self.enterContext(mock.patch.dict(os.environ, HPCVIRT_STORE=url))
        words = ('compare', 'S4', '--data', str(self.folder))
        status, out, _ = self.call(*words)
        self.assertEqual((0, 19), (status, out.count('not yet run')))
        _, comparisons = self.document(*words, '--case', '1x24-tuned')
        self.assertEqual([('1x24-tuned', [])], [
            (each['case']['id'], each['results']) for each in comparisons])

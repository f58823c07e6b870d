# SPDX-License-Identifier: Apache-2.0

import copy
import dataclasses
import json

import testtools

from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt.bench.catalogue import catalogue as benchmarks
from hpcvirt.bench.catalogue import sizing
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record
from hpcvirt.bench.report import study as report_study
from hpcvirt.bench.report import text
from hpcvirt.bench.studies import catalogue as study_catalogue
from hpcvirt.bench.studies import document
from hpcvirt.bench.studies import preconditions
from hpcvirt.bench.studies import scaling
from hpcvirt.bench.studies import study
from hpcvirt.specs import codec
from tests.builders import hosts
from tests.builders import study_runs


def use_of(name, case):
    found = study_catalogue.get(name).case(case)
    return found, found.benchmarks[0]


class TestParameters(testtools.TestCase):
    def test_guests_of_the_study_s_size_use_its_parameters(self):
        case, use = use_of('S1', 'small-on')
        self.assertEqual(
            {'N': '40000', 'NB': '100', 'P': '2', 'Q': '2', 'ranks': '4'},
            scaling.scale_parameters(case, use,
                                     sizing.Machine(4, 22100)))

    def test_other_guests_follow_the_size_rule_and_scale_the_ranks(self):
        case, use = use_of('S1', 'small-on')
        for machine in (sizing.Machine(4, 16000), sizing.Machine(16, 99000)):
            self.assertEqual(
                {'NB': '100', 'ranks': str(machine.cpus)},
                scaling.scale_parameters(case, use, machine))
        for name, ranks in (('on-4vm-1net-4', '16'), ('on-2vm-2net-8', '32'),
                            ('on-2vm-1net-16', '64')):
            case, use = use_of('S3', name)
            self.assertEqual(
                {'ranks': ranks, 'steps': '500'},
                scaling.scale_parameters(
                    case, use, sizing.Machine(64, 250000)))

    def test_a_small_machine_has_one_rank(self):
        case, use = use_of('S3', 'on-4vm-1net-4')
        self.assertEqual('1', scaling.scale_parameters(
            case, use, sizing.Machine(2, 2000))['ranks'])

    def test_a_variant_that_runs_in_each_guest_gets_no_ranks(self):
        case, _ = use_of('S3', 'on-4vm-1net-4')
        alone = study.StudyBenchmark('gromacs', 'threads', {'ranks': '4'})
        self.assertEqual({}, scaling.scale_parameters(
            case, alone, sizing.Machine(64, 250000)))

    def test_every_case_can_be_sized_for_any_machine(self):
        for study_ in study_catalogue.studies():
            for case in study_.cases:
                for use in case.benchmarks:
                    for cpus in (1, 6, 48):
                        scaling.scale_parameters(case, use,
                                           sizing.Machine(cpus, 64000))


class TestStandIns(testtools.TestCase):
    def test_a_free_benchmark_stands_in_with_the_ranks_of_the_case(self):
        case, _ = use_of('S3', 'off-1vm-4')
        self.assertEqual(
            (study.StudyBenchmark('gromacs', 'mpi', {'ranks': '4'}),),
            scaling.select_benchmarks(case, 'gmx'))

    def test_a_stand_in_for_two_benchmarks_is_run_once(self):
        case, _ = use_of('S5', 'sriov')
        self.assertEqual(['netpipe'], [
            use.benchmark for use
            in scaling.select_benchmarks(case, 'netpipe')])

    def test_a_stand_in_that_the_study_does_not_allow_is_refused(self):
        for name, case, word in (('S1', 'small-on', 'stream'),
                                 ('S3', 'off-1vm-4', 'hpcc'),
                                 ('S3', 'off-1vm-4', 'nothing')):
            self.assertRaises(exception.InvalidInput,
                              scaling.select_benchmarks,
                              use_of(name, case)[0], word)

    def test_no_stand_in_is_used_unless_it_is_named(self):
        case, use = use_of('S4', '4x8-tuned')
        self.assertEqual((use,), scaling.select_benchmarks(case, None))


class TestCount(testtools.TestCase):
    def assert_counts(self, allowed, refused, *where):
        case, _ = use_of(*where)
        for count in allowed:
            scaling.check_guest_count(case, count)
        for count in refused:
            self.assertRaises(exception.InvalidInput,
                              scaling.check_guest_count, case, count)

    def test_the_number_of_guests_must_be_that_of_the_case(self):
        self.assert_counts((4,), (1, 3, 5), 'S4', '4x8-tuned')
        self.assert_counts((1,), (2,), 'S1', 'small-on')
        self.assert_counts((1,), (2,), 'S2', 'numa-host-cold')
        self.assert_counts((2,), (1, 4), 'S3', 'on-2vm-2net-4')

    def test_the_site_decides_the_number_of_sockets_and_hosts(self):
        self.assert_counts((1, 2, 4, 8), (), 'S2', 'numa-socket')
        self.assert_counts((2, 4, 8), (1,), 'S2', 'nodes-socket')
        self.assert_counts((2,), (1, 3), 'S5', 'sriov')
        self.assert_counts((2, 6), (1, 7), 'S5', 'wrf-sriov')


class TestFind(testtools.TestCase):
    def test_a_study_is_found_by_its_id_in_any_case(self):
        self.assertEqual('S3', study_catalogue.get('s3').id)
        self.assertEqual(study_catalogue.get('S3'), study_catalogue.get('s3'))

    def test_an_unknown_study_is_refused_with_those_there_are(self):
        error = self.assertRaises(exception.InvalidInput,
                                  study_catalogue.get, 'S6')
        self.assertIn('S1, S2, S3, S4, S5', str(error))

    def test_all_studies_are_loaded_in_their_order(self):
        self.assertEqual(['S1', 'S2', 'S3', 'S4', 'S5'],
                         [study_.id for study_ in study_catalogue.studies()])


class TestStudies(testtools.TestCase):
    """What holds for every study."""

    def test_rows_and_cases_belong_together(self):
        for study_ in study_catalogue.studies():
            cases = {case.id for case in study_.cases}
            self.assertEqual(len(cases), len(study_.cases))
            ids = [row.id for row in study_.rows]
            self.assertEqual(len(set(ids)), len(ids))
            for row in study_.rows:
                self.assertIn(row.case, cases)

    def test_every_figure_has_its_place_in_the_document(self):
        for study_ in study_catalogue.studies():
            for each in (*study_.rows, *study_.statements):
                self.assertRegex(
                    each.place, r'^(last )?(table|slide|section|paragraph)',
                    f'{study_.id}: {each}')

    def test_a_figure_without_a_place_is_refused(self):
        plain = serialization.dump(study_catalogue.get('S5'))
        for kind in ('rows', 'statements'):
            broken = copy.deepcopy(plain)
            del broken[kind][0]['place']
            error = self.assertRaises(
                exception.InvalidInput, serialization.load,
                study.Study, broken, 'x')
            self.assertIn(f"{kind}[0]: the key 'place' is missing", str(error))

    def test_cases_name_existing_benchmarks(self):
        for study_ in study_catalogue.studies():
            for case in study_.cases:
                self.assertTrue(case.benchmarks)
                for use in case.benchmarks:
                    found = benchmarks.get(use.benchmark)
                    self.assertEqual(use.variant,
                                     found.variant(use.variant).name)
                    known = {'ranks', 'threads', *found.size}
                    self.assertLessEqual(set(use.parameters), known)
                    for other in use.stand_ins:
                        benchmarks.get(other)

    def test_rows_name_metrics_of_their_benchmark(self):
        for study_ in study_catalogue.studies():
            for row in study_.rows:
                known = benchmarks.output_source(row.benchmark)
                metrics = {
                    (figure.name, figure.direction)
                    for one in benchmarks.all_definitions()
                    if one.parser == known.parser for figure in one.metrics}
                self.assertIn((row.metric, row.direction), metrics)

    def test_shapes_are_those_of_the_study(self):
        shapes = {case.guests.shape
                  for case in study_catalogue.get('S4').cases}
        self.assertEqual({'4x8', '2x16', '1x24', '1x32'}, shapes)


CASE = study.Case('one', 'one guest', study.CaseGuests(1, 8), (
    study.StudyBenchmark('hpcc', 'mpi'),))
ROW = study.PublishedComparison('hpl', 'one', 'HPL', 'hpcc', 'HPL_Tflops',
                                'Gflop/s', outcome.Direction.UP, 'table 1',
                                native=50.0, guest=45.0)
STUDY = study.Study(
    'S9', 'A study', 'CERN-HEPiX-2015', ('one machine',), (CASE,), (ROW,),
    ('measure it',))


class TestOfStudy(testtools.TestCase):
    def test_it_can_be_written_as_json(self):
        found = document.describe_study(STUDY)
        self.assertEqual(found, json.loads(json.dumps(found)))
        self.assertEqual('S9', found['id'])
        self.assertEqual(['one'], [case['id'] for case in found['cases']])

    def test_it_says_where_the_study_was_published(self):
        found = document.describe_study(STUDY)['document']
        self.assertEqual('CERN-HEPiX-2015', found['key'])
        self.assertIn('title', found)
        self.assertNotIn('file', found)

    def test_a_row_has_its_ratio(self):
        row, = document.describe_study(STUDY)['rows']
        self.assertEqual((50.0, 45.0), (row['native'], row['guest']))
        self.assertAlmostEqual(0.9, row['ratio'])


class TestOfComparison(testtools.TestCase):
    def test_a_published_figure_stands_next_to_the_results(self):
        compared = study_runs.of_row([study_runs.hpcc(0.04, 0.038)],
                                     'S1', 'hpl-small-on')
        found = document.describe_comparison(compared)
        self.assertEqual(found, json.loads(json.dumps(found)))
        self.assertAlmostEqual(compared.row.guest / compared.row.native,
                               found['row']['ratio'])
        result, = found['results']
        self.assertAlmostEqual(0.95, result['interval']['ratio'])

    def test_a_case_without_a_published_figure_has_no_row(self):
        _, compared = study_runs.compared('S5', [])
        found = [document.describe_comparison(each) for each in compared]
        self.assertEqual(
            ['passthrough', 'virtio'],
            [each['case']['id'] for each in found if each['row'] is None])


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


HOST = hosts.named('intel-2s-16c-smt')


def guest(vcpus, cells=1, memory_mib=8192):
    return codec.decode(vcpus, memory_mib, {
        'hw:cpu_policy': 'dedicated', 'hw:numa_nodes': str(cells)})


def scale(study_id, case, *guests):
    site = scaling.Site(('n0',), 32, 2, tuple(
        scaling.PlannedGuest(each, 32 // each.cpus) for each in guests))
    return scaling.scale(study_catalogue.get(study_id).case(case), site)


class TestScale(testtools.TestCase):
    """What no host of ``tests/unit/acceptance/test_case_plan.py`` shows."""

    def test_the_guest_with_the_fewest_cells_is_chosen(self):
        scaled = scale('S4', '2x16-tuned', guest(16, 2), guest(16, 1))
        self.assertEqual(1, len(scaled.guest.cells))

    def test_a_guest_of_which_too_few_fit_is_refused(self):
        few = scaling.Site(('a',), 32, 2, (scaling.PlannedGuest(guest(8), 3),))
        refusal = scaling.scale(
            study_catalogue.get('S4').case('4x8-tuned'), few)
        self.assertIn('4 guests of 8 CPUs', refusal.reason)

    def test_a_host_without_smt_keeps_one_thread_of_each_core(self):
        off, on = (next(case for case in study_catalogue.get('S3').cases
                        if case.host_settings['smt'] == smt)
                   for smt in ('off', 'on'))
        bare = scaling.set_smt(off, HOST)
        self.assertEqual(len(HOST.cpus) // 2, len(bare.cpus))
        self.assertEqual(1, bare.threads_per_core)
        self.assertIn('needs SMT', scaling.set_smt(on, bare).reason)
        self.assertEqual(HOST, scaling.set_smt(on, HOST))


class TestShares(testtools.TestCase):
    def test_shares_of_the_study_s_host_give_the_study_s_guests(self):
        # S3 has 8 CPUs without and 16 with SMT, S4 has 32.
        for name, smt, cpus in (('S3', 'on', 16), ('S4', None, 32)):
            for case in study_catalogue.get(name).cases:
                guests = case.guests
                if (guests.partition is study.GuestSpan.PART
                        and case.host_settings.get('smt') == smt):
                    above, below = map(int, guests.share.split('/'))
                    self.assertEqual(guests.vcpus * below, cpus * above)
                else:
                    self.assertEqual('', guests.share)


class TestStudy(testtools.TestCase):
    def row(self, name, row_id):
        return next(row for row in study_catalogue.get(name).rows
                    if row.id == row_id)

    def test_ratios_are_guest_over_native(self):
        self.assertAlmostEqual(0.01561 / 0.01842,
                               self.row('S1', 'ra-small-on').ratio)
        self.assertAlmostEqual(926 / 915, self.row('S3', 'off-1vm-8').ratio)

    def test_a_stated_percentage_follows_the_direction_of_its_metric(self):
        self.assertAlmostEqual(0.967, self.row('S4', '4x8-tuned').ratio)
        self.assertAlmostEqual(1.28, self.row('S5', 'qe').ratio)
        self.assertAlmostEqual(1.4, self.row('S2', 'numa-host-warm').ratio)

    def test_a_loss_below_a_percentage_is_a_ratio_above_another(self):
        for row_id, ratio in (('bandwidth', 'above 0.9800'),
                              ('latency-large', 'below 1.1000'),
                              ('qe-ethernet', 'above 6.0000')):
            self.assertEqual(ratio, self.row('S5', row_id).figures[2])
        self.assertEqual('at least 1.6300',
                         self.row('S2', 'nodes-virtio').figures[2])

    def test_a_printed_number_may_be_a_range_or_a_limit(self):
        self.assertLessEqual(
            {'about 1 to 2 %', '7 to 8 %', '26 %', '6 %', '20 %',
             'above 100000 per second'},
            {each.figure for each in study_catalogue.get('S4').statements})
        self.assertLessEqual(
            {'25 times', 'about 10 to 50 %', 'at least 20 %',
             'below 10 times'},
            {each.figure for each in study_catalogue.get('S5').statements})

    def test_a_case_is_found_by_name(self):
        self.assertEqual('sriov', study_catalogue.get('S5').case('sriov').id)
        self.assertRaises(exception.InvalidInput,
                          study_catalogue.get('S5').case, 'x')

    def test_one_case_has_its_rows_only(self):
        limited = study_catalogue.get('S1').limited_to('small-on')
        self.assertEqual(['small-on'], [case.id for case in limited.cases])
        self.assertEqual(['ra-small-on', 'hpl-small-on'],
                         [row.id for row in limited.rows])

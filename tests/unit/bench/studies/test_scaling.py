# SPDX-License-Identifier: Apache-2.0

import testtools

from hpcvirt import exception
from hpcvirt.bench.catalogue import sizing
from hpcvirt.bench.studies import catalogue as study_catalogue
from hpcvirt.bench.studies import scaling
from hpcvirt.bench.studies import study
from hpcvirt.specs import codec
from tests.builders import hosts


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
        bare = scaling.prepare_host(off, HOST)
        self.assertEqual(len(HOST.cpus) // 2, len(bare.cpus))
        self.assertEqual(1, bare.threads_per_core)
        self.assertIn('needs SMT', scaling.prepare_host(on, bare).reason)
        self.assertEqual(HOST, scaling.prepare_host(on, HOST))

# SPDX-License-Identifier: Apache-2.0

"""The mapping of jobs to flavors."""

import unittest

from hypothesis import given
from hypothesis import strategies as st

from hpcvirt import exception
from hpcvirt.flavors import device_choice
from hpcvirt.model import flavor as flavor_model
from hpcvirt.simulate import mapping
from hpcvirt.simulate import workload as workloads


def flavor(cpus, ram_mib=1024, name='', **specs):
    """A flavor of dedicated CPUs; ``alias`` and ``vgpus`` are its devices."""
    extra = {'hw:cpu_policy': 'dedicated', 'hw:numa_nodes': '1'}
    if 'alias' in specs:
        extra['pci_passthrough:alias'] = specs['alias']
    if 'vgpus' in specs:
        extra['resources:VGPU'] = str(specs['vgpus'])
    return flavor_model.Flavor(name or f'f{cpus}.{ram_mib}', cpus, ram_mib, 0,
                               extra)


SMALL, LARGE = flavor(4, 4096), flavor(16, 16384)
VF = flavor(8, 8192, 'vf', alias='hpc-vf:1')
GPU = flavor(8, 8192, 'gpu', alias='gpu-a100:2')


def work(*jobs, splits=False, flavors=None):
    return workloads.Workload('log', jobs, flavors or {}, splits)


def job(cpus, memory_mib=0, time=0.0, duration=10.0, **fields):
    return workloads.WorkloadJob(time, duration, cpus, memory_mib, **fields)


class MappingTest(unittest.TestCase):
    def chosen(self, wanted, *flavors, splits=False, **arguments):
        requests = mapping.map_jobs(work(wanted, splits=splits), flavors,
                                    **arguments)
        arrival, = requests.arrivals
        return requests.flavors[arrival.flavor].flavor.name, arrival.count

    def test_a_job_gets_the_smallest_flavor_that_has_room(self):
        for wanted, name in ((job(1), 'f4.4096'), (job(4), 'f4.4096'),
                             (job(5), 'f16.16384'),
                             (job(1, 4097), 'f16.16384')):
            with self.subTest(wanted=wanted):
                self.assertEqual((name, 1), self.chosen(wanted, LARGE, SMALL))

    def test_among_equal_cpus_the_least_memory_is_chosen(self):
        self.assertEqual(('f4.2048', 1), self.chosen(
            job(4, 2000), SMALL, flavor(4, 2048), flavor(4, 1024)))

    def test_a_job_that_names_a_flavor_of_the_fleet_gets_it(self):
        eth, ib = (flavor(8, 8192, name, alias=f'{name}-vf:1')
                   for name in ('eth', 'ib'))
        for order in ((eth, ib), (ib, eth)):
            for wanted in (job(8, 8192, flavor='ib'),
                           job(8, flavor='ib', vfs=1)):
                self.assertEqual(('ib', 1), self.chosen(wanted, *order))
        # Another size, or another name, says nothing.
        self.assertEqual(('eth', 1), self.chosen(
            job(4, 8192, flavor='ib', vfs=1), eth, ib))
        requests = mapping.map_jobs(work(job(8, 8192, flavor='ib')),
                                    (eth, ib))
        self.assertIn('1 of 1 jobs (100.0 % of the CPU-hours) got the flavor '
                      'of the fleet that the workload names.', requests.rule)

    def test_the_profile_says_what_devices_are(self):
        own = flavor(8, 8192, 'set', alias='gpu4-0:1,ib-0:1')
        card = flavor(8, 8192, 'card', alias='a100:1')
        kinds = {'gpu4-0': device_choice.CountedAs.GPUS,
                 'ib-0': device_choice.CountedAs.NOTHING,
                 'a100': device_choice.CountedAs.GPUS}
        requests = mapping.map_jobs(
            work(job(2, gpus=1), job(2, vfs=1), job(2)), [SMALL, own, card],
            kinds=kinds)
        # The network card is neither a GPU nor a virtual function.
        self.assertEqual(['set', 'f4.4096', 'f4.4096'], [
            requests.flavors[each.flavor].flavor.name
            for each in requests.arrivals])
        self.assertNotIn('taken for', ' '.join(requests.rule))

    def test_devices_are_for_those_who_need_them(self):
        self.assertEqual('f16.16384', self.chosen(job(8), VF, LARGE)[0])
        self.assertEqual('vf', self.chosen(job(2, vfs=1), SMALL, VF)[0])
        self.assertEqual('gpu', self.chosen(job(2, gpus=1), VF, GPU)[0])
        self.assertEqual('vf', self.chosen(job(8), VF, SMALL)[0])

    def test_devices_that_nobody_needs_are_told(self):
        said = ('1 of 1 jobs (100.0 % of the CPU-hours) got a flavor with '
                'devices that they do not need.')
        for flavors, vf_share, told in (
                ([VF, SMALL], 0.0, True), ([VF, LARGE], 0.0, False),
                ([VF], 1.0, False), ([VF, LARGE], 1.0, False)):
            rule = mapping.map_jobs(work(job(8)), flavors,
                                    vf_share=vf_share).rule
            self.assertEqual(told, said in rule, rule)

    def test_a_device_whose_name_says_nothing_is_what_jobs_need(self):
        plain = flavor(8, 8192, 'plain', alias='a100:1')
        requests = mapping.map_jobs(work(job(2, gpus=1)), [SMALL, plain])
        self.assertEqual(1, requests.arrivals[0].flavor)
        self.assertIn('By its name, a100 is taken for GPUs.', requests.rule)

    def test_vgpus_are_gpus(self):
        self.assertEqual('vgpu', self.chosen(
            job(2, gpus=2), SMALL, flavor(8, name='vgpu', vgpus=2))[0])

    def test_a_parallel_job_becomes_several_of_the_largest(self):
        for wanted, count in ((job(40), 3), (job(32), 2),
                              (job(8, 16384 * 5), 5), (job(17), 2)):
            with self.subTest(wanted=wanted):
                self.assertEqual(('f16.16384', count), self.chosen(
                    wanted, SMALL, LARGE, splits=True))

    def test_the_parts_of_a_parallel_job_have_its_devices(self):
        self.assertEqual(('vf', 5), self.chosen(
            job(40, vfs=1), LARGE, VF, splits=True))

    def test_what_no_flavor_holds_is_left_out_and_counted(self):
        requests = mapping.map_jobs(
            work(job(40, duration=2), job(4, duration=5)), [SMALL, LARGE])
        self.assertEqual(1, len(requests.arrivals))
        self.assertIn('1 of 2 jobs (80.0 % of the CPU-hours) were larger '
                      'than every flavor, and left out.', requests.rule)

    def test_among_fleets_what_no_flavor_holds_is_requested_and_lost(self):
        requests = mapping.map_jobs(
            work(job(40, duration=2, count=2), job(3, duration=5)),
            [SMALL, LARGE], others=[SMALL, LARGE])
        self.assertEqual(
            [(mapping.requests.NO_FLAVOR, 1, 80), (0, 1, 3)],
            [(each.flavor, each.count, each.cpus)
             for each in requests.arrivals])
        self.assertIn(
            '1 of 2 jobs (91.4 % of the CPU-hours) have no flavor that is '
            'large enough, and are lost.', requests.rule)
        self.assertEqual((), requests.warnings)

    def test_among_fleets_devices_of_another_are_needed(self):
        wanted = work(job(2, 512, gpus=1), job(2, 512, vfs=1))
        self.assertEqual([-1, 0], [each.flavor for each in mapping.map_jobs(
            wanted, [SMALL], others=[GPU]).arrivals])

    def test_what_is_doubtful_is_a_warning(self):
        for jobs, said in (
                ([job(4, duration=96), job(40, duration=1)], 'left out'),
                ([job(4, duration=960), job(40, duration=1)], None),
                ([job(3, duration=10), job(2, duration=10)], '60 % more'),
                ([job(3, duration=10), job(3, duration=10)], None)):
            warnings = mapping.map_jobs(work(*jobs), [SMALL]).warnings
            self.assertEqual(bool(said), bool(warnings), warnings)
            if said:
                self.assertIn(said, warnings[0])

    def test_devices_that_no_flavor_has_are_left_out_and_counted(self):
        requests = mapping.map_jobs(work(job(2, 512, gpus=1), job(2, 512)),
                                    [SMALL])
        self.assertEqual(2, len(requests.arrivals))
        self.assertIn('1 of 2 jobs (50.0 % of the CPU-hours) lost devices of '
                      'a kind that no flavor has.', requests.rule)

    def test_there_must_be_a_flavor_for_some_job(self):
        for jobs, flavors in (((job(40),), [SMALL]), ((job(1),), [])):
            with self.assertRaisesRegex(exception.InvalidInput,
                                        'log: there is no flavor for any'):
                mapping.map_jobs(work(*jobs), flavors)

    def test_instances_of_one_request_stay_together(self):
        self.assertEqual(('f4.4096', 3), self.chosen(job(4, count=3), SMALL))

    def test_the_flavor_that_the_log_describes_is_used(self):
        own = flavor(2, 512, 'm1')
        workload = work(job(2, 512, flavor='m1'), job(3, 512),
                        flavors={'m1': own})
        requests = mapping.map_jobs(workload, [SMALL, LARGE])
        self.assertEqual(['m1', 'f4.4096'],
                         [requests.flavors[each.flavor].flavor.name
                          for each in requests.arrivals])
        others = mapping.map_jobs(workload, [SMALL, LARGE], own=False)
        self.assertEqual(['f4.4096'] * 2,
                         [others.flavors[each.flavor].flavor.name
                          for each in others.arrivals])
        self.assertEqual([own], [each.flavor for each in mapping.map_jobs(
            work(job(2, flavor='m1'), flavors={'m1': own}), []).flavors])

    def test_a_name_in_the_log_is_not_that_of_another_flavor(self):
        own = flavor(2, 512, SMALL.name)
        requests = mapping.map_jobs(
            work(job(2, flavor=SMALL.name), flavors={SMALL.name: own}),
            [SMALL])
        self.assertEqual(own, requests.flavors[
            requests.arrivals[0].flavor].flavor)

    def test_a_malformed_flavor_is_named(self):
        bad = flavor_model.Flavor('bad', 2, 512, 0, {'hw:cpu_policy': 'no'})
        with self.assertRaisesRegex(exception.InvalidInput, 'flavor bad'):
            mapping.map_jobs(work(job(1)), [bad])

    def test_a_share_of_the_jobs_gets_a_virtual_function(self):
        workload = work(*(job(4, 512) for _ in range(2000)))
        requests, again, other = (
            mapping.map_jobs(workload, [SMALL, VF], vf_share=0.3, seed=seed)
            for seed in (1, 1, 2))
        self.assertEqual(requests, again)
        self.assertNotEqual(requests.arrivals, other.arrivals)
        got = sum(arrival.flavor for arrival in requests.arrivals)
        self.assertAlmostEqual(600, got, delta=60)
        self.assertIn(f'{got} of 2,000 jobs ({got / 20:.1f} % of the '
                      'CPU-hours) got a virtual function in addition.',
                      requests.rule)
        self.assertEqual(2000, sum(
            arrival.flavor for arrival in mapping.map_jobs(
                workload, [SMALL, VF], vf_share=1.0).arrivals))

    def test_a_flavor_of_the_log_makes_room_for_one_with_a_virtual_function(
            self):
        own = {each.name: each for each in (SMALL, GPU, VF)}
        workload = work(*(job(4, 512, flavor=name) for name in own),
                        flavors=own)
        requests = mapping.map_jobs(workload, [LARGE, VF], vf_share=1.0)
        self.assertEqual(['vf', 'gpu', 'vf'],
                         [requests.flavors[each.flavor].flavor.name
                          for each in requests.arrivals])
        self.assertIn('1 of 3 jobs (33.3 % of the CPU-hours) got a virtual '
                      'function in addition.', requests.rule)
        self.assertIn('2 of 3 jobs (66.7 % of the CPU-hours) got the flavor '
                      'that the workload describes.', requests.rule)

    def test_a_job_too_large_for_a_virtual_function_keeps_its_flavor(self):
        requests = mapping.map_jobs(work(job(12, 512)), [SMALL, LARGE, VF],
                                    vf_share=1.0)
        self.assertEqual(1, requests.arrivals[0].flavor)
        self.assertIn('were too large for a virtual function',
                      ' '.join(requests.rule))

    def test_virtual_functions_to_add_must_exist(self):
        with self.assertRaisesRegex(exception.InvalidInput,
                                    'none has a virtual function'):
            mapping.map_jobs(work(job(1)), [SMALL], vf_share=0.1)

    def test_the_rule_says_how_much_more_is_requested(self):
        requests = mapping.map_jobs(work(job(2, 512), job(4, 512)), [SMALL])
        self.assertEqual('The flavors have 33.3 % more CPU-hours than these '
                         'jobs ask for.', requests.rule[-1])

    @given(st.lists(st.tuples(
        st.integers(1, 9), st.integers(1, 9), st.sampled_from(
            ('', 'vf:1', 'vf:2', 'gpu:1', 'vf:1,gpu:1'))), min_size=1,
        max_size=6), st.integers(1, 30), st.integers(0, 30),
        st.integers(0, 2), st.integers(0, 1), st.booleans())
    def test_no_smaller_flavor_would_do(self, kinds, cpus, memory, vfs,
                                        gpus, splits):
        flavors = [flavor(own, ram, f'{number}',
                          **({'alias': alias} if alias else {}))
                   for number, (own, ram, alias) in enumerate(kinds)]
        counts = [(alias.count('vf:1') + 2 * alias.count('vf:2'),
                   alias.count('gpu')) for _, _, alias in kinds]
        # What no flavor has is not requested.
        vfs_left = vfs if any(each[0] for each in counts) else 0
        gpus_left = gpus if any(each[1] for each in counts) else 0
        able = [(bool(has[0]) > bool(vfs_left)
                 or bool(has[1]) > bool(gpus_left), own, ram, sum(has),
                 number)
                for number, ((own, ram, _), has)
                in enumerate(zip(kinds, counts, strict=True))
                if has[0] >= vfs_left and has[1] >= gpus_left
                and own >= cpus and ram >= memory]
        workload = work(job(cpus, memory, vfs=vfs, gpus=gpus), splits=splits)
        try:
            arrival, = mapping.map_jobs(workload, flavors).arrivals
        except exception.InvalidInput:
            self.assertFalse(able)
            return
        own, ram, _ = kinds[arrival.flavor]
        self.assertGreaterEqual(own * arrival.count, cpus)
        self.assertGreaterEqual(ram * arrival.count, memory)
        if able:
            self.assertEqual((min(able)[-1], 1),
                             (arrival.flavor, arrival.count))
        else:
            self.assertTrue(splits)

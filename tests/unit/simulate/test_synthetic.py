# SPDX-License-Identifier: Apache-2.0

"""Workloads of the model."""

import collections
import statistics
import unittest

from hpcvirt import exception
from hpcvirt.model import flavor as flavor_model
from hpcvirt.simulate import mapping
from hpcvirt.simulate import synthetic

FLAVORS = tuple(
    flavor_model.Flavor(f'f{cpus}', cpus, cpus * 1024, 0,
                        {'hw:cpu_policy': 'dedicated'}) for cpus in (2, 8, 32))


def quantile(values, part):
    return sorted(values)[int(part * len(values))]


class CloudTest(unittest.TestCase):
    def test_flavors_get_the_same_cpu_hours(self):
        workload = synthetic.parse('cloud:40000').workload(3, FLAVORS)
        work = collections.Counter()
        for job in workload.jobs:
            work[job.flavor] += job.cpus * job.duration
        mean = sum(work.values()) / 3
        for name in ('f2', 'f8', 'f32'):
            self.assertAlmostEqual(1, work[name] / mean, delta=0.1)

    def test_some_lives_are_ten_times_longer_than_others(self):
        workload = synthetic.parse('cloud:20000').workload(3, FLAVORS)
        lives = [job.duration for job in workload.jobs]
        self.assertAlmostEqual(7 * 86400, statistics.mean(lives),
                               delta=0.06 * 7 * 86400)
        self.assertGreater(quantile(lives, 0.9), 10 * quantile(lives, 0.1))
        self.assertAlmostEqual(3600, workload.jobs[-1].time / 19999, delta=100)

    def test_each_request_is_for_its_flavor(self):
        alike = twin(FLAVORS[1])
        workload = synthetic.parse('cloud:300').workload(1, (*FLAVORS, alike))
        requests = mapping.map_jobs(workload, (*FLAVORS, alike))
        self.assertEqual(
            [job.flavor for job in workload.jobs],
            [requests.flavors[arrival.flavor].flavor.name
             for arrival in requests.arrivals])
        self.assertEqual(4, len(requests.flavors))
        self.assertIn('twin', {job.flavor for job in workload.jobs})

    def test_there_must_be_flavors(self):
        with self.assertRaisesRegex(exception.InvalidInput,
                                    'cloud: there are no flavors'):
            synthetic.parse('cloud').workload(0, ())


def twin(flavor):
    return flavor_model.Flavor('twin', flavor.vcpus, flavor.ram_mib,
                               flavor.disk_gib, flavor.extra_specs)


class ParseTest(unittest.TestCase):
    def test_a_seed_always_gives_the_same_workload(self):
        model = synthetic.parse('cloud:50')
        first, again, other = (model.workload(seed, FLAVORS)
                               for seed in (1, 1, 2))
        self.assertEqual(first, again)
        self.assertNotEqual(first.jobs, other.jobs)
        self.assertEqual(50, len(first.jobs))

    def test_there_is_a_number_by_default(self):
        self.assertEqual(10_000, synthetic.parse('cloud').jobs)

    def test_what_does_not_name_the_model_is_none(self):
        for text in ('cloud.swf', './cloud', 'Cloud', '', '-'):
            self.assertIsNone(synthetic.parse(text))

    def test_the_number_of_jobs_must_be_one(self):
        for text in ('cloud:', 'cloud:1', 'cloud:x', 'cloud:-5',
                     'cloud:1000001', 'cloud:5:5'):
            with self.assertRaisesRegex(exception.InvalidInput,
                                        'number of jobs must be from 2'):
                synthetic.parse(text)

# SPDX-License-Identifier: Apache-2.0

"""Workloads of models."""

import collections
import itertools
import math
import statistics
import unittest

from hpcvirt import exception
from hpcvirt.model import flavor as flavor_model
from hpcvirt.simulate import mapping
from hpcvirt.simulate import synthetic

#: Of the log of 10,000 jobs that the authors' program created for 256
#: processors (lublin_256.swf): parts of the jobs, and quantiles.
POWERS_OF_TWO = 0.861
AT_MOST = {1: 0.249, 2: 0.341, 4: 0.475, 8: 0.614, 16: 0.748, 32: 0.879,
           64: 0.932, 128: 0.973}
LOG_RUN_TIMES = {0.05: 1.39, 0.25: 3.04, 0.5: 4.92, 0.75: 9.02, 0.95: 9.94,
                 0.99: 10.5}
LOG_BETWEEN = {0.25: 3.74, 0.5: 4.76, 0.75: 5.91, 0.95: 7.87}
CORRELATION = 0.257

FLAVORS = tuple(
    flavor_model.Flavor(f'f{cpus}', cpus, cpus * 1024, 0,
                        {'hw:cpu_policy': 'dedicated'}) for cpus in (2, 8, 32))


def quantile(values, part):
    return sorted(values)[int(part * len(values))]


class LublinTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.workload = synthetic.parse('lublin').workload(5, ())
        cls.jobs = cls.workload.jobs

    def test_sizes_are_those_of_the_authors_program(self):
        cpus = [job.cpus for job in self.jobs]
        self.assertEqual(10000, len(cpus))
        powers = sum(number & (number - 1) == 0 for number in cpus)
        self.assertAlmostEqual(POWERS_OF_TWO, powers / len(cpus), delta=0.02)
        for size, part in AT_MOST.items():
            self.assertAlmostEqual(
                part, sum(number <= size for number in cpus) / len(cpus),
                delta=0.02, msg=size)
        self.assertEqual(256, max(cpus))

    def test_run_times_are_those_of_the_authors_program(self):
        logs = [math.log(job.duration) for job in self.jobs]
        for part, value in LOG_RUN_TIMES.items():
            self.assertAlmostEqual(value, quantile(logs, part), delta=0.15,
                                   msg=part)
        self.assertLessEqual(max(logs), 12)
        self.assertAlmostEqual(CORRELATION, statistics.correlation(
            [math.log(job.cpus) for job in self.jobs], logs), delta=0.04)

    def test_arrivals_are_those_of_the_authors_program(self):
        times = [job.time for job in self.jobs]
        self.assertEqual(0, times[0])
        logs = [math.log(later - time + 1) for time, later
                in itertools.pairwise(times)]
        for part, value in LOG_BETWEEN.items():
            self.assertAlmostEqual(value, quantile(logs, part), delta=0.15,
                                   msg=part)
        hours = collections.Counter(int(time % 86400 // 3600)
                                    for time in times)
        self.assertGreater(max(hours.values()), 5 * min(hours.values()))

    def test_jobs_may_be_split(self):
        self.assertTrue(self.workload.splits)


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
        for text in ('lublin:50', 'cloud:50'):
            model = synthetic.parse(text)
            first, again, other = (model.workload(seed, FLAVORS)
                                   for seed in (1, 1, 2))
            self.assertEqual(first, again)
            self.assertNotEqual(first.jobs, other.jobs)
            self.assertEqual(50, len(first.jobs))

    def test_what_names_no_model_is_none(self):
        for text in ('lublin_256.swf', './lublin', 'Cloud', '', '-'):
            self.assertIsNone(synthetic.parse(text))

    def test_the_number_of_jobs_must_be_one(self):
        for text in ('lublin:', 'cloud:1', 'cloud:x', 'lublin:-5',
                     'lublin:1000001', 'cloud:5:5'):
            with self.assertRaisesRegex(exception.InvalidInput,
                                        'number of jobs must be from 2'):
                synthetic.parse(text)

# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt import exception
from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.catalogue import sizing
from hpcvirt.bench.run import run_request
from hpcvirt.bench.run import run_spec
from hpcvirt.bench.run import target
from tests.builders import places

MACHINE = sizing.Machine(4, 8192)


def make(name, variant=None, hosts=(), **settings):
    definition = catalogue.get(name)
    return run_spec.make(run_request.RunRequest(
        definition, definition.variant(variant), settings), MACHINE, hosts)


class RunSpecTest(unittest.TestCase):
    def test_no_placeholder_is_left(self):
        paths = {'npb_mpi': '/opt/npb', 'npb_ser': '/opt/npb',
                 'npb_omp': '/opt/npb', 'source': '/opt/stream.c'}
        for name in ('hpcc', 'stream', 'npb-cg', 'netpipe'):
            spec = make(name, **{path.name: paths[path.name] for path
                        in catalogue.get(name).paths})
            words = [*spec.command, *spec.environment.values(),
                     *spec.products, *spec.expect.values()]
            self.assertEqual([], [word for word in words if '{' in word])

    def test_settings_override_the_rule_and_reach_the_input_file(self):
        spec = make('hpcc', N='300')
        self.assertEqual('300', spec.values['N'])
        self.assertEqual('300', spec.parameters['N'])
        self.assertRegex(spec.inputs['hpccinf.txt'], rb'(?m)^300 +Ns')

    def test_hosts_stand_where_the_command_names_them(self):
        words = ' '.join(make(
            'hpcc', hosts=('--host', 'a:2,b:2')).command)
        self.assertIn('-np 4 --host a:2,b:2', words)

    def test_a_path_is_needed_only_by_the_variants_that_use_it(self):
        make('npb-cg', 'serial', npb_ser='/opt/npb')
        with self.assertRaisesRegex(exception.InvalidInput,
                                    '--set npb_mpi=PATH'):
            make('npb-cg', 'mpi', npb_ser='/opt/npb')

    def test_an_unknown_setting_is_refused(self):
        with self.assertRaisesRegex(exception.InvalidInput, 'klass'):
            make('hpcc', klass='S')


class JobSpecTest(unittest.TestCase):
    def job(self, name, **confined):
        machine = target.Target(places.Machine('host'), 'vm', **confined)
        return run_spec.JobSpec(make(name), machine)

    def test_ranks_bind_themselves_where_mpirun_is_confined(self):
        job = self.job('hpcc', prefix=('taskset', '-c', '2-5'),
                       cpus=frozenset({2, 3, 4, 5}))
        self.assertEqual(('taskset', '-c', '2-5', 'mpirun'), job.command[:4])
        self.assertIn('--bind-to none sh ./bind', ' '.join(job.command))

    def test_mpirun_binds_ranks_where_it_has_the_whole_machine(self):
        job = self.job('hpcc')
        self.assertFalse(job.binds_ranks)
        self.assertIn('--bind-to core', ' '.join(job.command))

    def test_ranks_bind_themselves_where_the_benchmark_says_so(self):
        for confined in ({}, {'prefix': ('taskset', '-c', '2'),
                              'cpus': frozenset({2})}):
            job = run_spec.JobSpec(
                make('osu-latency', osu='/osu'),
                target.Target(places.Machine('host'), 'vm', **confined))
            self.assertTrue(job.binds_ranks)
            self.assertIn('--bind-to none sh ./bind /osu/osu_latency',
                          ' '.join(job.command))
            self.assertEqual('auto',
                             job.run.environment['HPCVIRT_NETWORK_DEVICE'])

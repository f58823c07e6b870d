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
import unittest

from hpcvirt import exception
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import record
from hpcvirt.bench.run import arms
from hpcvirt.bench.run import plan
from hpcvirt.bench.run import request
from tests.unit.bench.run import machines

COMPARE = record.Purpose.COMPARE


class Rebooter:

    def reboot(self):
        raise AssertionError('a plan reboots nothing')


def guest(**known):
    return machines.guest(host='n17', flavor='hpc.4c', rebooter=Rebooter(),
                          **known)


def make(names=('stream',), guests=None, natives=None, settings=(),
         **more):
    more.setdefault('purpose', COMPARE)
    more.setdefault('pair_count', 10)
    pairs = arms.pair(guests or [guest()], natives or [machines.native()])
    wanted = request.find(names, request.read_settings(
        ['source=/opt/stream.c', *settings], '--set'), record.Launch.WARM)
    return plan.make(wanted, pairs, **more)


class MakeTest(unittest.TestCase):

    def test_a_run_for_each_benchmark_and_each_state_in_this_order(self):
        runs = make(['stream', 'netpipe'], launch='both').runs
        self.assertEqual(
            [('stream', 'warm'), ('stream', 'cold'),
             ('netpipe', 'warm'), ('netpipe', 'cold')],
            [(run.spec.definition.name, run.launch) for run in runs])

    def test_native_jobs_come_first(self):
        (run,) = make().runs
        self.assertEqual(['host', 'vm'],
                         [job.target.place.name for job in run.all_jobs])

    def test_hosts_are_counted_once_in_the_order_of_the_guests(self):
        guests = [machines.guest(name, host=host) for name, host in
                  (('a', 'n18'), ('b', 'n17'), ('c', 'n18'))]
        (run,) = make(guests=guests, natives=[machines.native()] * 3).runs
        self.assertEqual(('n18', 'n17'), run.hosts)
        self.assertEqual('n18, n17', run.host)

    def test_the_shape_is_the_flavor_of_one_guest_or_the_count_of_many(self):
        self.assertEqual('hpc.4c', make().runs[0].shape)
        two = make(guests=[guest(), guest()], natives=[machines.native()] * 2)
        self.assertEqual('2x4', two.runs[0].shape)
        self.assertEqual('4x8', make(shape='4x8').runs[0].shape)

    def test_a_case_of_a_study_is_counted_as_the_study_counts(self):
        (wanted,) = request.find(['netpipe'], [])
        pairs = arms.pair([guest()])
        (run,) = plan.make(
            [dataclasses.replace(wanted, study='S4', case='1x4')], pairs,
            record.Purpose.UNPAIRED, 5).runs
        self.assertEqual(('1x4', 'S4', '1x4', None),
                         (run.shape, run.study, run.case, run.launch))


class LaunchesTest(unittest.TestCase):

    def test_native_against_native_has_no_state(self):
        self.assertIsNone(make(purpose=record.Purpose.AA).runs[0].launch)
        with self.assertRaisesRegex(exception.InvalidInput,
                                    '--launch cold.*the guest itself'):
            make(purpose=record.Purpose.AA, launch='cold')

    def test_a_cold_guest_must_be_one_that_can_be_rebooted(self):
        machine = machines.guest('ssh://vm')
        for launch in ('cold', 'both'):
            with self.assertRaisesRegex(exception.InvalidInput,
                                        'ssh://vm cannot be rebooted'):
                make(guests=[machine], launch=launch)
        self.assertEqual('warm', make(guests=[machine]).runs[0].launch)


class FingerprintTest(unittest.TestCase):

    def test_the_same_plan_has_the_same_identity(self):
        self.assertEqual(make().fingerprint, make().fingerprint)

    def test_whatever_changes_the_figures_changes_the_identity(self):
        others = [
            make(['stream', 'stream']), make(['npb-ep/serial'],
                                             settings=['npb_ser=/opt']),
            make(settings=['threads=2']), make(pair_count=11),
            make(warm_ups=2), make(launch='cold'), make(shape='4x8'),
            make(purpose=record.Purpose.AA),
            make(bounds={'triad_mb_s': judgement.Bound(0.5)}),
            make(guests=[guest(cpus=8)]),
            make(guests=[guest(host_cpus=frozenset({7}))]),
            make(guests=[machines.guest('vm2', host='n17',
                                        flavor='hpc.4c')]),
            make(natives=[machines.native('other')])]
        prints = [other.fingerprint for other in others]
        self.assertEqual(len(prints), len(set(prints)))
        self.assertNotIn(make().fingerprint, prints)

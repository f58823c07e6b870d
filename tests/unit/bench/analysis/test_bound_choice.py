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
from hpcvirt.bench.analysis import bound_choice
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import outcome
from tests.unit.bench import runs

GIVEN = {'time_s': judgement.Bound(2.0)}
CONTEXT = {'pages': 'small', 'nodes': 'one'}


def ratios(given=None, overhead=None, context=None, **run):
    run.setdefault('bounds', {})
    host = run.pop('host', 'n17')
    measured = dataclasses.replace(runs.run([100, 100], [90, 90], **run),
                                   host=host)
    bounded = bound_choice.with_bounds(
        measured, given or {}, overhead,
        CONTEXT if context is None else context)
    return {name: round(bound.ratio, 4)
            for name, bound in bounded.bounds.items()}


class WithBoundsTest(unittest.TestCase):

    def test_the_definition_bounds_a_run_that_has_no_bounds(self):
        self.assertEqual({'mops_total': round(1 / 1.03, 4)}, ratios())

    def test_the_definition_knows_runs_over_several_nodes(self):
        self.assertNotEqual(ratios(), ratios(
            context={'pages': 'small', 'nodes': 'several'}))

    def test_a_run_knows_the_hosts_that_it_spans(self):
        self.assertEqual({'mops_total': round(1 / 1.17, 4)},
                         ratios(context={}, host='n1, n2'))
        self.assertEqual({'mops_total': round(1 / 1.03, 4)},
                         ratios(context={'nodes': 'one'}, host='n1, n2'))

    def test_what_is_stated_selects_the_bounds_anew(self):
        stored = {'mops_total': judgement.Bound(
            0.5, kind=judgement.BoundKind.TRANSFERRED)}
        self.assertEqual({'mops_total': 0.5}, ratios(
            context={}, bounds=stored))
        self.assertEqual({'mops_total': round(1 / 1.17, 4)}, ratios(
            context={'nodes': 'several'}, bounds=stored))

    def test_bounds_of_the_run_go_before_those_of_the_definition(self):
        self.assertEqual({'mops_total': 0.5}, ratios(
            bounds={'mops_total': judgement.Bound(0.5)}))

    def test_bounds_of_the_user_go_before_those_of_the_run(self):
        self.assertEqual({'time_s': 2.0}, ratios(
            GIVEN, bounds={'mops_total': judgement.Bound(0.5)}))

    def test_an_overhead_follows_the_direction_of_the_metric(self):
        self.assertEqual({'mops_total': round(1 / 1.25, 4)},
                         ratios(overhead='25%'))
        self.assertEqual({'latency_us[8]': 1.25}, ratios(
            overhead='25', benchmark='osu-latency', metric='latency_us[8]',
            direction=outcome.Direction.DOWN))

    def test_an_overhead_is_for_primary_metrics_only(self):
        self.assertEqual({}, ratios(overhead='25', metric='time_s'))

    def test_a_bound_of_the_user_goes_before_the_overhead(self):
        self.assertEqual({'mops_total': 0.8, 'time_s': 2.0},
                         ratios(GIVEN, overhead='25'))

    def test_an_overhead_that_is_no_number_is_refused(self):
        self.assertRaises(exception.InvalidInput, ratios, overhead='much')

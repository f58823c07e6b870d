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

"""Nova's own tests of NUMATopologyFilter, put to HPCTopologyFilter."""

from nova.tests.unit.scheduler.filters import test_numa_topology_filters

from hpcvirt.nova import filters


class NovasTestsOfItsFilter(
        test_numa_topology_filters.TestNUMATopologyFilter):
    """What Nova asks of its filter, ours does too."""

    def setUp(self):
        super().setUp()
        self.filt_cls = filters.HPCTopologyFilter()

    # These two count the calls of a function that ours does without;
    # test_filter.CandidatesTest has the like with devices.
    test_filters_candidates = None
    test_filter_fails_if_no_matching_candidate_left = None

# SPDX-License-Identifier: Apache-2.0

"""Nova's own tests of NUMATopologyFilter, put to HPCTopologyFilter."""

from nova.tests.unit.scheduler.filters import test_numa_topology_filters

from hpcvirt.nova import filters


class NovasTestsOfItsFilter(test_numa_topology_filters.TestNUMATopologyFilter):
    """What Nova asks of its filter, ours does too."""

    def setUp(self):
        super().setUp()
        self.filt_cls = filters.HPCTopologyFilter()

    # These two count the calls of a function that ours does without;
    # test_filter.CandidatesTest has the like with devices.
    test_filters_candidates = None
    test_filter_fails_if_no_matching_candidate_left = None

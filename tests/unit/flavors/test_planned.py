# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt import bibliography
from hpcvirt.bench.studies import catalogue as study_catalogue
from hpcvirt.flavors import cpu_partition
from hpcvirt.flavors import planned
from hpcvirt.model import flavor as flavor_model
from hpcvirt.model import shape
from tests.builders import plans

#: Words that say nothing about the loss.
WORDS = cpu_partition.HostShare('socket')


class LossesTest(unittest.TestCase):
    def losses(self, pcpus, host=None, share=WORDS, count=1):
        guest = shape.Shape((shape.GuestCell(pcpus, 0, 1024),))
        flavor = planned.PlannedFlavor(
            flavor_model.Flavor('f', pcpus, 1024, 0, {}), guest,
            {'host': share} if share else {}, {'host': count}, {})
        return [(loss.low_percent, loss.high_percent, loss.configuration)
                for loss in flavor.losses(host or plans.planned_host())]

    def test_the_loss_is_that_of_the_share_of_the_dedicated_cpus(self):
        # [CERN-HEPiX-2015], table "VM sizes (cores)", column "After".
        self.assertEqual([(3.3, 3.3, '4x8')], self.losses(8))
        self.assertEqual([(4.6, 4.6, '2x16')], self.losses(9))
        self.assertEqual([(5.0, 5.0, '1x24')], self.losses(24))
        self.assertEqual([(3.0, 6.0, '1x32')],
                         self.losses(24, plans.planned_host(dedicated=24)))

    def test_a_modified_hypervisor_promises_nothing_to_a_socket(self):
        # [LBNL-Partitioning]: "On Numa nodes 40% -> 3%".
        self.assertEqual([(4.6, 4.6, '2x16')], self.losses(
            16, share=cpu_partition.HostShare('any words', is_socket=True)))

    def test_a_host_that_it_was_not_sized_for_or_takes_none_has_none(self):
        self.assertEqual([], self.losses(8, share=None))
        self.assertEqual([], self.losses(8, count=0))


class SourcesTest(unittest.TestCase):
    """A plan cites the studies; the figures stand in both places."""

    def test_losses_by_share_are_those_of_the_tuned_cases(self):
        study_ = study_catalogue.get('S4')
        rows = [row for row in study_.rows if row.case.endswith('-tuned')
                and study_.case(row.case).guests.tuned]
        self.assertEqual(
            {row.case.removesuffix('-tuned') for row in rows},
            {loss.configuration for _, loss in planned.BY_SHARE})
        for share, loss in planned.BY_SHARE:
            case = study_.case(f'{loss.configuration}-tuned')
            percents = [row.stated_percent for row in rows
                        if row.case == case.id]
            self.assertEqual((min(percents), max(percents)),
                             (loss.low_percent, loss.high_percent))
            # The study's hosts have 32 cores.
            self.assertEqual(case.guests.vcpus, share * 32)
            self.assertEqual(loss.source, bibliography.get(
                study_.source).citation)
            self.assertEqual({loss.place}, {
                row.place for row in rows if row.case == case.id})

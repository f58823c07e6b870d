# SPDX-License-Identifier: Apache-2.0

"""How many guest cells the facts of a host cell allow."""

import testtools

from hpcvirt.fit import cell_room
from hpcvirt.fit import demand
from hpcvirt.model import shape


def cell(used_mib):
    """A cell of 8 GiB that reports no pages."""
    return cell_room.CellState(
        id=0, socket=0, dedicated=8, shared=8, siblings=False, width=0,
        all_shared=False, core_cpus=(), core_pcpus=(), memory_mib=8192,
        sizes_kib=(), totals=(), usable=(), physnets=(), tunneled=False,
        cpu_ratio=1.0, ram_ratio=1.0, free=8, core_free=(), cpu_usage=0,
        memory_used_mib=used_mib, pages_free=())


class CountByMemoryTest(testtools.TestCase):
    def test_a_cell_that_is_overcommitted_takes_no_guest(self):
        wanted = demand.CellDemand(shape.CPUPolicy.DEDICATED, None, 2, 0, 2048)
        for used_mib, count in ((0, 4), (6144, 1), (6145, 0), (8192, 0),
                                (9000, 0), (20000, 0)):
            self.assertEqual(count, cell_room.count_by_memory(
                wanted, cell(used_mib)), used_mib)

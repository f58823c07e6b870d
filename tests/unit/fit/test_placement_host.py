# SPDX-License-Identifier: Apache-2.0

import dataclasses
import sys
import unittest

from hpcvirt.fit import devices
from hpcvirt.fit import placement
from hpcvirt.fit import supply as supplies
from tests.builders import tiny
from tests.builders import used_hosts


def state(*pools, **fields):
    return dataclasses.replace(used_hosts.state(supplies.Supply(
        (tiny.host_cell(),), pools)), **fields)


class HostStateTest(unittest.TestCase):
    def test_the_most_of_one_instance_is_all_that_there_is(self):
        cell = tiny.host_cell()
        used = cell._replace(free=frozenset())
        found = used_hosts.state(supplies.Supply((cell, used)))
        self.assertEqual(
            (2 * len(cell.dedicated), 2 * len(cell.shared),
             2 * cell.memory_mib), found.max_unit[:3])

    def test_without_cells_it_is_unknown(self):
        self.assertEqual((sys.maxsize,) * 4, used_hosts.state(
            supplies.Supply(())).max_unit)


class AddUpTest(unittest.TestCase):
    def test_shared_cpus_and_memory_may_be_overcommitted(self):
        shared = frozenset(range(100, 104))
        supply = supplies.Supply(
            (tiny.host_cell(taken=3, shared=shared, cpu_usage=3,
                            memory_mib=1001, memory_used_mib=500),
             tiny.host_cell(1, shared=shared, memory_mib=1000)),
            cpu_ratio=2.0, ram_ratio=1.5)
        self.assertEqual((5 + 8, 2 * 8 - 3, 1501 + 1500 - 500),
                         placement.add_up(supply).free[:3])


class DescribeTest(unittest.TestCase):
    def test_equal_hosts_have_one_key(self):
        first = devices.Pool(0, 2, {'a': '1'}, 'uuid-1')
        other = first._replace(provider='uuid-2')
        self.assertEqual(placement.describe(state(first)),
                         placement.describe(state(other)))

    def test_what_differs_has_another(self):
        pool = devices.Pool(0, 1, {}, 'u')
        known = {placement.describe(each) for each in (
            state(), state(pool), state(pool._replace(free=0)),
            state(closed='disabled'), state(traits=frozenset()),
            state(closed='held', quarantined=True),
            dataclasses.replace(state(), supply=dataclasses.replace(
                state().supply, packing=True)),
            dataclasses.replace(state(), supply=dataclasses.replace(
                state().supply, cpu_ratio=4.0)))}
        self.assertEqual(8, len(known))

# SPDX-License-Identifier: Apache-2.0

"""Small guests and hosts for the filter, with the objects of Nova."""

import logging
import unittest

import fixtures

from hpcvirt.nova import filters
from tests.builders import cases
from tests.functional import nova_objects

#: As oslo.log writes a line, with a shorter beginning.
LOG_FORMAT = '%(levelname)s %(name)s [-] %(message)s'
PINNED = {'hw:cpu_policy': 'dedicated', 'hw:mem_page_size': '2048'}


def host_cell(number=0, taken=0, **fields):
    """Make a cell of eight PCPUs on four cores with 4 GiB in huge pages."""
    cpus = range(number * 8, number * 8 + 8)
    return cases.HostCell(**{
        'id': number, 'socket': number // 2, 'dedicated': frozenset(cpus),
        'shared': frozenset(), 'pinned': frozenset(cpus[:taken]),
        'siblings': tuple(frozenset(cpus[cpu:cpu + 2])
                          for cpu in range(0, 8, 2)),
        'cpu_usage': 0, 'memory_mib': 8192, 'memory_used_mib': 0,
        'pages': (cases.Pages(4, 1 << 20), cases.Pages(2048, 2048)),
        **fields})


def host(*taken):
    """Make cells of a host, with PCPUs that are taken."""
    return tuple(host_cell(number, count)
                 for number, count in enumerate(taken))


def case(cells, guest=(4,), **fields):
    """Make a guest with a number of PCPUs in each cell, and a host."""
    return cases.Case(**{
        'host': cells, 'policy': 'dedicated', 'page_kib': 2048,
        'guest': tuple(cases.GuestCell(pcpus, 0, 1024) for pcpus in guest),
        'mappings': ({'': ['root']},), **fields})


def gpu(cell, provider=None):
    """Make a pool of one GPU of a cell."""
    return cases.Pool(cell, 1, {
        'vendor_id': '10de', 'product_id': '2330', 'dev_type': 'type-PCI',
        'address': f'0000:{cell:02x}:00.0'}, provider)


def gpu_request(count=1, affinity='required'):
    """Request such GPUs."""
    return cases.Request({'vendor_id': '10de', 'product_id': '2330'}, count,
                         affinity, 'gpu',
                         '5505fed3-8bda-db3b-7c58-de7e4646b479')


class FilterTestCase(unittest.TestCase):
    """Runs the filter on hosts, and reads what it logs."""

    def setUp(self):
        super().setUp()
        self.filter = filters.HPCTopologyFilter()
        self.log = fixtures.FakeLogger(name='hpcvirt', level=logging.DEBUG,
                                       format=LOG_FORMAT, nuke_handlers=False)
        self.log.setUp()
        self.addCleanup(self.log.cleanUp)

    def lines(self, level):
        return [line for line in self.log.output.splitlines()
                if line.startswith(level)]

    def run_filter(self, spec, *hosts):
        return [state.host for state in self.filter.filter_all(
            list(hosts), spec)]

    def states(self, *questions):
        return [nova_objects.host_state(question, f'host{number}')
                for number, question in enumerate(questions)]

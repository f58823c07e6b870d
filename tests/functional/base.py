# SPDX-License-Identifier: Apache-2.0

"""A Nova with hpcvirt, configured as described for operators."""

import json

import testtools

from hpcvirt.nova import config
from testing import machines
from testing import nova

#: The option with an alias, ``fast``, of the virtual functions of machines.
PCI_ALIAS = ('pci', 'alias', [json.dumps({
    'name': 'fast', 'vendor_id': machines.VENDOR_ID,
    'product_id': machines.VF_PRODUCT_ID, 'device_type': 'type-VF'})])


class OneNovaTestCase(testtools.TestCase):
    """Tests of one Nova, each of which leaves it as it was.

    Starting Nova takes longer than most tests.

    :cvar NOVA: the class of the Nova
    :cvar nova: the Nova of all tests of the class
    """

    NOVA: type[nova.EmbeddedNova]

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # Nova's class is a test case; "id" stands for a test.
        cls.nova = cls.NOVA('id')
        cls.addClassCleanup(cls.nova.doCleanups)
        cls.nova.setUp()


class HPCNova(nova.EmbeddedNova):
    """HPCTopologyFilter in place of two filters of Nova, all weighers."""

    AVAILABLE_FILTERS = ('nova.scheduler.filters.all_filters',
                         'hpcvirt.nova.filters.all_filters')
    ENABLED_FILTERS = (*nova.USUAL_FILTERS, 'HPCTopologyFilter')
    WEIGHT_CLASSES = ('nova.scheduler.weights.all_weighers',
                      'hpcvirt.nova.weights.all_weighers')

    def setUp(self):
        config.register()
        super().setUp()

    def create_hpc_flavor(self, cells=1, pcpus=4, mib=512, page='2048',
                          **more):
        """Create a flavor with dedicated CPUs.

        :param cells: guest NUMA cells
        :param pcpus: dedicated CPUs of each cell
        :param mib: memory of each cell
        :param page: page size
        :param more: further extra specs; ``hw__x`` stands for ``hw:x``
        """
        return self.create_flavor(cells * pcpus, cells * mib, {
            'hw:cpu_policy': 'dedicated',
            'hw:mem_page_size': page,
            'hw:numa_nodes': str(cells),
            **{key.replace('__', ':'): value for key, value in more.items()}})

    def fill_cell(self, host, cell, pcpus):
        """Boot one guest that takes CPUs of a given cell of a host.

        The claim takes the emptiest cell first, so guests are booted on the
        others too and deleted afterwards.
        """
        flavor = self.create_hpc_flavor(pcpus=pcpus)
        passing = []
        while True:
            server = self.boot(flavor, host=host)
            if self.guest(server).host_cells == (cell,):
                break
            passing.append(server)
        for each in passing:
            self.delete(each)
        return server

    def assert_sits(self, server, host_cells, pcpus, mib, page_kib=2048):
        """Check the domain of a server.

        :param host_cells: the host cell of each guest cell, or a set that
            they may be from
        :param pcpus: dedicated CPUs of each cell
        :param mib: memory of each cell
        """
        guest = self.guest(server)
        if isinstance(host_cells, (set, frozenset)):
            self.assertEqual(len(guest.cells), len(set(guest.host_cells)))
            self.assertLessEqual(set(guest.host_cells), host_cells)
        else:
            self.assertEqual(tuple(host_cells), guest.host_cells)
        machine = self.connections[self.host_of(server)].machine
        for cell in guest.cells:
            home = machine.host.by_id[cell.host_cell]
            self.assertEqual(pcpus, len(cell.vcpus))
            self.assertEqual(pcpus, len(guest.pinned_of(cell) & home.cpus))
            self.assertEqual(mib, cell.memory_mib)
            self.assertEqual(page_kib, cell.page_kib)
        self.assertEqual([], self.faults())
        return guest

# SPDX-License-Identifier: Apache-2.0

"""The machines of etc/hpcvirt/topologies are as their names say."""

import unittest

from hpcvirt import topology
from hpcvirt.topology import snapshot
from tests.builders import hosts


class ShippedMachinesTest(unittest.TestCase):
    def test_files_are_as_hpcvirt_writes_them(self) -> None:
        for path in hosts.TOPOLOGIES.glob('*.json'):
            host = topology.read(str(path))
            self.assertEqual(path.read_text(), snapshot.dumps(host))
            self.assertEqual(path.stem, host.name)

    def test_each_machine_has_the_shape_of_its_name(self) -> None:
        found = {}
        for host in hosts.shipped():
            found[host.name] = (
                len(host.sockets), len(host.cells), len(host.cpus),
                host.threads_per_core,
                max(len(cell.llc) for cell in host.cells))
        self.assertEqual({
            'single-1s-8c-smt': (1, 1, 16, 2, 1),
            'hs06-2s-16c': (2, 2, 32, 1, 1),
            'intel-2s-16c-smt': (2, 2, 64, 2, 1),
            'opteron-4s-12c': (4, 4, 48, 1, 2),
            'xeon-2s-24c-snc2-1g': (2, 4, 96, 2, 1),
            'xeon-2s-20c-smt-8gpu': (2, 2, 80, 2, 1),
            'epyc-2s-64c-nps1': (2, 2, 256, 2, 8),
            'epyc-2s-64c-nps4': (2, 8, 256, 2, 2),
            'xeon-max-2s-56c-snc4-hbm': (2, 16, 224, 2, 1),
            'grace-2s-72c-64k': (2, 2, 144, 1, 1),
            'uneven-2s': (2, 4, 45, 2, 1)}, found)

    def test_the_host_with_gpus_has_those_of_its_model(self) -> None:
        # "nvidia-smi topo -m" on a DGX-1 with V100: GPUs 0 to 3 belong to the
        # CPUs 0-19 and 40-59.
        host = hosts.named('xeon-2s-20c-smt-8gpu')
        cells = [device.cell for device in host.devices
                 if device.vendor_id == '10de']
        self.assertEqual([0] * 4 + [1] * 4, cells)
        self.assertEqual({*range(20), *range(40, 60)}, host.cells[0].cpus)

    def test_the_host_of_the_hs06_study_has_its_memory(self) -> None:
        # "free -m" in [CERN-HEPiX-2015], Swapping Hosts Detour (2/4).
        host = hosts.named('hs06-2s-16c')
        self.assertEqual(64160, sum(cell.memory_mib for cell in host.cells))

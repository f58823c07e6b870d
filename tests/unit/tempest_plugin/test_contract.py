# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt import exception
from hpcvirt.flavors import plan_document
from hpcvirt.tempest_plugin import contract
from tests.builders import places

FLAVOR = plan_document.FlavorSummary(
    name='f', vcpus=4, ram_mib=2048, per_host={},
    extra_specs={'hw:cpu_policy': 'dedicated', 'hw:mem_page_size': '2048',
                 'hw:numa_nodes': '2'})


def answer(**changes):
    nodes = [
        {'memory_mb': 1024, 'vcpu_set': [0, 1], 'host_node': 0,
         'cpu_pinning': {'0': 4, '1': 5}, 'siblings': []},
        {'memory_mb': 1024, 'vcpu_set': [2, 3], 'host_node': 1,
         'cpu_pinning': {'2': 8, '3': 9}, 'siblings': []}]
    nodes[1].update(changes)
    return {'nodes': nodes, 'pagesize_kb': 2048}


class ViolationsTest(unittest.TestCase):
    """Differences between a flavor and the topology of its server."""

    def violations(self, **changes):
        return contract.violations(FLAVOR, contract.nodes(answer(**changes)))

    def test_matching_server_has_none(self):
        self.assertEqual([], self.violations())

    def test_missing_guest_cell_is_named(self):
        found = contract.nodes(answer())[:1]
        self.assertEqual(['1 guest cells instead of 2'],
                         contract.violations(FLAVOR, found))

    def test_each_difference_is_named(self):
        for changes, words in (
                ({'memory_mb': 512}, '512 MiB instead of 1024'),
                ({'vcpu_set': [2]}, '1 CPUs instead of 2'),
                ({'cpu_pinning': {}}, '0 pins instead of 2'),
                ({'cpu_pinning': {'2': 8, '3': 8}}, 'on one host CPU'),
                ({'cpu_pinning': {'2': 4, '3': 9}}, 'on one host CPU'),
                ({'host_node': 0}, 'on one host cell'),
                ({'pagesize_kb': 4}, 'pages of 4 KiB instead of 2048')):
            with self.subTest(changes=changes):
                found = self.violations(**changes)
                self.assertTrue(any(words in text for text in found), found)

    def test_answer_without_pins_is_read(self):
        nodes = contract.nodes(
            {'nodes': [{'memory_mb': 64, 'cpu_pinning': None}]})
        self.assertEqual({}, nodes[0].pins)
        self.assertIsNone(nodes[0].page_kib)

    def test_host_cpus_are_those_of_all_cells(self):
        self.assertEqual({4, 5, 8, 9},
                         contract.host_cpus(contract.nodes(answer())))

    def test_guest_threads_on_one_core(self):
        found = contract.nodes(answer())
        together = [frozenset({4, 5}), frozenset({8, 9})]
        apart = [frozenset({4, 8}), frozenset({5, 9})]
        self.assertEqual([], contract.split_cores(found, 2, together))
        self.assertEqual(2, len(contract.split_cores(found, 2, apart)))


PCI = 'sys/bus/pci/devices'
FILES = {
    'sys/devices/system/cpu/online': '0-3',
    'sys/devices/system/node/online': '0-1',
    **{f'sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list': core
       for cpu, core in enumerate(('0-1', '0-1', '2-3', '2-3'))},
    'proc/meminfo': 'MemTotal:         613520 kB\nMemFree: 1 kB',
    'sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages': '0',
    'sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages': '0',
    **{f'{PCI}/0000:00:0{number}.0/{name}': text
       for number, device in enumerate((
           ('0x060000', '0x8086', '0x1237', '-1', ''),
           ('0x020000', '0x1af4', '0x1000', '-1', ''),
           ('0x020000', '0x8086', '0x1515', '1', ''),
           ('0x020000', '0x8086', '0x1515', '1', '0x020000')))
       for name, text in zip(('class', 'vendor', 'device', 'numa_node',
                              'physfn/class'), device, strict=True)}}


def print_guest(**changes):
    """Print what a guest prints."""
    return places.print_files({**FILES, **changes}).decode()


class GuestTest(unittest.TestCase):
    """Reading what guests print about their hardware."""

    def test_everything_is_read(self):
        found = contract.parse_guest(print_guest())
        self.assertEqual({0, 1, 2, 3}, found.cpus)
        self.assertEqual({0, 1}, found.cells)
        self.assertEqual({frozenset({0, 1}), frozenset({2, 3})}, found.cores)
        self.assertEqual(613520, found.memory_kib)
        self.assertIn('hugepages-2048kB', found.page_pools)
        self.assertEqual((('0x1af4', '0x1000', -1), ('0x8086', '0x1515', 1)),
                         found.network_devices)

    def test_guest_without_pools_and_devices(self):
        found = contract.parse_guest('\n'.join(
            line for line in print_guest().splitlines()
            if 'hugepages' not in line and 'pci' not in line))
        self.assertEqual(((), ()), (found.page_pools, found.network_devices))

    def test_other_output_is_refused(self):
        for text in ('', 'sh: not found\n',
                     print_guest().replace('613520', '?'),
                     print_guest().replace('online=0-3', 'online=?')):
            with self.subTest(text=text):
                self.assertRaises(exception.InvalidInput,
                                  contract.parse_guest, text)

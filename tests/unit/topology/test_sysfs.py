# SPDX-License-Identifier: Apache-2.0

"""Read a machine from a copy of its sysfs."""

import os
import pathlib
import socket
import unittest

from hpcvirt import exception
from hpcvirt import topology
from hpcvirt.model import cpuset
from hpcvirt.model import host as host_model
from hpcvirt.topology import snapshot
from tests.builders import machines
from tests.builders import refusals
from tests.builders import sysfs_files
from tests.builders import writers

CPU = 'sys/devices/system/cpu'
NODE = 'sys/devices/system/node'
HUGE = f'{NODE}/node1/hugepages/hugepages-2048kB'
PCI = 'sys/devices/pci0000:00/0000:41:00.0'


class Case(unittest.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.root = pathlib.Path(sysfs_files.scratch(self)) / 'box'
        self.host = machines.of_cells(
            machines.cell(0, (0, 4), (1, 5), socket=0, huge=((2048, 8),)),
            machines.cell(1, (2, 6), (3, 7), socket=1, huge=((2048, 4),)),
            devices=(host_model.Device('0000:41:00.0', '8086', '1572', 1, 64,
                                       'i40e'),))
        self.files = writers.sysfs(self.host)

    def read(self) -> host_model.Host:
        sysfs_files.lay_out(self.files, self.root)
        return topology.read(str(self.root))

    def refused(self, pattern: str) -> str:
        said = refusals.message(self, self.read)
        self.assertRegex(said, pattern)
        return said

    def drop(self, *parts: str) -> None:
        for name in list(self.files):
            if any(part in name for part in parts):
                del self.files[name]


class CellsTest(Case):
    def test_everything_is_read(self) -> None:
        self.assertEqual(self.host, self.read())

    def test_an_offline_cpu_is_left_out_everywhere(self) -> None:
        # Some kernels keep it among the siblings and in a cpulist.
        self.files[f'{CPU}/online'] = '0-4,6-7'
        cell = self.read().cells[0]
        self.assertEqual({0, 1, 4}, cell.cpus)
        self.assertEqual(({0, 4}, {1}), cell.siblings)
        self.assertEqual(({0, 1, 4},), cell.llc)

    def test_files_of_an_offline_cpu_are_not_needed(self) -> None:
        self.files[f'{CPU}/online'] = '0-4,6-7'
        self.drop('cpu5/topology', 'cpu5/cache')
        self.assertEqual({0, 1, 4}, self.read().cells[0].cpus)

    def test_a_cell_may_lose_all_its_cpus(self) -> None:
        self.files[f'{CPU}/online'] = '0-1,4-5'
        cell = self.read().cells[1]
        self.assertEqual((frozenset(), None), (cell.cpus, cell.socket))
        self.assertGreater(cell.memory_mib, 0)

    def test_x86_says_the_width_of_addresses(self) -> None:
        for text, bits in (
                ('address sizes\t: 46 bits physical, 48 bits virtual\n', 46),
                ('CPU implementer\t: 0x41\nCPU part\t: 0xd0c\n', None)):
            self.setUp()
            self.files['proc/cpuinfo'] = f'processor\t: 0\n{text}'
            self.assertEqual(bits, self.read().address_bits)

    def test_the_processor_has_a_name_or_the_numbers_of_arm(self) -> None:
        for text, expected in (
                ('model name\t: Intel(R)  Xeon(R)', 'Intel(R) Xeon(R)'),
                (('processor\t: 0\nCPU implementer\t: 0x41\n'
                 'CPU architecture: 8\nCPU variant\t: 0x3\n'
                  'CPU part\t: 0xd0c\nCPU revision\t: 1\n'),
                 'Arm, implementer 0x41, part 0xd0c'),
                ('processor : 0\ncpu : POWER9', None)):
            with self.subTest(text):
                self.setUp()
                self.files['proc/cpuinfo'] = text
                self.assertEqual(expected, self.read().processor)

    def test_the_old_name_of_the_siblings_is_read(self) -> None:
        for name in list(self.files):
            if name.endswith('core_cpus_list'):
                old = name.replace('core_cpus', 'thread_siblings')
                self.files[old] = self.files.pop(name)
        self.assertEqual(self.host, self.read())

    def test_bitmaps_are_read_if_a_copy_has_no_lists(self) -> None:
        for name in list(self.files):
            if name.endswith(('cpulist', 'cpus_list', 'cpu_list')):
                as_map = name.replace('cpulist', 'cpumap').replace(
                    'shared_cpu_list', 'shared_cpu_map').removesuffix('_list')
                bits = writers.bitmap(cpuset.parse(self.files.pop(name)))
                self.files[as_map] = f'00000000,{bits.removeprefix("0x")}'
        self.assertEqual(self.host, self.read())

    def test_older_kernels_end_lists_with_a_nul(self) -> None:
        for name in (f'{CPU}/online', f'{NODE}/node1/cpulist'):
            self.files[name] += '\n\0'
        self.assertEqual(self.host, self.read())

    def test_a_cell_over_several_sockets_has_the_lowest(self) -> None:
        for cpu in range(8):
            self.files[f'{CPU}/cpu{cpu}/topology/physical_package_id'] = (
                '3' if cpu in (0, 4) else '2')
        host = self.read()
        self.assertEqual([2, 2], [cell.socket for cell in host.cells])
        self.assertEqual((2, 3), host.sockets)
        self.assertEqual(host, snapshot.read(
            snapshot.dumps(host).encode(), 'host.json'))

    def test_a_socket_without_a_number_is_socket_0(self) -> None:
        for cpu in range(8):
            self.files[f'{CPU}/cpu{cpu}/topology/physical_package_id'] = '-1'
        self.assertEqual((0,), self.read().sockets)

    def test_offline_nodes_are_not_read(self) -> None:
        self.files[f'{NODE}/node2/cpulist'] = ''
        self.assertEqual(self.host, self.read())

    def test_without_a_list_all_nodes_are_online(self) -> None:
        self.drop('node/online')
        self.assertEqual(self.host, self.read())

    def test_a_machine_without_nodes_is_one_cell(self) -> None:
        self.drop(NODE)
        self.files['proc/meminfo'] = (
            'MemTotal:        4194304 kB\nMemFree: 10 kB')
        self.files['sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages'] \
            = '512'
        self.files[f'{PCI}/numa_node'] = '-1'
        read = self.read()
        self.assertEqual(1, len(read.cells))
        self.assertEqual((0, set(range(8)), 4096),
                         (read.cells[0].id, read.cells[0].cpus,
                          read.cells[0].memory_mib))
        self.assertEqual(
            (host_model.PagePool(4, 786432), host_model.PagePool(2048, 512)),
            read.cells[0].pages)
        self.assertEqual((), read.distances)

    def test_without_nodes_the_memory_of_the_machine_is_needed(self) -> None:
        self.drop(NODE)
        self.refused('proc/meminfo: is missing')


class CachesTest(Case):
    def test_the_last_level_is_that_of_the_highest_data_cache(self) -> None:
        whole = dict(self.files)
        for dropped, shared, llc in (
                # A cache over several cells is split by cell.
                ((), {'0-7': (3, range(8))}, ({0, 1, 4, 5},)),
                # There is no third level; caches of instructions are ignored.
                (('/index3/',), {}, ({0}, {1}, {4}, {5})),
                (('/index3/', '/index2/'), {'0-7': (1, range(8))},
                 ({0}, {1}, {4}, {5})),
                # Low-power cores have their own last level.
                (('cpu1/cache/index3', 'cpu5/cache/index3'),
                 {'0,4': (3, (0, 4)), '1,5': (2, (1, 5))}, ({0, 4}, {1, 5})),
                # A cache of unknown level is ignored.
                (('index3/level',), {}, ({0}, {1}, {4}, {5}))):
            self.files = dict(whole)
            self.drop(*dropped)
            for cpus, (index, members) in shared.items():
                for cpu in members:
                    self.files[f'{CPU}/cpu{cpu}/cache/index{index}/'
                               'shared_cpu_list'] = cpus
            self.root = self.root.parent / f'{self.root.name}x'
            self.assertEqual(llc, self.read().cells[0].llc)

    def test_a_cache_with_missing_cpus_is_refused(self) -> None:
        self.files[f'{CPU}/cpu3/cache/index3/shared_cpu_list'] = '2-3,6-7,99'
        self.refused('cpu3/cache/index3/shared_cpu_list: names CPU 99')


class DevicesTest(Case):
    def test_a_device_may_have_no_node_and_no_driver(self) -> None:
        self.files[f'{PCI}/numa_node'] = '-1'
        self.drop(f'{PCI}/driver')
        device = self.read().devices[0]
        self.assertEqual((None, None), (device.cell, device.driver))

    def test_a_copy_without_links_has_the_driver_in_uevent(self) -> None:
        self.drop('numa_node', f'{PCI}/driver')
        self.files[f'{PCI}/uevent'] = 'DRIVER=ice\nPCI_CLASS=20000'
        device = self.read().devices[0]
        self.assertEqual((None, 'ice'), (device.cell, device.driver))

    def test_a_gpu_with_a_display_is_listed_and_a_console_is_not(self) -> None:
        self.files[f'{PCI}/class'] = '0x030000'
        self.files[f'{PCI}/vendor'] = '0x10de'
        self.assertEqual('10de', self.read().devices[0].vendor_id)
        self.files[f'{PCI}/vendor'] = '0x1a03'
        self.root = self.root.with_name('console')
        self.assertEqual((), self.read().devices)

    def test_a_machine_without_pci_has_no_devices(self) -> None:
        self.drop('pci')
        self.assertEqual((), self.read().devices)


class IncompleteTest(Case):
    """Files that the kernel always provides must exist."""

    def test_a_missing_file_is_named(self) -> None:
        whole = dict(self.files)
        for name in (f'{CPU}/online', f'{NODE}/node1/cpulist',
                     f'{NODE}/node1/distance', f'{NODE}/node1/meminfo',
                     f'{CPU}/cpu3/topology/physical_package_id',
                     f'{CPU}/cpu3/topology/thread_siblings_list',
                     f'{CPU}/cpu3/cache/index3/shared_cpu_list',
                     f'{HUGE}/nr_hugepages', f'{PCI}/class',
                     f'{PCI}/vendor'):
            self.files = dict(whole)
            self.drop(name.replace('thread_siblings', 'core_cpus'))
            self.files.setdefault(f'{CPU}/kernel_max', '7')
            self.files.setdefault(f'{PCI}/irq', '7')
            self.files.setdefault(f'{HUGE}/free_hugepages', '0')
            self.root = self.root.parent / f'{self.root.name}x'
            self.assertIn(f'{self.root}/{name}: is missing',
                          self.refused('is missing').replace(
                              'bus/pci/devices/', 'devices/pci0000:00/'))

    def test_a_node_that_is_online_but_missing(self) -> None:
        self.files[f'{NODE}/online'] = '0-2'
        self.refused('node 2: is online but missing')

    def test_a_cpu_that_is_online_but_in_no_node(self) -> None:
        self.files[f'{NODE}/node1/cpulist'] = '2-3,6'
        self.refused('CPU 7 is online but in no node')

    def test_a_row_of_distances_that_is_too_short(self) -> None:
        self.files[f'{NODE}/node1/distance'] = '20'
        self.refused('node1/distance: has 1 columns for 2 nodes')

    def test_siblings_that_disagree(self) -> None:
        self.files[f'{CPU}/cpu4/topology/core_cpus_list'] = '4'
        self.refused('siblings of CPU')

    def test_a_directory_without_a_sysfs(self) -> None:
        self.files = {'etc/hostname': 'x'}
        self.refused('has no sys/devices/system/cpu in it')


class PagesTest(Case):
    def arm(self) -> None:
        self.files = writers.sysfs(machines.of_cells(machines.cell(
            0, (0,), small=10 ** 6, small_kib=64, huge=((524288, 2),))))
        self.files['sys/kernel/mm/hugepages/hugepages-524288kB/'
                   'nr_hugepages'] = '2'

    def test_the_size_of_a_small_page_follows_from_other_files(self) -> None:
        # From free memory, or from huge pages of 512 MiB.
        for dropped in ('sys/kernel', 'vmstat'):
            self.arm()
            self.drop(dropped)
            self.root = self.root.parent / f'{self.root.name}x'
            self.assertEqual(host_model.PagePool(64, 10 ** 6),
                             self.read().cells[0].pages[0])

    def test_without_either_a_small_page_has_4_kib(self) -> None:
        self.drop('vmstat')
        self.assertEqual(self.host, self.read())

    def test_huge_pages_larger_than_the_memory_are_refused(self) -> None:
        self.files[f'{NODE}/node1/hugepages/hugepages-2048kB/'
                   'nr_hugepages'] = '10000000'
        self.refused('cell 1: has pages of 20480000000 KiB in')

    def test_a_kernel_without_huge_pages_is_read(self) -> None:
        self.drop('hugepages')
        self.assertEqual([1, 1], [len(cell.pages)
                                  for cell in self.read().cells])

    def test_a_meminfo_without_total_is_refused(self) -> None:
        self.files[f'{NODE}/node1/meminfo'] = 'Node 1 MemTotal: many kB'
        self.refused('node1/meminfo: has no valid MemTotal')


class TreeTest(Case):
    def test_the_sys_directory_itself_may_be_named(self) -> None:
        self.read()
        self.assertEqual(self.host.cells,
                         topology.read(str(self.root / 'sys')).cells)

    def test_proc_is_found_next_to_the_sys_directory(self) -> None:
        self.drop(NODE, 'pci')
        self.files['proc/meminfo'] = 'MemTotal:        4194304 kB'
        self.read()
        self.assertEqual(
            4096, topology.read(str(self.root / 'sys')).cells[0].memory_mib)

    def test_a_copy_is_named_after_its_host_or_its_directory(self) -> None:
        self.assertEqual('box', self.read().name)
        (self.root / 'etc').mkdir()
        (self.root / 'etc' / 'hostname').write_text('node7\n')
        self.assertEqual('node7', topology.read(str(self.root)).name)

    def test_a_link_out_of_the_copy_is_refused(self) -> None:
        self.files[f'{CPU}/online'] = sysfs_files.Link('/etc/passwd')
        self.refused('cpu/online: is a link that leads out of the copy')

    def test_a_circular_link_is_refused(self) -> None:
        self.files[f'{CPU}/online'] = sysfs_files.Link('online')
        self.refused('cpu/online: ')

    def test_a_fifo_is_refused_without_blocking(self) -> None:
        sysfs_files.lay_out(self.files, self.root)
        (self.root / CPU / 'online').unlink()
        os.mkfifo(self.root / CPU / 'online')
        with self.assertRaisesRegex(exception.InvalidInput, 'is a FIFO'):
            topology.read(str(self.root))

    def test_a_file_that_is_not_text_is_refused(self) -> None:
        sysfs_files.lay_out(self.files, self.root)
        (self.root / CPU / 'online').write_bytes(b'\xff\xfe')
        with self.assertRaisesRegex(exception.InvalidInput, 'is not text'):
            topology.read(str(self.root))

    def test_the_running_machine_is_read_if_it_has_a_sysfs(self) -> None:
        # Some containers hide parts of it: the error then names a part.
        try:
            read = topology.read()
        except exception.InvalidInput as exc:
            self.assertIn('/', str(exc))
        else:
            self.assertEqual(socket.gethostname(), read.name)
            # Memory is not compared: a virtual machine may get more meanwhile.
            self.assertEqual(read.cpus, topology.read('/sys').cpus)

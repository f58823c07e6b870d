# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt.model import host as host_model
from hpcvirt.topology import document
from hpcvirt.topology import libvirt
from tests.builders import machines
from tests.builders import refusals
from tests.builders import writers

CPU = '<cpu id="{}" socket_id="0" siblings="{}"/>'
MEMORY = '<memory unit="KiB">4194304</memory>'


def read(xml: str | bytes) -> host_model.Host:
    data = xml.encode() if isinstance(xml, str) else xml
    return libvirt.read(document.xml_root(data, 'caps.xml'), 'caps.xml',
                        'caps')


def capabilities(*cells: str, cache: str = '', cpu: str = '') -> str:
    return (f'<capabilities><host><cpu>{cpu}</cpu><topology><cells>'
            f'{"".join(cells)}</cells></topology><cache>{cache}</cache>'
            '</host></capabilities>')


def cell(number: int, *cpus: str, inside: str = MEMORY) -> str:
    return (f'<cell id="{number}">{inside}<cpus>{"".join(cpus)}</cpus>'
            '</cell>')


class Case(unittest.TestCase):
    def refused(self, xml: str, pattern: str) -> None:
        self.assertRegex(refusals.message(self, read, xml), pattern)


class LibvirtTest(Case):
    def test_memory_in_every_unit_of_libvirt(self) -> None:
        for unit, size, mib in (
                ('KiB', ' 4096\n', 4), ('k', 4096, 4),
                ('KB', 4096, 4096 * 1000 >> 20), ('MiB', 4096, 4096),
                ('M', 4096, 4096), ('MB', 4096, 4096 * 10 ** 6 >> 20),
                ('GiB', 4, 4096), ('GB', 4, 4 * 10 ** 9 >> 20),
                ('TiB', 1, 1 << 20), ('bytes', 4194304, 4), ('b', 4194304, 4)):
            text = f'<memory unit="{unit}">{size}</memory>'
            host = read(capabilities(cell(0, CPU.format(0, 0), inside=text)))
            self.assertEqual(mib, host.cells[0].memory_mib, text)

    def test_an_unknown_unit_is_refused(self) -> None:
        for unit in ('pages', '', 'Kib '):
            self.refused(capabilities(cell(
                0, CPU.format(0, 0),
                inside=f'<memory unit="{unit}">4</memory>')),
                'cell 0: .* is not a unit of memory')

    def test_pages_have_any_unit_and_small_ones_are_added(self) -> None:
        for pages, cpu, pools in (
                (('<pages size="4">1000</pages><pages unit="MiB" size="2">3'
                  '</pages><pages unit="bytes" size="1073741824">1</pages>'),
                 '',
                 ((4, 1000), (2048, 3), (1048576, 1))),
                # The size of a small page is that of the CPU.
                ('', ('<pages unit="KiB" size="524288"/>'
                      '<pages unit="KiB" size="64"/>'), ((64, 65536),)),
                # libvirt 1.2.6 and 1.2.7 did not count small pages.
                ('<pages unit="KiB" size="2048">512</pages>', '',
                 ((4, 786432), (2048, 512)))):
            host = read(capabilities(
                cell(0, CPU.format(0, 0), inside=MEMORY + pages), cpu=cpu))
            self.assertEqual(
                tuple(host_model.PagePool(*pool) for pool in pools),
                host.cells[0].pages)

    def test_siblings_may_be_offline(self) -> None:
        # This is so on a machine without NUMA.
        host = read(capabilities(cell(0, CPU.format(0, '0-1'),
                                      CPU.format(2, '2-3')),
                                 cache='<bank id="0" level="3" type="both" '
                                 'cpus="0-3"/>'))
        self.assertEqual(({0}, {2}), host.cells[0].siblings)
        self.assertEqual(({0, 2},), host.cells[0].llc)

    def test_a_socket_without_a_number_is_socket_0(self) -> None:
        host = read(capabilities(cell(
            0, '<cpu id="0" socket_id="-1" siblings="0"/>')))
        self.assertEqual(0, host.cells[0].socket)

    def test_the_width_of_addresses_is_read(self) -> None:
        one = cell(0, CPU.format(0, 0))
        self.assertIsNone(read(capabilities(one)).address_bits)
        for text, bits in (('<maxphysaddr mode="emulate" bits="46"/>', 46),
                           ('<maxphysaddr mode="passthrough"/>', None)):
            self.assertEqual(
                bits, read(capabilities(one, cpu=text)).address_bits)
        self.refused(capabilities(one, cpu='<maxphysaddr bits="8"/>'),
                     '8 bits cannot be the width of addresses')

    def test_cells_may_be_in_any_order(self) -> None:
        host = machines.of_cells(machines.cell(0, (0,)),
                                 machines.cell(2, (1,)))
        turned = host_model.Host('box', host.cells[::-1], tuple(
            row[::-1] for row in host.distances[::-1]))
        self.assertEqual(host.distances,
                         read(writers.libvirt(turned)).distances)

    def test_the_cache_of_the_highest_level_is_used(self) -> None:
        bank = '<bank id="{0}" level="{1}" type="{2}" cpus="{3}"/>'
        host = read(capabilities(
            cell(0, CPU.format(0, 0), CPU.format(1, 1), CPU.format(2, 2)),
            cache=bank.format(0, 3, 'both', '0') + bank.format(
                1, 3, 'both', '1') + bank.format(2, 3, 'both', '2')
            + bank.format(0, 4, 'both', '0-1')
            + bank.format(0, 5, 'code', '0-2')))
        self.assertEqual(({0, 1}, {2}), host.cells[0].llc)


class ContradictionTest(Case):
    def test_each_is_refused_and_names_the_element(self) -> None:
        one = cell(0, CPU.format(0, '0-1'), CPU.format(1, '0-1'))
        bank = '<bank id="7" level="3" type="both" cpus="{}"/>'
        sibling = '<distances><sibling id="{}" value="{}"/></distances>'
        for pattern, xml in {
            'cell 1: CPU 1 occurs twice': capabilities(
                one, cell(1, CPU.format(1, 1))),
            'siblings of CPU 0: no core has 65 threads': capabilities(
                cell(0, CPU.format(0, '0-64'))),
            'cache bank 7: names CPU 9, which does not exist': capabilities(
                one, cache=bank.format('0-1,9')),
            'cache bank 7: names CPU 1, which another bank of level 3 '
            'also names':
                capabilities(one, cache=bank.format('0-1')
                             + bank.format('1')),
            'cell 0: has two distances to cell 0': capabilities(
                cell(0, CPU.format(0, 0),
                     inside=MEMORY + sibling.format(0, 10) * 2)),
            'value of <sibling> is 256, which is not within': capabilities(
                cell(0, CPU.format(0, 0),
                     inside=MEMORY + sibling.format(0, 256))),
            'content of <memory> is -1, which is not within': capabilities(
                cell(0, CPU.format(0, 0), inside='<memory>-1</memory>')),
            'id of <cell> is missing': '<capabilities><host><topology>'
                '<cells><cell/></cells></topology></host></capabilities>',
            "id of <cpu> is 'x', not a whole number": capabilities(
                cell(0, CPU.format('x', 0))),
            'has no host topology': '<capabilities><host/></capabilities>',
            'root element is <domain>': '<domain/>',
        }.items():
            with self.subTest(pattern):
                self.refused(xml, f'caps.xml.*{pattern}')

    def test_missing_siblings_are_not_guessed(self) -> None:
        self.refused(capabilities(cell(0, '<cpu id="0"/>')),
                     'no cell has a CPU')

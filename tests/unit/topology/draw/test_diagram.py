# SPDX-License-Identifier: Apache-2.0

import dataclasses
import itertools
import pathlib
import unittest

from hpcvirt.model import cpuset
from hpcvirt.model import host as host_model
from hpcvirt.model import wiring
from hpcvirt.topology.draw import diagram
from tests.builders import hosts
from tests.builders import machines
from tests.builders import wired

DRAWINGS = pathlib.Path(__file__).parents[3] / 'data' / 'drawings'


def expected(name: str) -> str:
    return (DRAWINGS / f'{name}.txt').read_text()


class DrawTest(unittest.TestCase):
    maxDiff = None

    def test_two_cells_are_side_by_side(self) -> None:
        host = machines.of_cells(
            machines.cell(0, (0, 4), (1, 5), llc=((0, 1, 4, 5),),
                          huge=((2048, 512), (1048576, 0))),
            machines.cell(1, (2, 6), (3, 7), llc=((2, 6), (3, 7)),
                          socket=1, small=262144),
            devices=(
                host_model.Device('0000:41:00.0', '8086', '1572', 1, 64,
                                  'i40e'),
                host_model.Device('0000:41:02.0', '8086', '154c', 1),
                host_model.Device('0000:41:02.1', '8086', '154c', 1),
                host_model.Device('0000:41:02.2', '8086', '154c', 1),
                host_model.Device('0000:c1:00.0', '15b3', '101d', None)))
        self.assertEqual(expected('two-cells'), diagram.draw(host, 80))

    def test_bridges_are_trees_and_links_are_lists(self) -> None:
        self.assertEqual(expected('wiring'), diagram.draw(wired.host(), 80))

    def test_what_is_unknown_of_the_wiring_is_said(self) -> None:
        host = wired.host()
        assert host.wiring is not None
        for wiring_of, words in (
                (None, 'the wiring of devices'),
                (dataclasses.replace(host.wiring, partitions=None),
                 'the ACS of bridges, partitions of GPUs'),
                (dataclasses.replace(
                    host.wiring, bridges=(), links=(),
                    attachments=tuple(wiring.Attachment(each.address) for
                                      each in host.wiring.attachments),
                    unknown=frozenset(wiring.UnknownWiring)),
                 'IOMMU groups, PCIe links, links between GPUs')):
            text = diagram.draw(dataclasses.replace(host, wiring=wiring_of))
            self.assertIn(f'because the source does not say: {words}.',
                          ' '.join(text.split()))

    def test_every_bridge_is_drawn_once(self) -> None:
        for seed in range(60):
            host, _ = machines.invent(seed)
            lines = diagram.draw(host, 100).splitlines()
            for bridge in host.wiring.bridges if host.wiring else ():
                self.assertEqual(1, len([line for line in lines if
                                         line.split()[:1] == [
                                             bridge.address]]))

    def test_virtual_functions_share_a_line(self) -> None:
        devices = tuple(host_model.Device(f'0000:41:{number:02x}.0', '8086',
                                          '154c', 0) for number in range(9))
        text = diagram.draw(machines.of_cells(
            machines.cell(0, (0,)), devices=devices, wired=wiring.Wiring(
                (wiring.Bridge('0000:40:00.0'),), tuple(
                    wiring.Attachment(device.address, '0000:40:00.0', None,
                                      number)
                    for number, device in enumerate(devices)))))
        self.assertIn('  0000:40:00.0 bridge\n    0000:41:00.0 … 08.0 9 x '
                      '8086:154c, IOMMU group 0-8\n', text)

    def test_links_are_one_line_where_all_have_one(self) -> None:
        names = [f'0000:{bus:02x}:00.0' for bus in range(16)]
        links = [wiring.DeviceLink(wiring.LinkKind.NVLINK, ends, 18)
                 for ends in itertools.combinations(names[:8], 2)]
        links += [wiring.DeviceLink(wiring.LinkKind.XGMI, ends)
                  for ends in itertools.pairwise(names[8:])]
        host = machines.of_cells(
            machines.cell(0, (0,)), devices=tuple(
                host_model.Device(name, '10de', '2330', 0) for name in names),
            wired=wiring.Wiring(attachments=tuple(
                map(wiring.Attachment, names)), links=tuple(links)))
        lines = diagram.draw(host, 200).splitlines()
        self.assertEqual(
            [f'NVLink x18 between {" ".join(names[:8])}',
             *(f'xGMI between {" ".join(ends)}'
               for ends in itertools.pairwise(names[8:]))],
            [line for line in lines if ' between ' in line
             and not line.startswith('Unknown')])

    def test_half_a_link_is_drawn(self) -> None:
        for link, words in (
                (wiring.PCIeLink(lanes=16), 'bridge, x16 at ? GT/s'),
                (wiring.PCIeLink(8.0), 'bridge, x? at 8 GT/s'),
                (wiring.PCIeLink(gb_per_s=15.75), 'bridge, 15.8 GB/s'),
                (wiring.PCIeLink(8.0, 8, None, 16),
                 'bridge, x8 at 8 GT/s of x16 at ? GT/s')):
            text = diagram.draw(machines.of_cells(
                machines.cell(0, (0,)), devices=(
                    host_model.Device('0000:41:00.0', '8086', '1572', 0),),
                wired=wiring.Wiring(
                    (wiring.Bridge('0000:40:00.0', link=link),),
                    (wiring.Attachment('0000:41:00.0', '0000:40:00.0'),))))
            self.assertIn(f'  0000:40:00.0 {words}\n', text)

    def test_cells_of_one_socket_are_in_its_box(self) -> None:
        host = machines.of_cells(
            machines.cell(0, (0,), (1,)), machines.cell(1, (2,), (3,)),
            machines.cell(2), distances=False)
        self.assertEqual(expected('one-socket'), diagram.draw(host, 80))

    def test_the_example_of_the_documentation_is_correct(self) -> None:
        host = hosts.named('xeon-2s-24c-snc2-1g')
        self.assertEqual(expected(host.name), diagram.draw(host, 80))

    def test_a_memory_only_cell_names_the_nearest_cells(self) -> None:
        host = machines.of_cells(
            machines.cell(0, (0,)), machines.cell(1, (1,)), machines.cell(2))
        self.assertIn('│ nearest to cell 0 ', diagram.draw(host))

    def test_every_cpu_and_every_device_is_drawn(self) -> None:
        for seed in range(60):
            host, _ = machines.invent(seed)
            for width in (60, 80, 120):
                text = diagram.draw(host, width)
                words = set(text.split())
                for cell in host.cells:
                    for core in cell.siblings:
                        self.assertIn(cpuset.render(core), words)
                    self.assertIn(f'cell {cell.id} ', text)
                for device in host.devices:
                    self.assertIn(device.product_id, text)

    def test_shipped_machines_fit_into_the_width(self) -> None:
        for host in hosts.shipped():
            for width in (80, 100, 120, 140):
                text = diagram.draw(host, width)
                self.assertLessEqual(
                    max(map(len, text.splitlines())), width, host.name)

    def test_boxes_of_any_machine_are_complete(self) -> None:
        for seed in range(60):
            host, _ = machines.invent(seed)
            for line in diagram.draw(host, 60 + seed).splitlines():
                if line[:1] in '┃│' and line:
                    self.assertIn(line[-1], '┃│┓┐┛┘')

    def test_sixteen_cells_are_arranged_in_rows(self) -> None:
        host = machines.of_cells(*(
            machines.cell(number, *((cpu, cpu + 128) for cpu in
                                    range(number * 8, number * 8 + 8)),
                          socket=number // 8)
            for number in range(16)))
        lines = diagram.draw(host, 120).splitlines()
        self.assertLessEqual(max(map(len, lines)), 120)
        self.assertIn(3, [line.count('┌─ cell') for line in lines])

    def test_rows_of_cells_are_equally_full(self) -> None:
        host = machines.of_cells(*(machines.cell(number, (number,))
                                   for number in range(4)))
        lines = diagram.draw(host, 130).splitlines()
        self.assertEqual({0, 2}, {line.count('┌─ cell') for line in lines})

    def test_distances_of_many_cells_are_lists(self) -> None:
        host = machines.of_cells(*(machines.cell(number, (number,))
                                   for number in range(40)))
        text = diagram.draw(host, 80)
        self.assertLessEqual(max(map(len, text.splitlines())), 80)
        self.assertIn('cell 3: 10 to 3; 23 to 0;', text)

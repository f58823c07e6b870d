# SPDX-License-Identifier: Apache-2.0

import dataclasses
import itertools
import pathlib
import re
import unittest

from hpcvirt.model import cpuset
from hpcvirt.model import host as host_model
from hpcvirt.model import wiring
from hpcvirt.topology.draw import boxes
from hpcvirt.topology.draw import cell_diagram
from hpcvirt.topology.draw import diagram
from tests.builders import hosts
from tests.builders import machines
from tests.builders import wired


class BoxTest(unittest.TestCase):
    def test_a_box_has_its_title_above_the_lines(self) -> None:
        self.assertEqual(['┌─ title ──┐',
                          '│ a line   │',
                          '│ a longer │',
                          '└──────────┘'],
                         boxes.box('title', ['a line', 'a longer']))

    def test_a_box_is_as_wide_as_its_title_or_as_asked(self) -> None:
        self.assertEqual(['┏━ title ━┓', '┃ a       ┃', '┗━━━━━━━━━┛'],
                         boxes.box('title', ['a'], boxes.HEAVY))
        self.assertEqual({20}, set(map(len, boxes.box('t', ['a'], width=20))))

    def test_every_line_of_a_box_is_equally_long(self) -> None:
        for title in ('', 'a', 'a longer title'):
            for lines in ([], [''], ['a'], ['a', 'a much longer line']):
                for width in (0, 2, 10, 30):
                    drawn = boxes.box(title, lines, width=width)
                    self.assertEqual(1, len(set(map(len, drawn))), drawn)


class SideBySideTest(unittest.TestCase):
    def test_blocks_are_side_by_side_if_there_is_room(self) -> None:
        self.assertEqual(['aa  b', 'aa  c', 'dd'.ljust(5)],
                         boxes.side_by_side(
                             [['aa', 'aa'], ['b', 'c'], ['dd']], 7))

    def test_a_block_that_is_too_wide_gets_its_own_row(self) -> None:
        self.assertEqual(['a   ', 'bbbb', 'c   '],
                         boxes.side_by_side([['a'], ['bbbb'], ['c']], 3))

    def test_boxes_in_a_row_are_equally_high(self) -> None:
        self.assertEqual(
            ['┌───┐  ┌───┐',
             '│ a │  │ b │',
             '│ a │  │   │',
             '└───┘  └───┘'],
            boxes.side_by_side([boxes.box('', ['a', 'a']),
                                boxes.box('', ['b'])], 80))

    def test_no_blocks_make_no_rows(self) -> None:
        self.assertEqual([], boxes.side_by_side([], 80))


class WrapTest(unittest.TestCase):
    def test_lines_are_filled_and_indented(self) -> None:
        words = ['aa', 'bb', 'cc', 'dddddddd', 'e']
        self.assertEqual(['aa bb', '  cc', '  dddddddd', '  e'],
                         boxes.wrap(words, 5, '  '))

    def test_no_words_are_no_lines(self) -> None:
        self.assertEqual([], boxes.wrap([], 5))


class PlainTest(unittest.TestCase):
    def test_only_ascii_remains(self) -> None:
        drawn = '\n'.join(boxes.box('a · b', ['…', 'é'], boxes.HEAVY))
        self.assertEqual('+= a . b =+\n| .       |\n| ?       |\n+=========+',
                         boxes.plain(drawn))


class CoresTest(unittest.TestCase):
    """Every core is shown once, in the bracket of its cache."""

    def cells(self) -> list[host_model.Cell]:
        every = [*hosts.shipped(),
                 *(machines.invent(seed)[0] for seed in range(40))]
        return [cell for host in every for cell in host.cells if cell.cpus]

    def test_each_core_is_shown_once_within_the_width(self) -> None:
        for cell in self.cells():
            label = max(len(cpuset.render(core)) for core in cell.siblings)
            for inner in (32, 44, 120):
                lines = cell_diagram.cores(cell, inner, label)
                shown = re.findall(r'[\d,-]+', ' '.join(lines))
                self.assertEqual(
                    sorted(map(cpuset.render, cell.siblings)), sorted(shown))
                self.assertEqual(1, len({len(line) for line in lines}))
                self.assertLessEqual(len(lines[0]), max(inner, 2 + label))

    def test_there_is_one_bracket_for_each_shared_cache(self) -> None:
        for cell in self.cells():
            text = '\n'.join(cell_diagram.cores(cell, 60, 8))
            shared = len(cell.llc) < len(cell.siblings) or (
                len(cell.siblings) == 1)
            self.assertEqual(
                len(cell.llc) if shared else 0,
                text.count('[') + text.count('┌'))
            self.assertEqual(text.count('┌'), text.count('└'))


class PoolsTest(unittest.TestCase):
    def test_memory_and_its_pages_are_a_table(self) -> None:
        cell = machines.cell(0, (0,), huge=((2048, 512), (1048576, 0)))
        lines = cell_diagram.pools(cell, 36)
        self.assertEqual(['memory', '4 KiB pages', '2 MiB pages',
                          '1 GiB pages'], [line[:11].strip()
                                           for line in lines])
        self.assertEqual(['512', '1', 'GiB'], lines[2].split()[3:])
        self.assertEqual(['none'], lines[3].split()[3:])
        self.assertEqual({36}, {len(line) for line in lines})

    def test_a_cell_without_memory_says_so(self) -> None:
        empty = host_model.Cell(0, 0, frozenset({0}), (frozenset({0}),),
                                (frozenset({0}),), 0, ())
        self.assertEqual(['no memory'], cell_diagram.pools(empty, 32))


class DevicesTest(unittest.TestCase):
    def lines(self, *devices: host_model.Device) -> list[str]:
        return cell_diagram.devices(devices, 80)

    def test_equal_functions_share_a_line(self) -> None:
        functions = [host_model.Device(f'0000:41:02.{number}', '8086',
                                       '154c', 0) for number in range(3)]
        self.assertEqual(['0000:41:02.0 … 02.2 3 x 8086:154c'],
                         self.lines(*functions))

    def test_functions_on_several_buses_show_both_addresses(self) -> None:
        functions = [host_model.Device(f'0000:{bus}:00.0', '15b3', '101d', 0,
                                       8, 'mlx5_core') for bus in (41, 42)]
        self.assertEqual(
            '0000:41:00.0 … 0000:42:00.0 2 x 15b3:101d mlx5_core 8 VFs each',
            ' '.join(self.lines(*functions)))

    def test_a_single_function_shows_driver_and_vfs(self) -> None:
        self.assertEqual(
            ['0000:41:00.0 8086:1572 i40e 1 VF'],
            self.lines(host_model.Device('0000:41:00.0', '8086', '1572', 0,
                                         1, 'i40e')))


DRAWINGS = pathlib.Path(__file__).parents[2] / 'data' / 'drawings'


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

# SPDX-License-Identifier: Apache-2.0

import copy
import json
import unittest
from typing import Any

from hpcvirt.model import host as host_model
from hpcvirt.model import wiring
from hpcvirt.topology import snapshot
from tests import pages
from tests.builders import machines
from tests.builders import refusals
from tests.builders import wired

BOX: dict[str, Any] = {
    'schema_version': 1, 'name': 'box',
    'cells': [
        {'id': 0, 'socket': 0, 'cpus': [0, 1, 4, 5],
         'siblings': [[0, 4], [1, 5]], 'llc': [[0, 1, 4, 5]],
         'memory_mib': 4096, 'pages': {'4': 786432, '2048': 512}},
        {'id': 2, 'socket': 1, 'cpus': [2, 3, 6, 7],
         'siblings': [[2, 6], [3, 7]], 'llc': [[2, 6], [3, 7]],
         'memory_mib': 4096, 'pages': {'4': 1048576, '2048': 0}}],
    'distances': [[10, 21], [21, 10]],
    'devices': [{'address': '0000:41:00.0', 'vendor_id': '8086',
                 'product_id': '1572', 'cell': 2, 'total_vfs': 64,
                 'driver': 'i40e'}]}


def read(value: object) -> host_model.Host:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return snapshot.read(data, 'box.json')


class RoundTripTest(unittest.TestCase):
    def test_a_snapshot_is_written_as_it_was_read(self) -> None:
        self.assertEqual(BOX, snapshot.make_json(read(BOX)))

    def test_text_is_the_same_snapshot(self) -> None:
        self.assertEqual(BOX, json.loads(snapshot.dumps(read(BOX))))

    def test_any_machine_comes_back(self) -> None:
        for seed in range(200):
            host, _ = machines.invent(seed)
            text = snapshot.dumps(host)
            self.assertEqual(host, read(text.encode()), f'seed {seed}')

    def test_the_width_of_addresses_comes_back(self) -> None:
        host = read({**BOX, 'address_bits': 46})
        self.assertEqual(46, host.address_bits)
        self.assertEqual(host, read(snapshot.dumps(host).encode()))

    def test_the_wiring_comes_back(self) -> None:
        host = wired.host()
        text = snapshot.dumps(host)
        self.assertEqual(snapshot.make_json(host), json.loads(text))
        again = read(text.encode())
        self.assertEqual(host, again)
        self.assertIsNotNone(again.wiring)

    def test_of_the_wiring_only_what_is_known_is_written(self) -> None:
        plain = snapshot.make_json(wired.host())['wiring']
        self.assertEqual(
            ['bridges', 'attachments', 'links', 'partitions', 'unknown'],
            list(plain))
        self.assertEqual(
            {'address': '0000:00:03.0', 'kind': 'root port',
             'link': {'speed_gts': 8.0, 'lanes': 2, 'most_speed_gts': 16.0,
                      'most_lanes': 4}}, plain['bridges'][0])
        self.assertEqual(
            {'address': '0000:16:00.0', 'above': '0000:15:01.0',
             'kind': 'upstream port', 'acs': [],
             'link': {'speed_gts': 32.0, 'lanes': 16, 'most_speed_gts': 32.0,
                      'most_lanes': 16}}, plain['bridges'][2])
        self.assertEqual(
            {'kind': 'NVLink', 'ends': ['0000:18:00.0', '0000:19:00.0'],
             'count': 18}, plain['links'][0])
        self.assertEqual(
            [{'number': 0, 'devices': [*wired.GPUS], 'active': True},
             {'number': 1, 'devices': [*wired.GPUS[:2]]}],
            plain['partitions'])

    def test_group_0_of_the_iommu_is_written(self) -> None:
        host = machines.of_cells(
            machines.cell(0, (0,)),
            devices=(host_model.Device('0000:41:00.0', '8086', '1572', 0),),
            wired=wiring.Wiring(attachments=(
                wiring.Attachment('0000:41:00.0', iommu_group=0),)))
        self.assertEqual(host, read(snapshot.dumps(host).encode()))

    def test_an_older_snapshot_has_no_wiring(self) -> None:
        self.assertIsNone(read(BOX).wiring)
        self.assertNotIn('wiring', snapshot.make_json(read(BOX)))

    def test_keys_stand_in_the_documented_order(self) -> None:
        plain = json.loads(snapshot.dumps(read(BOX)))
        self.assertEqual(list(BOX), list(plain))
        self.assertEqual(list(BOX['cells'][0]), list(plain['cells'][0]))
        self.assertEqual(list(BOX['devices'][0]), list(plain['devices'][0]))

    def test_memory_keeps_small_pages_beyond_its_last_mib(self) -> None:
        box = copy.deepcopy(BOX)
        box['cells'][0]['pages'] = {'4': 1048576 + 255}
        self.assertEqual(box, snapshot.make_json(read(box)))

    def test_cells_in_another_order_keep_their_distances(self) -> None:
        box = copy.deepcopy(BOX)
        box['cells'].reverse()
        box['distances'] = [[10, 31], [21, 10]]
        read_box = read(box)
        self.assertEqual([0, 2], [cell.id for cell in read_box.cells])
        self.assertEqual(((10, 21), (31, 10)), read_box.distances)


class DocumentationTest(unittest.TestCase):
    def test_the_example_of_the_documentation_is_read(self) -> None:
        text = pages.read('reference/snapshot')
        first, second = (
            example[:example.index('\n   }\n') + 5]
            for example in text.split('.. code-block:: json\n')[1:])
        host = read(first.encode())
        self.assertEqual(('node7', 4, 64), (
            host.name, len(host.cpus), host.devices[0].total_vfs))
        wired_host = read(json.loads(first) | {'wiring': json.loads(second)})
        assert wired_host.wiring is not None
        self.assertEqual(
            ['0000:40:01.1'], [bridge.address for bridge in
                               wired_host.wiring.path(
                                   wired_host.wiring.attachments[0])])


class DefaultsTest(unittest.TestCase):
    def test_what_a_hand_may_leave_out(self) -> None:
        box = copy.deepcopy(BOX)
        del box['distances'], box['cells'][1]['llc']
        del box['devices'][0]['total_vfs'], box['devices'][0]['driver']
        host = read(box)
        self.assertEqual((), host.distances)
        self.assertEqual(({2, 3, 6, 7},), host.cells[1].llc)
        self.assertEqual((0, None),
                         (host.devices[0].total_vfs, host.devices[0].driver))

    def test_devices_may_be_left_out(self) -> None:
        box = copy.deepcopy(BOX)
        del box['devices']
        self.assertEqual((), read(box).devices)

    def test_addresses_are_read_in_upper_case_too(self) -> None:
        box = copy.deepcopy(BOX)
        box['devices'][0] |= {'address': '0000:AF:00.0', 'vendor_id': '15B3'}
        device = read(box).devices[0]
        self.assertEqual(('0000:af:00.0', '15b3'),
                         (device.address, device.vendor_id))


class RefusalTest(unittest.TestCase):
    def test_a_wiring_that_cannot_be(self) -> None:
        for pattern, part, value in (
                ("'.x1b.2J' is not a control of ACS", 'bridges', [
                    {'address': '0000:00:01.0', 'acs': ['\x1b[2J']}]),
                ('is below itself', 'bridges', [
                    {'address': '0000:00:01.0', 'above': '0000:00:01.0'}]),
                (r'bridges\[0\].kind: must be one of', 'bridges', [
                    {'address': '0000:00:01.0', 'kind': 'x'}]),
                ("attachments.0.: unknown key 'x'", 'attachments', [
                    {'address': '0000:41:00.0', 'x': 1}]),
                ('lanes: must be a whole number', 'attachments', [
                    {'address': '0000:41:00.0', 'link': {'lanes': 1.5}}]),
                ('is not a device of this host', 'links', [
                    {'kind': 'NVLink', 'ends': ['0000:41:00.0', 'x']}]),
                ('unknown', 'unknown', ['everything'])):
            with self.subTest(pattern):
                self.refused(BOX | {'wiring': {part: value}}, pattern)

    def refused(self, value: object, pattern: str) -> None:
        self.assertRegex(refusals.message(self, read, value),
                         f'^box.json.*{pattern}')

    def changed(self, *path: Any, to: object) -> dict[str, Any]:
        box = copy.deepcopy(BOX)
        inside: Any = box
        for step in path[:-1]:
            inside = inside[step]
        inside[path[-1]] = to
        return box

    def test_another_schema_version(self) -> None:
        self.refused({'schema_version': 2, 'machine': {}},
                     'schema_version: is 2; this version of hpcvirt reads 1')

    def test_contradictions_name_the_element(self) -> None:
        for pattern, box in {
            r'siblings\[0\]: CPU 2 is not in this cell': self.changed(
                'cells', 0, 'siblings', to=[[0, 2], [1, 5], [4]]),
            r'siblings\[1\]: CPU 0 is already in another one': self.changed(
                'cells', 0, 'siblings', to=[[0, 4], [0, 1, 5]]),
            'siblings: CPU 5 is in none of them': self.changed(
                'cells', 0, 'siblings', to=[[0, 4], [1]]),
            r'llc\[0\]: CPU 9 is not in this cell': self.changed(
                'cells', 0, 'llc', to=[[0, 1, 4, 5, 9]]),
            r'llc\[1\]: is empty': self.changed(
                'cells', 0, 'llc', to=[[0, 1, 4, 5], []]),
            'distances: has 1 rows for 2 cells': self.changed(
                'distances', to=[[10, 21]]),
            r'distances\[1\]: has 1 columns for 2 cells': self.changed(
                'distances', 1, to=[10]),
            'cell 0: has CPUs but no socket': self.changed(
                'cells', 0, 'socket', to=None),
            'CPU 65536 is not within': self.changed(
                'cells', 0, to=BOX['cells'][0] | {
                    'cpus': [65536], 'siblings': [[65536]],
                    'llc': [[65536]]}),
            'a cell has a number from 0': self.changed(
                'cells', 1, 'id', to=1024),
            'KiB of memory is not within': self.changed(
                'cells', 0, 'memory_mib', to=2 ** 40),
            "'' cannot be the name": self.changed('name', to=''),
            'cannot be the name': self.changed('name', to='a\nb'),
        }.items():
            with self.subTest(pattern):
                self.refused(box, pattern)

    def test_wrong_types_name_the_element(self) -> None:
        for pattern, box in {
            r'cells\[0\].cpus\[0\]: must be a whole number .*, not true':
                self.changed('cells', 0, 'cpus', 0, to=True),
            r'cells\[0\].memory_mib: must be a whole .*, not 4096.0':
                self.changed('cells', 0, 'memory_mib', to=4096.0),
            'memory_mib: must be a whole number from 0 to .*, not -1':
                self.changed('cells', 0, 'memory_mib', to=-1),
            "'x' is not a page size": self.changed(
                'cells', 0, 'pages', to={'x': 1}),
            "'04' is not a page size": self.changed(
                'cells', 0, 'pages', to={'04': 1}),
            "unknown key 'distance'; known: schema_version, name":
                BOX | {'distance': []},
            "key 'name' is missing": {
                k: v for k, v in BOX.items() if k != 'name'},
            r"cells\[0\]: the key 'siblings' is missing": self.changed(
                'cells', 0, to={k: v for k, v in BOX['cells'][0].items()
                                if k != 'siblings'}),
        }.items():
            with self.subTest(pattern):
                self.refused(box, pattern)

# SPDX-License-Identifier: Apache-2.0

"""Shapes to extra specs and back."""

import unittest

import hypothesis

from hpcvirt import exception
from hpcvirt.model import shape
from hpcvirt.specs import codec
from hpcvirt.specs import vocabulary
from tests.builders import shapes

DEDICATED = shape.CPUPolicy.DEDICATED
MIXED = shape.CPUPolicy.MIXED
SHARED = shape.CPUPolicy.SHARED


def guest(*cells, **fields):
    """A dedicated guest; each cell is (pcpus, vcpus, MiB)."""
    return shape.Shape(**{
        'cells': tuple(shape.GuestCell(*cell, page_kib=2048)
                       for cell in cells),
        'cpu_policy': DEDICATED, **fields})


class RoundTripTest(unittest.TestCase):
    @hypothesis.settings(max_examples=100, deadline=None)
    @hypothesis.given(shapes.shapes())
    def test_decoding_gives_back_what_was_encoded(self, wanted):
        self.assert_is_decoded(wanted)

    @hypothesis.settings(max_examples=2000, deadline=None)
    @hypothesis.given(shapes.shapes())
    def test_periodic_decoding_gives_back_what_was_encoded(self, wanted):
        self.assert_is_decoded(wanted)

    def assert_is_decoded(self, wanted):
        specs = codec.encode(wanted)
        self.assertEqual(wanted, codec.decode(
            wanted.cpus, wanted.memory_mib, specs))

    @hypothesis.settings(max_examples=200, deadline=None)
    @hypothesis.given(shapes.shapes())
    def test_what_is_written_is_in_the_vocabulary(self, wanted):
        for name, value in codec.encode(wanted).items():
            row = vocabulary.find(name)
            self.assertIn(row, vocabulary.INTERPRETED)
            row.check(value, name)


class EncodeTest(unittest.TestCase):
    def test_even_cells_are_left_to_nova_to_split(self):
        self.assertEqual(
            {'hw:cpu_policy': 'dedicated', 'hw:numa_nodes': '2',
             'hw:mem_page_size': '2048'},
            codec.encode(guest((8, 0, 4096), (8, 0, 4096))))

    def test_uneven_cells_are_written_in_full(self):
        specs = codec.encode(guest((4, 0, 2048), (2, 0, 2048)))
        self.assertEqual(
            {'hw:numa_cpus.0': '0-3', 'hw:numa_mem.0': '2048',
             'hw:numa_cpus.1': '4-5', 'hw:numa_mem.1': '2048'},
            {name: value for name, value in specs.items()
             if name.startswith(('hw:numa_cpus', 'hw:numa_mem'))})

    def test_devices_and_our_own_keys_are_written(self):
        specs = codec.encode(guest(
            (4, 0, 2048), numa_scope=shape.NUMAScope.SOCKET,
            exclusive_cells=True, device_set='gpu4', devices=(
                shape.GuestDevices('vf', 2, shape.PCIAffinity.REQUIRED),
                shape.GuestDevices('gpu', 1, shape.PCIAffinity.REQUIRED))))
        self.assertEqual('vf:2,gpu:1', specs['pci_passthrough:alias'])
        self.assertEqual('required', specs['hw:pci_numa_affinity_policy'])
        self.assertEqual('socket', specs['hpcvirt:numa_scope'])
        self.assertEqual('true', specs['hpcvirt:exclusive_cells'])
        self.assertEqual('gpu4', specs['hpcvirt:device_set'])

    def test_what_no_flavor_can_say_is_refused(self):
        device = shape.GuestDevices
        for wanted, problem in (
                (guest(), 'no cells'),
                (guest((0, 0, 1024)), 'at least one CPU'),
                (guest((4, 0, 0)), 'one MiB'),
                (guest((4, 1, 1024)), 'has 4 of 5 CPUs dedicated'),
                (guest((4, 0, 1024), cpu_policy=MIXED), '4 of 4 CPUs'),
                (guest((1, 3, 1024), cpu_policy=SHARED), '1 of 4 CPUs'),
                (guest((0, 4, 1024), cpu_policy=SHARED,
                       thread_policy=shape.ThreadPolicy.PREFER),
                 'thread policy'),
                (guest((0, 4, 1024), cpu_policy=SHARED,
                       emulator_threads=shape.EmulatorThreads.ISOLATE),
                 'emulator threads'),
                (guest((4, 0, 1024), devices=(device(None, 1),)),
                 'Neutron port'),
                (guest((4, 0, 1024), device_set='four GPUs'),
                 'hpcvirt:device_set'),
        ):
            with self.subTest(problem=problem), self.assertRaisesRegex(
                    exception.InvalidInput, problem):
                codec.encode(wanted)

    def test_cells_of_different_page_size_are_refused(self):
        with self.assertRaisesRegex(exception.InvalidInput, 'page size'):
            codec.encode(shape.Shape(
                (shape.GuestCell(1, 0, 1, 4), shape.GuestCell(1, 0, 1)),
                DEDICATED))


class DecodeTest(unittest.TestCase):
    """The rules are held against Nova's own in the functional tests."""

    def assert_refused(self, where, specs, vcpus=4, ram_mib=4096):
        with self.assertRaises(exception.InvalidInput) as caught:
            codec.decode(vcpus, ram_mib, specs)
        self.assertEqual(where, caught.exception.where)

    def test_a_plain_flavor_has_no_cells(self):
        self.assertEqual(shape.Shape(()), codec.decode(4, 4096, {}))

    def test_other_keys_are_passed_over(self):
        self.assertEqual(shape.Shape(()), codec.decode(4, 4096, {
            'quota:cpu_shares': '1', 'rack': 'a', 'hw:boot_menu': 'x'}))

    def test_refusals_name_the_key_at_fault(self):
        pinned = {'hw:cpu_policy': 'dedicated'}
        for where, specs in (
                ('hw:cpu_realtime_mask', {**pinned,
                                          'hw:cpu_realtime': 'yes'}),
                ('hw:locked_memory', {'hw:locked_memory': 'true'}),
                ('pci_passthrough:alias', {'pci_passthrough:alias': 'vf'}),
                ('hpcvirt:numa_scope', {'hpcvirt:numa_scope': 'rack'}),
                ('hpcvirt:exclusive_cells',
                 {'hpcvirt:exclusive_cells': 'perhaps'}),
                ('hpcvirt:device_set', {'hpcvirt:device_set': 'four GPUs'}),
        ):
            with self.subTest(specs=specs):
                self.assert_refused(where, specs)

    def test_sizes_beyond_reason_are_refused(self):
        self.assert_refused('vcpus', {}, vcpus=0)
        self.assert_refused('vcpus', {}, vcpus=1 << 40)
        self.assert_refused('ram', {}, ram_mib=-1)

    def test_devices_are_read_in_their_order(self):
        found = codec.decode(4, 4096, {
            'pci_passthrough:alias': 'b:2, a:1,none:0',
            'hw:pci_numa_affinity_policy': 'preferred'})
        self.assertEqual(
            (shape.GuestDevices('b', 2, shape.PCIAffinity.PREFERRED),
             shape.GuestDevices('a', 1, shape.PCIAffinity.PREFERRED)),
            found.devices)


REQUIRED = shape.PCIAffinity.REQUIRED


def request(alias, count=1, affinity=None):
    return shape.GuestDevices(alias, count, affinity)


class DevicesReadTest(unittest.TestCase):
    def test_each_term_is_a_request(self):
        for text, expected in (
                ('vf:1', (request('vf'),)),
                (' vf : 2 ,gpu:+1', (request('vf', 2), request('gpu'))),
                ('vf:1,vf:2', (request('vf'), request('vf', 2))),
                ('', ())):
            self.assertEqual(expected, codec.read_devices(
                {'pci_passthrough:alias': text}))

    def test_a_request_for_none_is_no_request(self):
        self.assertEqual((request('gpu'),), codec.read_devices(
            {'pci_passthrough:alias': 'vf:0,gpu:1'}))

    def test_the_affinity_policy_is_that_of_every_request(self):
        self.assertEqual(
            (request('vf', 1, REQUIRED), request('gpu', 2, REQUIRED)),
            codec.read_devices({'pci_passthrough:alias': 'vf:1,gpu:2',
                                'hw:pci_numa_affinity_policy': 'required'}))

    def test_a_wrong_policy_is_refused_even_without_a_device(self):
        with self.assertRaises(exception.InvalidInput) as caught:
            codec.read_devices({'hw:pci_numa_affinity_policy': 'near'})
        self.assertEqual('hw:pci_numa_affinity_policy', caught.exception.where)

    def test_anything_else_is_refused(self):
        for text in ('vf', 'vf:', ':1', 'vf:x', 'vf:-1', 'vf:1.0', 'vf:1,',
                     'vf:1:2', f'vf:{10 ** 9 + 1}'):
            with self.subTest(text=text), self.assertRaisesRegex(
                    exception.InvalidInput, 'alias:count'):
                codec.read_devices({'pci_passthrough:alias': text})


class DevicesWriteTest(unittest.TestCase):
    def test_what_is_written_is_read_again(self):
        for wanted in ((), (request('vf'),),
                       (request('vf', 2, REQUIRED),
                        request('gpu', 1, REQUIRED))):
            self.assertEqual(wanted, codec.read_devices(
                codec.write_devices(wanted)))

    def test_no_affinity_writes_no_policy(self):
        self.assertEqual({'pci_passthrough:alias': 'vf:2'},
                         codec.write_devices((request('vf', 2),)))

    def test_what_no_flavor_can_request_is_refused(self):
        port = shape.GuestDevices(None, 1, physnet='fast')
        for message, wanted in (
                ('Neutron ports', (port,)),
                ('not a PCI alias and a count', (request('a,b'),)),
                ('not a PCI alias and a count', (request(' a'),)),
                ('not a PCI alias and a count', (request('a', 0),)),
                ('same affinity policy',
                 (request('a'), request('b', 1, REQUIRED)))):
            with self.assertRaisesRegex(exception.InvalidInput, message):
                codec.write_devices(wanted)


class PagesReadTest(unittest.TestCase):
    def test_sizes_and_classes(self):
        for text, expected in (
                ('2048', 2048), ('2MB', 2048), ('2MiB', 2048),
                ('1GB', 1 << 20), ('1GiB', 1 << 20), ('64KB', 64),
                ('16Kbit', 2), ('1.5MB', 1536),
                ('small', shape.PageClass.SMALL),
                ('large', shape.PageClass.LARGE),
                ('any', shape.PageClass.ANY)):
            self.assertEqual((expected, True),
                             codec.read_page_size(
                                 {'hw:mem_page_size': text}), text)

    def test_a_flavor_without_a_size_requests_no_topology(self):
        self.assertEqual((None, False), codec.read_page_size({}))
        self.assertEqual((None, False), codec.read_page_size(
            {'hw:mem_page_size': ''}))

    def test_anything_else_is_refused(self):
        for text in ('2M', 'huge', '-2048', '2048.5', '2 MB', '\xb2',
                     '2048kB', '-2MB', '1e3KB', 'large\n',
                     '9' * 5000, '9' * 400 + 'YB'):
            with self.assertRaisesRegex(exception.InvalidInput, 'page size',
                                        msg=text):
                codec.read_page_size({'hw:mem_page_size': text})


class PagesWriteTest(unittest.TestCase):
    def test_what_is_written_is_read_again(self):
        for size in (4, 64, 2048, 1 << 20, *shape.PageClass):
            self.assertEqual((size, True), codec.read_page_size(
                {'hw:mem_page_size': codec.write_page_size(size)}))

    def test_no_size_is_below_one_kib(self):
        with self.assertRaisesRegex(exception.InvalidInput, 'page size'):
            codec.write_page_size(0)

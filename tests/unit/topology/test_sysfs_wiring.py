# SPDX-License-Identifier: Apache-2.0

"""Read the wiring of devices from a sysfs, a copy or a capture."""

import pathlib
import random
import unittest

from hpcvirt import exception
from hpcvirt import topology
from hpcvirt.model import host as host_model
from hpcvirt.model import wiring
from hpcvirt.topology import capture
from hpcvirt.topology import sysfs_wiring
from hpcvirt.topology import tool_output
from tests.builders import machines
from tests.builders import refusals
from tests.builders import sysfs_files
from tests.builders import tool_outputs
from tests.builders import writers

PCI = 'sys/bus/pci/devices'
HERE = 'sys/devices/pci0000:00'
GPUS = ('0000:41:00.0', '0000:42:00.0', '0000:81:00.0')
ON = frozenset(('SrcValid', 'ReqRedir', 'CmpltRedir', 'UpstreamFwd'))


class Case(unittest.TestCase):
    """A switch with two GPUs, and a GPU at a root port."""

    def setUp(self) -> None:
        super().setUp()
        self.root = pathlib.Path(sysfs_files.scratch(self)) / 'box'
        self.wiring = wiring.Wiring(
            (wiring.Bridge('0000:00:01.0', None, wiring.PortKind.ROOT,
                           wiring.PCIeLink(16.0, 16, 32.0, 16), ON),
             wiring.Bridge('0000:00:02.0', None, wiring.PortKind.ROOT, None,
                           frozenset()),
             wiring.Bridge('0000:3e:00.0', '0000:00:01.0',
                           wiring.PortKind.UPSTREAM),
             wiring.Bridge('0000:3f:00.0', '0000:3e:00.0',
                           wiring.PortKind.DOWNSTREAM, acs=frozenset()),
             wiring.Bridge('0000:3f:01.0', '0000:3e:00.0',
                           wiring.PortKind.DOWNSTREAM, acs=frozenset())),
            (wiring.Attachment(GPUS[0], '0000:3f:00.0',
                               wiring.PCIeLink(16.0, 16, 16.0, 16), 7),
             wiring.Attachment(GPUS[1], '0000:3f:01.0', None, 7),
             wiring.Attachment(GPUS[2], '0000:00:02.0', None, 0)))
        self.files = writers.sysfs(machines.of_cells(
            machines.cell(0, (0,)), devices=tuple(
                host_model.Device(address, '10de', '2330', 0)
                for address in GPUS), wired=self.wiring))
        for name in self.files:
            if any(f'/{gpu}/class' in name for gpu in GPUS):
                self.files[name] = '0x030200'
        self.files[capture.LIST] = 'sys/**'

    def lay_out(self) -> None:
        self.root = self.root.parent / f'{self.root.name}x'
        sysfs_files.lay_out(self.files, self.root)

    def read(self) -> wiring.Wiring | None:
        self.lay_out()
        return topology.read(str(self.root)).wiring

    def need(self) -> wiring.Wiring:
        found = self.read()
        assert found is not None
        return found

    def refused(self, pattern: str) -> None:
        self.lay_out()
        self.assertRegex(
            refusals.message(self, topology.read, str(self.root)), pattern)

    def say(self, **outputs: str) -> None:
        for name, text in outputs.items():
            self.files[f'{tool_output.FOLDER}/{name.replace("_", "-")}'] = text

    def paths(self) -> list[list[str]]:
        found = self.need()
        return [[bridge.address for bridge in found.path(each)]
                for each in found.attachments]


class BridgesTest(Case):
    def test_everything_is_read(self) -> None:
        found = self.need()
        self.assertEqual(self.wiring.attachments, found.attachments)
        # Nobody wrote what the ACS of the upstream port is.
        self.assertEqual(
            [(each.above, each.link, each.acs)
             for each in self.wiring.bridges],
            [(each.above, each.link, each.acs) for each in found.bridges])
        self.assertEqual({wiring.UnknownWiring.DEVICE_LINKS}, found.unknown)
        self.assertIsNone(found.partitions)

    def test_bars_are_those_of_the_file_resource(self) -> None:
        # An H100 PCIe: 16 MiB, 128 GiB and 32 MiB; then its ROM, and the VFs.
        nothing = '0x0000000000000000 0x0000000000000000 0x0000000000000000\n'
        flags = '0x000000000014220c\n'
        self.files[f'{HERE}/0000:00:02.0/{GPUS[2]}/resource'] = (
            f'0x0000397000000000 0x0000397000ffffff {flags}{nothing}'
            f'0x0000395000000000 0x0000396fffffffff {flags}{nothing}'
            f'0x0000397002000000 0x0000397003ffffff {flags}{nothing}{nothing}'
            f'0x0000398000000000 0x00003981ffffffff {flags}')
        self.assertEqual([(), (), (16, 131072, 32)],
                         [each.bars_mib for each in self.need().attachments])

    def test_a_device_on_a_root_bus_is_below_no_bridge(self) -> None:
        for gpu, target in zip(GPUS, (
                f'../../../devices/pci0000:40/{GPUS[0]}',
                # Behind Intel VMD, which is no bridge.
                '../../../devices/pci0000:00/0000:00:01.0/'
                'pci10000:00/' + GPUS[1]), strict=False):
            self.files[f'{PCI}/{gpu}'] = sysfs_files.Link(target)
            self.files |= {f'{target.replace("../../../", "sys/")}/{name}':
                           text for name, text in {
                               'class': '0x030200', 'vendor': '0x10de',
                               'device': '0x2330'}.items()}
        self.assertEqual([[], [], ['0000:00:02.0']], self.paths())

    def test_a_capture_has_a_list_of_the_links(self) -> None:
        expected = self.need()
        links = {name: text for name, text in self.files.items()
                 if isinstance(text, sysfs_files.Link)
                 and name.startswith(PCI)}
        self.say(pci=''.join(f'{text}\n' for text in links.values()))
        for name, target in links.items():
            del self.files[name]
            there = str(target).replace('../../../', 'sys/')
            for file, text in list(self.files.items()):
                if file.startswith(f'{there}/') and '/' not in file[
                        len(there) + 1:]:
                    self.files[f'{name}{file[len(there):]}'] = text
        self.assertEqual(expected, self.read())

    def test_without_links_the_wiring_is_unknown(self) -> None:
        here = f'{HERE}/0000:00:01.0/0000:3e:00.0/0000:3f:00.0/{GPUS[0]}'
        del self.files[f'{PCI}/{GPUS[0]}']
        for name in ('class', 'vendor', 'device'):
            self.files[f'{PCI}/{GPUS[0]}/{name}'] = self.files[
                f'{here}/{name}']
        self.assertIsNone(self.read())

    def test_a_loop_of_bridges_is_refused(self) -> None:
        self.say(pci='x/0000:00:01.0/0000:3e:00.0/0000:00:01.0/'
                 f'{GPUS[0]}')
        self.files[f'{PCI}/{GPUS[0]}/class'] = '0x030200'
        self.files[f'{PCI}/{GPUS[0]}/vendor'] = '0x10de'
        self.files[f'{PCI}/{GPUS[0]}/device'] = '0x2330'
        del self.files[f'{PCI}/{GPUS[0]}']
        self.refused('x: 0000:00:01.0: is below two bridges')

    def test_links_of_any_text_are_no_bridges(self) -> None:
        for target in ('x/\x1b[31m/../..', GPUS[0], 'a/' * 999):
            self.say(pci=target)
            self.test_without_links_the_wiring_is_unknown()
            self.setUp()

    def test_configuration_space_says_what_a_bridge_is(self) -> None:
        self.files = {name: text for name, text in self.files.items()
                      if not name.endswith('/lspci')}
        self.assertEqual({None}, {each.acs for each in self.need().bridges})
        self.lay_out()
        config = self.root / PCI / '0000:3e:00.0/config'
        config.write_bytes(make_config(5, 0x1d))
        for bridge in ('0000:00:01.0', '0000:3f:00.0'):
            (self.root / PCI / bridge / 'config').write_bytes(
                make_config(4, None, 64))
        (self.root / PCI / '0000:3f:01.0/config').mkdir()
        read = topology.read(str(self.root)).wiring
        assert read is not None
        self.assertEqual(
            {'0000:3e:00.0': (wiring.PortKind.UPSTREAM, ON)},
            {each.address: (each.kind, each.acs) for each in read.bridges
             if each.kind or each.acs is not None})


class UnknownTest(Case):
    def test_what_was_not_captured_is_unknown(self) -> None:
        del self.files[capture.LIST]
        for part, facts in (
                ('', set()), ('_link_', {wiring.UnknownWiring.PCIE_LINKS}),
                ('iommu_groups', {wiring.UnknownWiring.PCIE_LINKS,
                                  wiring.UnknownWiring.IOMMU_GROUPS})):
            self.files = {name: text for name, text in self.files.items()
                          if not part or part not in name}
            self.assertEqual({*facts, wiring.UnknownWiring.DEVICE_LINKS},
                             self.need().unknown)
        self.files[capture.LIST] = 'sys/**'
        self.assertEqual({wiring.UnknownWiring.DEVICE_LINKS},
                         self.need().unknown)

    def test_links_of_a_gpu_that_no_tool_knows_are_unknown(self) -> None:
        table = '\tGPU0\tGPU1\tCPU Affinity\nGPU0\tX\tNV4\t0\nGPU1\tNV4\tX\t0'
        self.say(nvidia_smi_topo=table,
                 nvidia_smi_gpus=tool_outputs.gpus(0x41, 0x42))
        found = self.need()
        self.assertEqual((wiring.DeviceLink(
            wiring.LinkKind.NVLINK, (GPUS[0], GPUS[1]), 4),), found.links)
        self.assertEqual({wiring.UnknownWiring.DEVICE_LINKS}, found.unknown)
        for name in self.files:
            if f'/{GPUS[2]}/class' in name:
                self.files[name] = '0x010802'
        self.assertEqual(frozenset(), self.need().unknown)

    def test_a_host_with_one_gpu_has_no_links(self) -> None:
        for name in self.files:
            if any(f'/{gpu}/class' in name for gpu in GPUS[1:]):
                self.files[name] = '0x020000'
        self.assertEqual(frozenset(), self.need().unknown)


class ToolsTest(Case):
    def test_nvlinks_are_those_of_their_gpu(self) -> None:
        self.say(nvidia_smi_nvlink=tool_outputs.published(
            'v100-nvlink'),
            nvidia_smi_gpus=tool_outputs.gpus(0x81, 1, 2, 0x41))
        found = {each.address: each.nvlinks.count(0)
                 for each in self.need().attachments if each.nvlinks}
        self.assertEqual({GPUS[0]: 2}, found)

    def test_an_error_names_the_file(self) -> None:
        self.say(nvidia_smi_topo='\tGPU0\tCPU Affinity\nGPU0')
        self.refused(f'{self.root}x: output/nvidia-smi-topo: is cut off')

    def test_a_link_to_a_device_that_does_not_exist_is_refused(self) -> None:
        self.say(nvidia_smi_topo='\tGPU0\tGPU1\tCPU Affinity\n'
                 'GPU0\tX\tNV4\t0\nGPU1\tNV4\tX\t0',
                 nvidia_smi_gpus=tool_outputs.gpus(0x41, 0xee))
        self.refused("'0000:ee:00.0' is not a device of this host")

    def test_output_that_is_not_text_is_refused(self) -> None:
        self.say(rocm_smi_topo='x')
        self.lay_out()
        (self.root / tool_output.FOLDER / 'rocm-smi-topo').write_bytes(
            b'\xff\xfe')
        with self.assertRaisesRegex(exception.InvalidInput,
                                    'rocm-smi-topo: is not text'):
            topology.read(str(self.root))


KIND = {4: wiring.PortKind.ROOT, 5: wiring.PortKind.UPSTREAM,
        6: wiring.PortKind.DOWNSTREAM, 7: wiring.PortKind.BRIDGE,
        8: wiring.PortKind.BRIDGE, 0: None}


def make_config(kind: int = 4, control: int | None = None,
                size: int = 4096) -> bytes:
    """Make the configuration space of a bridge.

    Its capabilities are power management and PCI Express, and extended ones
    for errors and, unless the control is None, ACS.
    """
    data = bytearray(4096)
    data[0x06] = 0x10
    data[0x34] = 0x40
    data[0x40:0x44] = b'\x01\x80\x03\x00'
    data[0x80:0x84] = bytes((0x10, 0, 2 | kind << 4, 0))
    behind = 0x200 if control is not None else 0
    data[0x100:0x104] = (1 | 2 << 16 | behind << 20).to_bytes(4, 'little')
    if control is not None:
        data[0x200:0x204] = (0xd | 1 << 16).to_bytes(4, 'little')
        data[0x204:0x208] = bytes((0x5f, 0, control, 0))
    return bytes(data[:size])


class ReadConfigTest(unittest.TestCase):
    def test_the_type_says_what_a_bridge_is(self) -> None:
        for number, kind in KIND.items():
            self.assertEqual(
                kind, sysfs_wiring.read_config(make_config(number))[0])

    def test_each_bit_is_a_control(self) -> None:
        for bit, name in enumerate(wiring.ACS_CONTROLS):
            self.assertEqual(
                {name}, sysfs_wiring.read_config(make_config(6, 1 << bit))[1])
        self.assertEqual(
            {'SrcValid', 'ReqRedir', 'CmpltRedir', 'UpstreamFwd'},
            sysfs_wiring.read_config(make_config(6, 0x1d))[1])

    def test_no_control_may_be_on_and_no_acs_may_be_there(self) -> None:
        for control in (0, None):
            self.assertEqual(frozenset(), sysfs_wiring.read_config(
                make_config(4, control))[1])

    def test_a_bridge_without_pci_express_has_no_acs(self) -> None:
        data = bytearray(make_config()[:256])
        for change in ((0x06, 0), (0x41, 0)):
            data[change[0]] = change[1]
            self.assertEqual(
                (wiring.PortKind.BRIDGE, frozenset()),
                sysfs_wiring.read_config(bytes(data)))

    def test_what_a_user_cannot_read_is_unknown(self) -> None:
        for size in (0, 3, 64, 255):
            self.assertEqual((None, None), sysfs_wiring.read_config(
                make_config(4, 0x1d, size)))

    def test_without_extended_capabilities_acs_is_unknown(self) -> None:
        for size in (256, 0x204, 0x206):
            self.assertEqual(
                (wiring.PortKind.ROOT, None),
                sysfs_wiring.read_config(make_config(4, 0x1d, size)))
        self.assertEqual(
            (wiring.PortKind.ROOT, None),
            sysfs_wiring.read_config(make_config(4, None, 2048)))

    def test_a_function_that_is_gone_is_unknown(self) -> None:
        self.assertEqual((None, None),
                         sysfs_wiring.read_config(b'\xff' * 4096))

    def test_the_controls_of_a_device(self) -> None:
        for relaxed in (False, True):
            for ats in (None, False, True):
                data = bytearray(make_config(0))
                data[0x88] = 0x10 if relaxed else 0xef
                if ats is not None:
                    data[0x103] = 0x20
                    data[0x200:0x208] = bytes((
                        0xf, 0, 1, 0, 0, 0, 0x1f, 0x80 if ats else 0x7f))
                self.assertEqual((relaxed, ats), sysfs_wiring.read_controls(
                    bytes(data)))
                for size in (0, 64, 256, 4095):
                    self.assertIsNone(sysfs_wiring.read_controls(
                        bytes(data[:size])))

    def test_the_sizes_of_transfers(self) -> None:
        data = bytearray(make_config(0))
        # DevCap: 512 bytes; DevCtl: 256 bytes, requests of 4096.
        data[0x84] = 0x02
        data[0x88:0x8a] = bytes((0x3f, 0x5f))
        self.assertEqual((256, 512, 4096),
                         sysfs_wiring.read_sizes(bytes(data)))
        self.assertEqual((256, 512, 4096),
                         sysfs_wiring.read_sizes(bytes(data[:256])))
        # Any user may read 64 bytes; 6 and 7 are reserved.
        self.assertIsNone(sysfs_wiring.read_sizes(bytes(data[:64])))
        data[0x89] = 0x7f
        self.assertIsNone(sysfs_wiring.read_sizes(bytes(data)))
        for none in (b'', bytes(4096), b'\xff' * 4096):
            self.assertIsNone(sysfs_wiring.read_sizes(none))

    def test_a_device_without_pci_express_has_no_controls(self) -> None:
        data = bytearray(4096)
        self.assertEqual((None, None), sysfs_wiring.read_controls(bytes(data)))
        self.assertIsNone(sysfs_wiring.read_controls(b'\xff' * 4096))

    def test_a_loop_of_capabilities_ends(self) -> None:
        data = bytearray(make_config())
        data[0x41] = 0x40
        self.assertEqual((None, None), sysfs_wiring.read_config(bytes(data)))
        data = bytearray(make_config())
        data[0x100:0x104] = (1 | 0x100 << 20).to_bytes(4, 'little')
        self.assertEqual((wiring.PortKind.ROOT, None),
                         sysfs_wiring.read_config(bytes(data)))

    def test_any_bytes_are_read(self) -> None:
        for seed in range(500):
            dice = random.Random(seed)
            data = bytearray(make_config(dice.randrange(16),
                                         dice.randrange(256)))
            for _ in range(dice.choice((1, 5, 500))):
                data[dice.randrange(4096)] = dice.randrange(256)
            size = dice.choice((4096, dice.randrange(4097)))
            kind, acs = sysfs_wiring.read_config(bytes(data[:size]))
            self.assertIn(kind, (*wiring.PortKind, None))
            self.assertLessEqual(acs or frozenset(), {*wiring.ACS_CONTROLS})
            sysfs_wiring.read_controls(bytes(data[:size]))
            sysfs_wiring.read_sizes(bytes(data[:size]))

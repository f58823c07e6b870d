# SPDX-License-Identifier: Apache-2.0

import contextlib
import random
import re
import time
import unittest

from hpcvirt import exception
from hpcvirt.model import wiring
from hpcvirt.topology import tool_output
from tests.builders import refusals
from tests.builders import tool_outputs

published = tool_outputs.published
gpus = tool_outputs.gpus
NVLINK, XGMI = wiring.LinkKind.NVLINK, wiring.LinkKind.XGMI
ON = frozenset(('SrcValid', 'ReqRedir', 'CmpltRedir', 'UpstreamFwd'))


class Case(unittest.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.outputs: dict[str, str] = {}

    def text(self, name: str) -> str:
        self.assertIn(name, tool_output.COMMANDS)
        return self.outputs.get(name, '')

    def links(self) -> list[tuple[str, str, str, int | None]]:
        _, links = tool_output.read_links(self.text, 'n7')
        return [(link.kind, *link.ends, link.count) for link in links]

    def refused(self, pattern: str) -> None:
        self.assertRegex(refusals.message(
            self, tool_output.read_links, self.text, 'n7'), pattern)


class NetworkTest(Case):
    """The output of ethtool 6.1, of two devices."""

    COALESCE = ('\nCoalesce parameters for {}:\nAdaptive RX: {}  TX: n/a\n'
                'stats-block-usecs: n/a\n\nrx-usecs: 0\n\n')
    RINGS = ('\nRing parameters for {}:\nPre-set maximums:\nRX:\t\t4096\n'
             'RX Mini:\tn/a\nTX:\t\t4096\nCurrent hardware settings:\n'
             'RX:\t\t{}\nRX Mini:\tn/a\nTX:\t\t256\n')

    def test_adaptive_moderation_and_rings_are_read(self) -> None:
        whole = {
            'ethtool-coalesce': self.COALESCE.format('eth0', 'off')
            + self.COALESCE.format('ib0', 'on')
            + self.COALESCE.format('lo', 'n/a'),
            'ethtool-rings': self.RINGS.format('eth0', 256)
            + self.RINGS.format('ib0', 1024)}
        kept = {name: ''.join(
            line for line in text.splitlines(keepends=True)
            if re.search(tool_output.COMMANDS[name][0], line))
            for name, text in whole.items()}
        self.outputs = kept
        self.assertEqual(('ib0',), tool_output.read_moderated(self.text))
        self.assertEqual({'eth0': 256, 'ib0': 1024},
                         tool_output.read_rings(self.text))
        self.outputs = {}
        self.assertEqual((), tool_output.read_moderated(self.text))
        self.assertEqual({}, tool_output.read_rings(self.text))


class ReadBridgesTest(Case):
    def read(self, text: str) -> dict[str, tool_output.Port]:
        self.outputs['lspci'] = text
        return tool_output.read_bridges(self.text)

    def test_a_published_output_is_read(self) -> None:
        self.assertEqual(
            {'0000:00:01.1': (wiring.PortKind.ROOT, ON)},
            self.read(published('granite-ridge-lspci')))

    def test_each_kind_of_bridge(self) -> None:
        found = self.read(''.join(
            f'0000:0{number}:00.0 PCI bridge: x\n'
            f'\tCapabilities: [70] Express (v2) {kind}, MSI 00\n'
            for number, kind in enumerate((
                'Root Port (Slot-)', 'Upstream Port',
                'Downstream Port (Slot+)', 'PCI-Express to PCI/PCI-X Bridge',
                'PCI/PCI-X to PCI-Express Bridge', 'Endpoint',
                'Root Complex Integrated Endpoint'))))
        self.assertEqual(
            [(kind, frozenset()) for kind in (
                *wiring.PortKind, wiring.PortKind.BRIDGE)],
            list(found.values()))

    def test_what_lspci_may_not_read_is_unknown(self) -> None:
        self.assertEqual({}, self.read(
            '10000:e0:06.0 PCI bridge: Intel\n\tCapabilities: <access denied>'
            '\n\t\tACSCtl:\tSrcValid+\n'))

    def test_the_acs_of_a_device_is_not_that_of_the_bridge_before(self,
                                                                  ) -> None:
        found = self.read(published('granite-ridge-lspci')
                          + '01:00.0 Ethernet controller: x\n'
                          '\t\tACSCtl:\tSrcValid- ReqRedir-\n')
        self.assertEqual(ON, found['0000:00:01.1'][1])


class ReadSizesTest(Case):
    def read(self, text: str) -> dict[str, tool_output.TransferSizes]:
        self.outputs['lspci'] = text
        return tool_output.read_sizes(self.text)

    def test_the_lines_of_old_and_new_releases_are_read(self) -> None:
        for most in ('MaxPayload 512 bytes, PhantFunc 0, Latency L0s <64ns',
                     'MaxPayload 512 bytes, PhantFunc 0'):
            self.assertEqual(
                {'0000:b3:00.0': (256, 512, 4096)}, self.read(
                    'b3:00.0 Ethernet controller: Mellanox\n'
                    '\tCapabilities: [60] Express (v2) Endpoint, MSI 00\n'
                    f'\t\tDevCap:\t{most}\n'
                    '\t\t\tRlxdOrd+ ExtTag+ PhantFunc- AuxPwr- NoSnoop+\n'
                    '\t\t\tMaxPayload 256 bytes, MaxReadReq 4096 bytes\n'))

    def test_what_lspci_did_not_print_is_unknown(self) -> None:
        self.assertEqual({}, self.read(published('devices-lspci')))
        self.assertEqual({}, self.read(
            'b3:00.0 Ethernet controller: x\n\t\tDevCap:\tMaxPayload 512 '
            'bytes\n'))


class ReadControlsTest(Case):
    def read(self, text: str) -> dict[str, tool_output.Controls]:
        self.outputs['lspci'] = text
        return tool_output.read_controls(self.text)

    def test_published_outputs_are_read(self) -> None:
        found = {'0000:07:00.0': (False, None), '0000:b3:00.0': (True, True)}
        text = published('devices-lspci')
        self.assertEqual(found, self.read(text))
        found['0000:b3:00.0'] = True, False
        self.assertEqual(found, self.read(text.replace('Enable+', 'Enable-')))

    def test_bridges_do_not_take_lines_of_devices(self) -> None:
        self.outputs['lspci'] = published('granite-ridge-lspci')
        before = tool_output.read_bridges(self.text)
        self.outputs['lspci'] += published('devices-lspci')
        self.assertEqual(before, tool_output.read_bridges(self.text))

    def test_what_lspci_may_not_read_is_unknown(self) -> None:
        self.assertEqual({}, self.read(
            '10000:e0:06.0 Ethernet controller: x\n\tCapabilities: <access '
            'denied>\n'))
        # Former captures have no such lines.
        self.assertEqual({}, self.read(published('granite-ridge-lspci')))


class ReadLinksTest(Case):
    def test_nvlinks_of_a_published_table(self) -> None:
        self.outputs = {'nvidia-smi-topo': published('dgx-1-topo'),
                        'nvidia-smi-gpus': gpus(0x1a, 0x1c, 0x3d, 0x3e)}
        known, _ = tool_output.read_links(self.text, 'n7')
        a, b, c, d = sorted(known)
        self.assertEqual(('0000:1a:00.0', '0000:3e:00.0'), (a, d))
        self.assertEqual(
            [(NVLINK, a, b, 1), (NVLINK, a, c, 1), (NVLINK, a, d, 2),
             (NVLINK, b, c, 2), (NVLINK, b, d, 1), (NVLINK, c, d, 2)],
            self.links())

    def test_xgmi_of_a_published_table(self) -> None:
        # The numbers of these GPUs are not in the order of the addresses.
        self.outputs = {'rocm-smi-topo': published('mi60-topo'),
                        'rocm-smi-bus': published('mi60-bus')}
        self.assertEqual(
            [(XGMI, '0000:23:00.0', '0000:43:00.0', None),
             (XGMI, '0000:03:00.0', '0000:26:00.0', None)], self.links())

    def test_the_lines_that_a_capture_keeps_are_enough(self) -> None:
        for tool, name in (('nvidia-smi-topo', 'dgx-1-topo'),
                           ('rocm-smi-topo', 'mi60-topo'),
                           ('rocm-smi-bus', 'mi60-bus'),
                           ('lspci', 'granite-ridge-lspci'),
                           ('lspci', 'devices-lspci'),
                           ('nvidia-smi-nvlink', 'v100-nvlink')):
            whole = self.outputs[tool] = published(name)
            self.outputs['nvidia-smi-gpus'] = gpus(1, 2, 3, 4)
            before = (tool_output.read_bridges(self.text),
                      tool_output.read_controls(self.text),
                      tool_output.read_links(self.text, 'n7'),
                      tool_output.read_speeds(self.text))
            pattern, _ = tool_output.COMMANDS[tool]
            self.outputs[tool] = ''.join(
                line for line in whole.splitlines(keepends=True)
                if re.search(pattern,
                             line))
            self.assertLess(len(self.outputs[tool]), len(whole) + 1)
            self.assertEqual(before, (tool_output.read_bridges(self.text),
                                      tool_output.read_controls(self.text),
                                      tool_output.read_links(self.text, 'n7'),
                                      tool_output.read_speeds(self.text)))

    def test_underlined_names_are_names(self) -> None:
        self.outputs = {
            'nvidia-smi-topo': '\t\x1b[4mGPU0\tGPU1\tCPU Affinity\x1b[0m\n'
            'GPU0\t X \tNV18\t0-55\nGPU1\tNV18\t X \t0-55\n',
            'nvidia-smi-gpus': gpus(0x18, 0x2a)}
        self.assertEqual([(NVLINK, '0000:18:00.0', '0000:2a:00.0', 18)],
                         self.links())

    def test_a_host_without_links_is_known_to_have_none(self) -> None:
        self.outputs = {
            'nvidia-smi-topo': '\tGPU0\tGPU1\tCPU Affinity\n'
            'GPU0\t X \tPHB\t0-7\nGPU1\tPHB\t X \t0-7\n',
            'nvidia-smi-gpus': gpus(1, 2)}
        self.assertEqual(({'0000:01:00.0', '0000:02:00.0'}, []),
                         tool_output.read_links(self.text, 'n7'))

    def test_the_address_of_a_gpu_is_not_guessed(self) -> None:
        self.outputs = {'nvidia-smi-topo': published('dgx-1-topo'),
                        'rocm-smi-topo': published('mi60-topo')}
        self.assertEqual((set(), []),
                         tool_output.read_links(self.text, 'n7'))
        self.outputs['nvidia-smi-gpus'] = gpus(0x1a, 0x1c)
        self.assertEqual([(NVLINK, '0000:1a:00.0', '0000:1c:00.0', 1)],
                         self.links())

    def test_messages_instead_of_tables_say_nothing(self) -> None:
        for text in ('', 'No devices were found\n', 'Failed\n',
                     '\0\x1b[2J'):
            self.outputs = dict.fromkeys(tool_output.COMMANDS, text)
            self.assertEqual((set(), []),
                             tool_output.read_links(self.text, 'n7'))
            self.assertEqual({}, tool_output.read_speeds(self.text))
            self.assertEqual({}, tool_output.read_bridges(self.text))
            self.assertEqual({}, tool_output.read_controls(self.text))

    def test_every_truncated_table_is_refused_or_whole(self) -> None:
        for tool, name, ids in (
                ('nvidia-smi-topo', 'dgx-1-topo', 'nvidia-smi-gpus'),
                ('rocm-smi-topo', 'mi60-topo', 'rocm-smi-bus')):
            whole = published(name)
            self.outputs = {tool: whole, ids: (
                gpus(1, 2, 3, 4) if 'nvidia' in tool
                else published('mi60-bus'))}
            links = self.links()
            sound = 0
            for cut in range(len(whole)):
                self.outputs[tool] = whole[:cut]
                try:
                    found = self.links()
                except exception.InvalidInput as exc:
                    self.assertIn(f'{tool}: ', str(exc))
                    continue
                self.assertIn(found, ([], links), cut)
                sound += bool(found)
            self.assertGreater(sound, 10)

    def test_tables_that_contradict_themselves_are_refused(self) -> None:
        whole = published('dgx-1-topo')
        for pattern, table in {
                'GPU0 to GPU1 is not GPU1 to GPU0':
                    whole.replace('X \tNV1', 'X \tNV2', 1),
                'each GPU must have a row and a column':
                    whole.replace('\tGPU3', '\tGPU7', 1),
                'n7: output/nvidia-smi-topo: is cut off':
                    whole + whole[40:]}.items():
            self.outputs = {'nvidia-smi-topo': table}
            self.refused(pattern)

    def test_any_text_is_read_or_refused(self) -> None:
        for seed in range(300):
            dice = random.Random(seed)
            self.outputs = {'nvidia-smi-gpus': gpus(1, 2, 3, 4)}
            for tool, name in (('nvidia-smi-topo', 'dgx-1-topo'),
                               ('rocm-smi-topo', 'mi60-topo'),
                               ('rocm-smi-bus', 'mi60-bus'),
                               ('nvidia-smi-nvlink', 'v100-nvlink'),
                               ('lspci', 'granite-ridge-lspci')):
                text = list(published(name))
                for _ in range(dice.choice((1, 5, 50))):
                    text[dice.randrange(len(text))] = dice.choice(
                        'GPU019NV\t\n \x1b\u2028X:=')
                self.outputs[tool] = ''.join(text)
            try:
                tool_output.read_links(self.text, 'n7')
            except exception.InvalidInput as exc:
                self.assertNotIn('\n', str(exc))
                self.assertTrue(str(exc).isprintable(), str(exc))
            tool_output.read_speeds(self.text)
            tool_output.read_bridges(self.text)
            tool_output.read_controls(self.text)

    def test_large_outputs_take_no_time(self) -> None:
        self.assert_take_no_time(0.1)

    def test_periodic_outputs_of_a_megabyte_take_no_time(self) -> None:
        self.assert_take_no_time(1.0)

    def assert_take_no_time(self, factor: float) -> None:
        begin = time.process_time()
        for line, times in (
                ('GPU0 ', 200_000), ('GPU0 X\n', 150_000),
                ('GPU[1', 200_000), ('\x1b[', 500_000),
                ('0000:00:00.0 ', 80_000), ('\n0', 400_000),
                ('ATSCtl: ', 100_000), ('RlxdOrd', 100_000),
                ('Express (v2) ', 80_000), ('GPU1 X\n', 100_000),
                ('Link 1: 1.1 GB/s\n', 60_000)):
            text = line * int(times * factor)
            if line == 'GPU1 X\n':
                text = ' '.join(f'GPU{number}' for number
                                in range(9999)) + '\n' + text
            self.outputs = dict.fromkeys(tool_output.COMMANDS, text)
            with contextlib.suppress(exception.InvalidInput):
                tool_output.read_links(self.text, 'n7')
            tool_output.read_speeds(self.text)
            tool_output.read_bridges(self.text)
            tool_output.read_controls(self.text)
        self.assertLess(time.process_time() - begin, 30)


class ReadSpeedsTest(Case):
    def test_published_links_that_are_not_active_are_0(self) -> None:
        self.outputs = {'nvidia-smi-nvlink': published('v100-nvlink'),
                        'nvidia-smi-gpus': gpus(1, 2, 3, 0xc2)}
        self.assertEqual(
            {'0000:c2:00.0': (25.781, 25.781, 25.781, 0, 25.781, 0)},
            tool_output.read_speeds(self.text))

    def test_a_gpu_without_an_address_is_left_out(self) -> None:
        self.outputs = {'nvidia-smi-nvlink': published('v100-nvlink'),
                        'nvidia-smi-gpus': gpus(0x57)}
        self.assertEqual({}, tool_output.read_speeds(self.text))


class ReadPartitionsTest(Case):
    def setUp(self) -> None:
        super().setUp()
        self.outputs = {'fmpm': published('hgx-partitions'),
                        'nvidia-smi-modules': published('hgx-modules')}

    def read_partitions(self) -> tuple[wiring.FabricPartition, ...] | None:
        return tool_output.read_partitions(self.text, 'n7')

    def test_partitions_of_published_output(self) -> None:
        found = self.read_partitions()
        assert found is not None
        self.assertEqual([8, 4, 4, 2, 2, 2, 2, *[1] * 8],
                         [len(each.devices) for each in found])
        self.assertEqual([0], [each.number for each in found if each.active])
        # As the notes say that have both outputs.
        self.assertEqual(wiring.FabricPartition(
            3, ('0000:4c:00.0', '0000:5d:00.0')), found[3])
        self.assertEqual(('0000:19:00.0', '0000:3b:00.0'), found[4].devices)

    def test_other_lines_change_nothing(self) -> None:
        before = self.read_partitions()
        self.outputs = {
            'fmpm': '{\n   "numPartitions" : 15,\n' + self.outputs['fmpm']
            .replace('"physicalId"', '"maxNumNvLinks" : 18,\n"physicalId"')
            + '\n   "version" : 16909068\n',
            'nvidia-smi-modules': self.outputs['nvidia-smi-modules'].replace(
                'GPU ', '    GPU Part Number   : 2230-875-A1\nGPU ')}
        for name in self.outputs:
            pattern, _ = tool_output.COMMANDS[name]
            self.outputs[name] = ''.join(
                line for line in self.outputs[name].splitlines(keepends=True)
                if re.search(pattern, line))
        self.assertEqual(before, self.read_partitions())

    def test_a_gpu_without_an_address_leaves_all_unknown(self) -> None:
        for name, part in (('fmpm', ''), ('nvidia-smi-modules', ''), (
                'nvidia-smi-modules', published('hgx-modules').replace(
                    'Id                         : 3', 'Id : N/A'))):
            self.setUp()
            self.outputs[name] = part
            self.assertIsNone(self.read_partitions(), name)

    def test_an_output_that_is_cut_off_is_refused(self) -> None:
        whole = self.outputs['fmpm'].splitlines()
        for lines in (whole[:-1], whole[1:], whole[:-2] + whole[-1:]):
            self.outputs['fmpm'] = '\n'.join(lines)
            with self.assertRaisesRegex(exception.InvalidInput,
                                        'n7: output/fmpm: .*is cut off'):
                self.read_partitions()

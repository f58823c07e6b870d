# SPDX-License-Identifier: Apache-2.0

"""The rules about the devices that guests get."""

import dataclasses
import json

from hpcvirt.audit import audit
from hpcvirt.audit.reading.hardware import GroupedFunction
from hpcvirt.audit.reading.hardware import VirtualFunctions
from hpcvirt.deployment import host_files
from hpcvirt.flavors import kernel_settings
from hpcvirt.flavors import profile as profiles
from hpcvirt.model import host as host_model
from hpcvirt.model import wiring
from hpcvirt.topology import hardware_state
from hpcvirt.topology.tool_output import TransferSizes
from tests.builders import audited
from tests.builders import wired

#: On each of two switches of the host: two GPUs and a network card.
GPUS = wired.GPUS
CARDS = ('0000:1a:00.0', '0000:9a:00.0')
PORTS = {GPUS[0]: '0000:17:00.0', GPUS[1]: '0000:17:01.0',
         CARDS[0]: '0000:17:02.0'}
DIRECT = wired.ON | {'DirectTrans'}
SPEC = ('pci', 'device_spec')


class Case(audited.Case):
    def setUp(self) -> None:
        super().setUp()
        self.host = wired.host()
        self.specs: list[object] = []
        self.functions = {CARDS[0]: 8}
        self.controls = dict.fromkeys(CARDS, (True, True))
        self.bars = dict.fromkeys((*GPUS, *CARDS), 131072)
        self.slots: dict[str, tuple[float, int]] = {}
        self.grouped: tuple[GroupedFunction, ...] = ()
        self.sizes: dict[str, TransferSizes] = {}
        for address in (*GPUS, *CARDS, *(
                bridge.address for bridge in self.host.wiring.bridges)):
            self.sizes[address] = TransferSizes(512, 512, 4096)

    def change(self, address: str, **fields: object) -> None:
        """Change a device, or how it or a bridge is wired."""
        def changed(items):
            return tuple(dataclasses.replace(item, **{
                name: value for name, value in fields.items()
                if hasattr(item, name)}) if item.address == address else item
                for item in items)

        known = self.host.wiring
        assert known is not None
        self.host = dataclasses.replace(
            self.host, devices=changed(self.host.devices),
            wiring=dataclasses.replace(
                known, bridges=changed(known.bridges),
                attachments=changed(known.attachments)))

    def set_acs(self, *acs: frozenset[str] | None) -> None:
        """Set the ACS of the ports above two GPUs and a card."""
        for port, controls in zip(PORTS.values(), acs, strict=True):
            self.change(port, acs=controls)

    def find(self, code: str, profile: profiles.Profile | None = None,
             ) -> list[tuple[str, str]]:
        return self.found(code, self.facts(), profile)

    def unknown(self) -> list[str]:
        """Return what is unknown, and which rules it leaves open."""
        return [f'{item.found} -> {item.expected}' for item
                in audit.audit(self.facts()).findings
                if 'device-' in item.expected and item.code == audit.UNKNOWN]

    def facts(self):
        best = 32.0, 16
        return audited.replace(
            self.but(
                nova={SPEC: tuple(each if isinstance(each, str)
                                  else json.dumps(each)
                                  for each in self.specs) or None},
                hardware={
                    'controls': self.controls, 'bars': self.bars,
                    'grouped': self.grouped, 'sizes': self.sizes,
                    'functions': tuple(
                        VirtualFunctions(address, count, frozenset({0}))
                        for address, count in self.functions.items()),
                    'links': tuple(
                        hardware_state.PcieLink(
                            device.address, {'10de': '03', '15b3': '02'}.get(
                                device.vendor_id, '01'), best, best,
                            self.slots.get(device.address, best))
                        for device in self.host.devices)}),
            host=self.host)


class GivenTest(Case):
    """The devices that are for guests: here, those that keep the order."""

    def given(self) -> set[str]:
        self.controls = {device.address: (False, None)
                         for device in self.host.devices}
        return {text.split()[3] for _, text in self.find('device-ordering')}

    def test_a_card_with_virtual_functions_is(self) -> None:
        self.assertEqual({CARDS[0]}, self.given())
        self.functions = dict.fromkeys(CARDS, 0)
        self.assertEqual(set(), self.given())

    def test_a_card_that_is_bound_to_vfio_is(self) -> None:
        for driver, expected in (('vfio-pci', True), ('mlx5_vfio_pci', True),
                                 ('mlx5_core', False), (None, False)):
            self.change(CARDS[1], driver=driver)
            self.assertEqual(expected, CARDS[1] in self.given(), driver)

    def test_a_card_that_device_spec_names_is(self) -> None:
        self.functions = {}
        for spec, expected in (
                ({}, set(CARDS)), ({'vendor_id': '15B3'}, set(CARDS)),
                ({'vendor_id': '15b3', 'product_id': '1021'}, set(CARDS)),
                ({'product_id': '101e'}, set()), ({'vendor_id': '8086'},
                                                  set()),
                ({'address': CARDS[1]}, {CARDS[1]}),
                ({'address': '*:1a:00.*'}, {CARDS[0]}),
                ({'address': ':9a:00.'}, {CARDS[1]}),
                ({'address': '0000:1a:00.1'}, set()),
                ([{'address': CARDS[0]}, {'address': CARDS[1]}], set(CARDS)),
                ({'devname': 'ens1f0'}, set())):
            self.specs = [spec]
            self.assertEqual(expected, self.given(), spec)

    def test_an_item_that_is_not_read_leaves_the_rules_open(self) -> None:
        for spec in ('{', '7', '"x"', '[7]', '[' * 9999, '{"address": {}}',
                     {'address': {'bus': '1a', 'slot': '.*'}}):
            self.specs = [spec]
            found, = self.unknown()
            self.assertIn('[pci]device_spec: is not JSON, or has', found)
            self.assertIn('device-driver, device-groups, device-peers, '
                          'device-ordering', found)

    def test_a_device_of_the_plan_is(self) -> None:
        self.functions = {}
        profile = profiles.build({'devices': [{
            'vendor_id': '15b3', 'product_id': '101e'}]}, 'profile')
        facts = audited.replace(self.but(hardware={
            'controls': {device.address: (False, None)
                         for device in audited.HOST.devices}}),
            host=audited.HOST)
        self.assertEqual(
            {('warning', f'relaxed ordering of {device.address} is off')
             for device in audited.HOST.devices},
            set(self.found('device-ordering', facts, profile)))

    def test_a_host_without_such_devices_needs_no_fact(self) -> None:
        self.functions, self.controls = {}, {}
        for gpu in GPUS:
            self.change(gpu, driver='nvidia')
        self.host = dataclasses.replace(self.host, wiring=None)
        self.assertEqual([], self.unknown())


class DriverTest(Case):
    def test_a_driver_that_libvirt_may_not_change(self) -> None:
        for managed, driver, expected in (
                ('no', 'nvidia', ['error']), ('false', None, ['error']),
                ('no', 'vfio-pci', []), ('no', 'nvgrace-gpu-vfio-pci', []),
                ('yes', 'nvidia', ['warning']), ('yes', None, []),
                ('yes', 'vfio-pci', [])):
            self.specs = [{'address': GPUS[0], 'managed': managed}]
            self.change(GPUS[0], driver=driver)
            found = self.find('device-driver')
            self.assertEqual(expected, [severity for severity, _ in found])
        self.specs = [{'address': GPUS[0]}]
        self.change(GPUS[0], driver='nouveau')
        (_, found), = self.find('device-driver')
        self.assertEqual(f'{GPUS[0]} has nouveau, which must release it for '
                         'each guest', found)

    def test_a_network_card_may_be_bound_for_each_guest(self) -> None:
        self.specs = [{'address': CARDS[1]}]
        self.assertEqual([], self.find('device-driver'))

    def test_a_card_with_virtual_functions_keeps_its_driver(self) -> None:
        self.specs = [{'address': CARDS[0], 'managed': 'no'}]
        self.assertEqual([], self.find('device-driver'))


class GroupTest(Case):
    def test_two_gpus_of_one_group(self) -> None:
        self.assertEqual([], self.find('device-groups'))
        self.change(GPUS[1], iommu_group=20)
        found = f'{GPUS[0]}, {GPUS[1]} share IOMMU group 20'
        self.assertEqual([('warning', found)], self.find('device-groups'))

    def test_a_group_with_a_device_of_the_host(self) -> None:
        self.change('0000:01:00.0', iommu_group=20)
        self.assertEqual(['error'], [severity for severity, _ in self.find(
            'device-groups')])

    def test_a_card_and_its_virtual_functions(self) -> None:
        virtual = host_model.Device('0000:1a:00.1', '15b3', '101e', 0)
        known = self.host.wiring
        assert known is not None
        devices = sorted((*self.host.devices, virtual),
                         key=lambda device: device.address)
        self.change(CARDS[0], vf_product_id='101e')
        plain = self.host
        for group, expected in ((22, ['error']), (99, [])):
            self.host = dataclasses.replace(
                plain, devices=tuple(
                    dataclasses.replace(device, vf_product_id='101e')
                    if device.address == CARDS[0] else device
                    for device in devices),
                wiring=dataclasses.replace(known, attachments=(
                    *known.attachments, wiring.Attachment(
                        virtual.address, PORTS[CARDS[0]], None, group))))
            self.assertEqual(expected, [
                severity for severity, _ in self.find('device-groups')])

    def test_devices_of_the_host_may_share_one(self) -> None:
        self.change('0000:01:00.0', iommu_group=22)  # with the card of VFs
        self.assertEqual([], self.find('device-groups'))

    def test_without_an_iommu_there_are_no_groups(self) -> None:
        for device in self.host.devices:
            self.change(device.address, iommu_group=None)
        self.assertEqual([], self.find('device-groups'))

    def test_what_is_not_captured_is_unknown(self) -> None:
        known = self.host.wiring
        assert known is not None
        for lost in (None, dataclasses.replace(known, unknown=frozenset(
                {wiring.UnknownWiring.IOMMU_GROUPS}))):
            self.host = dataclasses.replace(self.host, wiring=lost)
            self.assertTrue(any('device-groups' in each
                                for each in self.unknown()))


class HeldGroupTest(Case):
    """Functions that no topology lists, in the group of a GPU of a guest."""

    GROUP = 20  # of GPUS[0]

    def add(self, address: str, code: str, driver: str | None,
            group: int = GROUP) -> None:
        self.grouped = (GroupedFunction(address, group, code, '10de', '1aef',
                                        driver),)

    def test_a_function_of_the_card_that_a_driver_of_the_host_holds(self):
        for code, driver, kind in (
                ('0403', 'snd_hda_intel', 'audio function'),
                ('0c03', 'xhci_hcd', 'USB controller'),
                ('0c80', 'nvidia-gpu', 'bus controller')):
            self.add(f'{GPUS[0][:-1]}1', code, driver)
            (severity, found), = self.find('device-groups')
            self.assertEqual('error', severity)
            self.assertIn(f'the {kind} of the same card in IOMMU group 20 of '
                          f'{GPUS[0]}, is bound to the host driver {driver}',
                          found)

    def test_a_controller_of_the_host_in_the_group(self) -> None:
        self.add('0000:02:00.0', '0107', 'mpt3sas')
        (severity, found), = self.find('device-groups')
        self.assertEqual('error', severity)
        self.assertIn('the SAS controller of the host in IOMMU group 20',
                      found)

    def test_what_does_not_hold_the_group(self) -> None:
        for code, driver, group in (
                ('0403', 'vfio-pci', 20), ('0403', None, 20),
                ('0403', 'pci-stub', 20), ('0604', 'pcieport', 20),
                ('0604', None, 20),
                # Another group, in which no guest has a device.
                ('0403', 'snd_hda_intel', 99)):
            self.add(f'{GPUS[0][:-1]}1', code, driver, group)
            self.assertEqual([], self.find('device-groups'), (code, driver))

    def test_a_function_that_guests_get_too_is_released(self) -> None:
        self.add(f'{GPUS[0][:-1]}1', '0403', 'snd_hda_intel')
        self.specs = [{'vendor_id': '10de', 'product_id': '1aef'}]
        self.assertEqual([], self.find('device-groups'))


class TransfersTest(Case):
    def test_a_payload_that_card_and_bridges_could_exceed(self) -> None:
        self.assertEqual([], self.find('device-transfers'))
        for payload, expected in ((128, 'warning'), (256, 'note')):
            self.sizes[CARDS[0]] = TransferSizes(payload, 512, 4096)
            self.assertEqual(
                [(expected,
                  f'MaxPayload of {CARDS[0]} is {payload} bytes')],
                self.find('device-transfers'))

    def test_a_bridge_that_can_no_more(self) -> None:
        self.sizes[CARDS[0]] = TransferSizes(256, 512, 4096)
        self.sizes[PORTS[CARDS[0]]] = TransferSizes(256, 256, 512)
        self.assertEqual([], self.find('device-transfers'))

    def test_requests_that_are_small(self) -> None:
        for address, size, expected in (
                (CARDS[0], 128, ['warning']), (CARDS[0], 512, ['note']),
                (GPUS[0], 256, ['warning']), (GPUS[0], 512, [])):
            self.sizes[address] = TransferSizes(512, 512, size)
            self.assertEqual(expected, [severity for severity, _ in self.find(
                'device-transfers')], (address, size))
            self.sizes[address] = TransferSizes(512, 512, 4096)

    def test_what_is_not_captured_is_unknown(self) -> None:
        del self.sizes[GPUS[0]]
        self.assertTrue(any('device-transfers' in each
                            for each in self.unknown()))


class PeersTest(Case):
    def test_without_redirection_requests_are_direct(self) -> None:
        self.controls[CARDS[0]] = (True, None)
        self.set_acs(frozenset(), frozenset(), frozenset({'SrcValid'}))
        self.assertEqual([], self.find('device-peers'))

    def test_translated_requests_are_direct(self) -> None:
        self.set_acs(DIRECT, DIRECT, DIRECT)
        self.assertEqual([], self.find('device-peers'))

    def test_each_port_that_redirects_all_is_named_once(self) -> None:
        self.set_acs(wired.ON, DIRECT, wired.ON)
        found, = (item for item in audit.audit(self.facts()).findings
                  if item.code == 'device-peers')
        gpu, card = PORTS[GPUS[0]], PORTS[CARDS[0]]
        self.assertEqual(
            ('warning', (f'ACS of {gpu}, {card} redirects all requests '
                         'between GPUs and network cards')),
            (found.severity, found.found))
        # The kernel takes the last of several such parameters.
        self.assertEqual((
            f'setpci -s {gpu} ECAP_ACS+6.w=40:40',
            f'setpci -s {card} ECAP_ACS+6.w=40:40',
            '# lasting, quoted on the command line of Linux 6.16 or newer:',
            f'pci=config_acs=1011101@{gpu};1011101@{card}'), found.change)
        self.assertEqual(
            {*wired.ON, 'DirectTrans'},
            {name for bit, name in zip(
                reversed('1011101'), wiring.ACS_CONTROLS, strict=True)
             if bit == '1'})
        self.change(GPUS[1], above=gpu)
        self.assertEqual([(found.severity, found.found)],
                         self.find('device-peers'))

    def test_a_card_without_ats_translates_nothing(self) -> None:
        for ats, expected in (
                (None, ('warning', f'ATS of {CARDS[0]} is missing')),
                (False, ('note', f'ATS of {CARDS[0]} is off at present'))):
            self.controls[CARDS[0]] = (True, ats)
            self.set_acs(DIRECT, DIRECT, DIRECT)
            self.assertEqual([expected], self.find('device-peers'))

    def test_only_a_gpu_and_a_card_of_one_switch_are_peers(self) -> None:
        self.set_acs(wired.ON, wired.ON, wired.ON)
        self.functions = {CARDS[1]: 8}
        self.assertEqual([], self.find('device-peers'))
        self.functions = {CARDS[0]: 8}
        for gpu in GPUS[:2]:
            self.change(gpu, driver='nvidia')
        self.assertEqual([], self.find('device-peers'))

    def test_a_disk_below_the_switch_is_no_peer(self) -> None:
        self.change('0000:01:00.0', above=PORTS[GPUS[1]], driver='vfio-pci')
        self.change(GPUS[1], above=PORTS[GPUS[0]])
        self.set_acs(DIRECT, wired.ON, DIRECT)
        self.assertEqual([], self.find('device-peers'))

    def test_what_is_not_captured_is_unknown(self) -> None:
        self.set_acs(DIRECT, None, DIRECT)
        self.assertEqual(
            [(f'{PORTS[GPUS[1]]} (lspci): was not captured, or needs '
              'permission -> an answer of device-peers')], self.unknown())
        self.set_acs(DIRECT, DIRECT, DIRECT)
        del self.controls[CARDS[0]]
        self.assertEqual(
            [(f'{CARDS[0]} (lspci): was not captured, or needs permission -> '
              'an answer of device-peers, device-ordering')], self.unknown())
        self.host = dataclasses.replace(self.host, wiring=None)
        self.assertTrue(any('device-peers' in each
                            for each in self.unknown()))


class OrderingTest(Case):
    def test_a_card_that_keeps_the_order(self) -> None:
        for relaxed, expected in ((True, []), (None, []), (False, [
                ('warning', f'relaxed ordering of {CARDS[0]} is off')])):
            self.controls[CARDS[0]] = (relaxed, None)
            self.assertEqual(expected, self.find('device-ordering'))
        self.assertEqual([], self.found('device-ordering', self.but(
            self.facts(), cpu={'is_guest': True}), None))

    def test_gpus_are_not_judged(self) -> None:
        self.controls |= dict.fromkeys(GPUS, (False, None))
        self.assertEqual([], self.find('device-ordering'))


class EqualsTest(Case):
    def test_a_gpu_with_a_smaller_bar(self) -> None:
        self.assertEqual([], self.find('device-equals'))
        self.bars[GPUS[2]] = 256
        item, = (item for item in audit.audit(self.facts()).findings
                 if item.code == 'device-equals')
        self.assertEqual(
            (f'{GPUS[2]} has 256 MiB of memory in its largest BAR',
             f'131072, as {GPUS[0]} of the same model'),
            (item.found, item.expected))

    def test_a_slot_that_is_narrower_or_slower(self) -> None:
        for slot, figure in (((32.0, 8), 256), ((16.0, 16), 256),
                             ((16.0, 8), 128)):
            self.slots = {GPUS[0]: slot}
            self.assertEqual(
                [('warning', (f'{GPUS[0]} has {figure} GT/s in all lanes of '
                              'card and slot'))], self.find('device-equals'))

    def test_others_are_not_compared(self) -> None:
        self.bars[CARDS[0]] = 32  # another model
        self.bars[CARDS[1]], self.slots = 64, {CARDS[1]: (8.0, 8)}
        self.assertEqual([], self.find('device-equals'))
        self.functions[CARDS[1]] = 1
        self.assertEqual(2, len(self.find('device-equals')))
        self.bars[CARDS[0]] = 0  # it is not known, or there is none
        self.assertEqual(1, len(self.find('device-equals')))


class PartitionsTest(Case):
    def setUp(self) -> None:
        super().setUp()
        self.set_partitions((0, GPUS, False), (1, GPUS[:2], False),
                            (2, GPUS[2:], False))

    def set_partitions(self, *partitions) -> None:
        self.host = dataclasses.replace(
            self.host, wiring=dataclasses.replace(
                self.host.wiring, partitions=tuple(
                    wiring.FabricPartition(*each) for each in partitions)))

    def test_gpus_of_a_partition_are_for_guests(self) -> None:
        self.assertEqual([], self.find('device-partitions'))
        self.specs = [{'vendor_id': '10de'}]
        self.assertEqual([], self.find('device-partitions'))
        self.set_partitions((0, GPUS, True))
        self.assertEqual([], self.find('device-partitions'))
        self.specs = [{'address': GPUS[0]}]
        for address in GPUS[1:]:
            self.change(address, driver='nvidia')
        said = ('partition 0 is active, and joins GPUs of guests with '
                f'{", ".join(GPUS[1:])}, which guests do not get')
        self.assertEqual([('error', said)], self.find('device-partitions'))

    def test_a_gpu_without_a_partition(self) -> None:
        self.specs = [{'vendor_id': '10de'}]
        self.set_partitions((1, GPUS[:2], True), (2, GPUS[3:], False))
        self.assertEqual(
            [('error', f'{GPUS[2]} is in no partition of the fabric manager')],
            self.find('device-partitions'))

    def test_hosts_without_a_fabric_manager_are_not_judged(self) -> None:
        self.specs = [{'vendor_id': '10de'}]
        self.host = dataclasses.replace(
            self.host, wiring=dataclasses.replace(
                self.host.wiring, partitions=None))
        self.assertEqual([], self.find('device-partitions'))
        self.host = dataclasses.replace(self.host, wiring=None)
        self.assertEqual([], self.find('device-partitions'))


class ActivationTest(Case):
    """A host whose GPUs are joined by an NVSwitch of its own driver."""

    def setUp(self) -> None:
        super().setUp()
        self.fabric: dict[str, object] = {
            'fabric_mode': 1, 'activators': ('/etc/libvirt/hooks/qemu',)}
        self.switch = GroupedFunction('0000:85:00.0', 60, '0680', '10de',
                                      '22a3', 'nvidia-nvswitch')
        self.grouped = (self.switch,)
        self.host = dataclasses.replace(
            self.host, wiring=dataclasses.replace(
                self.host.wiring, partitions=None))
        self.specs = [{'vendor_id': '10de', 'product_id': '2330'}]

    def facts(self):
        return self.but(super().facts(), hardware=self.fabric)

    def test_a_hook_and_the_mode_are_needed(self) -> None:
        self.assertEqual([], self.find('device-activation'))
        self.fabric = {'fabric_mode': 0, 'activators': ()}
        gpus = f'{", ".join(GPUS[:3])} and 1 more'
        self.assertEqual(
            [('error', 'the fabric manager has FABRIC_MODE=0'),
             ('error',
              f'no hook of libvirt activates the partition of {gpus}')],
            self.find('device-activation'))
        self.fabric['fabric_mode'] = None
        self.assertIn('is not installed',
                      self.find('device-activation')[0][1])

    def test_partitions_show_switches_that_are_no_pci_functions(self) -> None:
        self.fabric['activators'] = ()
        self.grouped = ()
        self.assertEqual([], self.find('device-activation'))
        self.host = dataclasses.replace(
            self.host, wiring=dataclasses.replace(
                self.host.wiring,
                partitions=(wiring.FabricPartition(0, GPUS),)))
        self.assertEqual(1, len(self.find('device-activation')))

    def test_other_hosts_are_not_judged(self) -> None:
        self.fabric = {'fabric_mode': None, 'activators': ()}
        self.specs.append({'address': self.switch.address})
        self.assertEqual([], self.find('device-activation'))
        self.specs = [{'vendor_id': '15b3'}]
        for gpu in GPUS:
            self.change(gpu, driver='nvidia')
        self.assertEqual([], self.find('device-activation'))

    def test_gpus_of_a_hook_are_not_bound_at_boot(self) -> None:
        for gpu in GPUS:
            self.change(gpu, driver='nvidia')
        self.assertEqual([], self.find('device-driver'))
        self.grouped = ()
        self.assertEqual(4, len(self.find('device-driver')))


FUNCTIONS = audited.GOOD.hardware.functions
ADDRESS = FUNCTIONS[0].address


class DevicesTest(audited.Case):
    """IOMMU and virtual functions."""

    def first(self, **fields):
        return {'functions': (dataclasses.replace(FUNCTIONS[0], **fields),
                              *FUNCTIONS[1:])}

    def test_devices_of_guests_need_an_iommu(self):
        self.check('iommu', ['error'], hardware={'iommus': ()})

    def test_who_passes_no_device_needs_none(self):
        plain = self.but(nova={('pci', 'device_spec'): None},
                         hardware={'functions': (), 'iommus': ()})
        self.check('iommu', [], plain, profile=profiles.DEFAULT)
        self.check('iommu', [], plain, profile=None)
        listed = self.but(plain, nova={('pci', 'device_spec'): ('{}',)})
        self.check('iommu', 1, listed, profile=None)

    def test_the_host_itself_is_not_translated(self):
        for types, expected in (({'DMA-FQ'}, 1), ({'DMA', 'identity'}, 0),
                                (set(), 0)):
            self.check('iommu-passthrough', expected,
                       hardware={'iommu_types': frozenset(types)})

    def test_no_parameter_of_x86_is_recommended_to_arm(self):
        for vendor, expected in (
                ('GenuineIntel', 'intel_iommu=on iommu.passthrough=1'),
                ('AuthenticAMD', 'iommu.passthrough=1'),
                (None, 'iommu.passthrough=1')):
            facts = self.but(cpu={'vendor': vendor}, hardware={
                'iommus': (), 'iommu_types': frozenset({'DMA'})})
            self.assertEqual(
                [expected, 'iommu.passthrough=1'],
                [item.change[-1] for item in audit.audit(facts).findings
                 if item.code.startswith('iommu')])

    def test_as_many_functions_as_the_flavors_need(self):
        self.assertEqual([('error', f'{ADDRESS} has 1 virtual functions')],
                         self.found('virtual-functions', self.but(
                             hardware=self.first(count=1))))
        for count in (2, 3):
            self.check('virtual-functions', [],
                       hardware=self.first(count=count))
        self.check('virtual-functions', [], profile=None,
                   hardware=self.first(count=0))

    def test_a_device_without_driver_creates_none(self):
        host = dataclasses.replace(audited.HOST, devices=tuple(
            dataclasses.replace(device, driver=None)
            for device in audited.HOST.devices))
        self.check('virtual-functions', 2,
                   audited.replace(audited.GOOD, host=host),
                   hardware=self.first(count=0))

    def test_cells_of_devices_are_known(self):
        self.check('device-cell', 1,
                   hardware=self.first(cells=frozenset({None})))
        lost = dataclasses.replace(audited.HOST, devices=(
            dataclasses.replace(audited.HOST.devices[0], cell=None),))
        facts = audited.replace(audited.GOOD, host=lost)
        self.check('device-cell', 1, facts, profile=None)

    def test_functions_are_created_at_boot(self):
        self.check('persistent-functions', 2, hardware={'creators': {}})
        text = audited.tree()[host_files.VFS]
        lost = audit.audit(self.but(hardware={'creators': {}}))
        for item in lost.findings:
            if item.code == 'persistent-functions':
                self.assertIn(item.change[-1], text)
        self.check('persistent-functions', 1,
                   hardware={'creators': {ADDRESS: ('/etc/rc.local',)}})
        self.check('persistent-functions', 0,
                   hardware={'creators': {'*': ('/etc/rc.local',)}})
        self.check('persistent-functions', 1,
                   hardware={'creators': {}, **self.first(count=0)})

    def test_infiniband_functions_have_guids(self):
        card = GroupedFunction(ADDRESS, 20, '0207', '15b3', '101d',
                               'mlx5_core')
        ethernet = dataclasses.replace(card, code='0200')
        for grouped, guids, count in (
                (card, {}, 1), (card, {'*': ('/etc/rc.local',)}, 0),
                (card, {ADDRESS: ('/etc/x',)}, 0), (ethernet, {}, 0)):
            self.check('infiniband-guids', count, hardware={
                'grouped': (grouped,), 'guids': guids})

    def test_adaptive_interrupts_are_noted(self):
        self.check('interrupt-moderation', 0)
        for moderated, said in (({'ib0': None}, 'of ib0 is'),
                                ({'e0': 1024}, 'of e0 (ring of 1024) is')):
            self.check('interrupt-moderation', 1,
                       hardware={'moderated': moderated})
            (item,) = (item for item in audit.audit(self.but(hardware={
                'moderated': moderated})).findings
                if item.code == 'interrupt-moderation')
            self.assertIn(said, item.found)

    def test_a_profile_says_how_devices_interrupt_and_what_rings_are(self):
        for choices, hardware, said in (
                ({'moderate_interrupts': False}, {'moderated': {'e0': 256}},
                 ['interrupt moderation of e0 is adaptive']),
                ({'moderate_interrupts': False}, {'rings': {'e0': 256}}, []),
                ({'ring_entries': 128}, {'moderated': {'e0': 128},
                                         'rings': {'e0': 128}}, []),
                ({'ring_entries': 128}, {'rings': {'e0': 128, 'e1': 512}},
                 ['e1 has a ring of 512'])):
            profile = dataclasses.replace(audited.PROFILE, **choices)
            found = [item for item in audit.audit(
                self.but(hardware=hardware), profile).findings
                     if item.code == 'interrupt-moderation']
            self.assertEqual(said, [item.found for item in found])
            for item in found:
                self.assertEqual('warning', item.severity)
                self.assertEqual(
                    kernel_settings.format_network_rule(profile),
                    item.change[-1])

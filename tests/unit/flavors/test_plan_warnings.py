# SPDX-License-Identifier: Apache-2.0

import dataclasses
import unittest

from hpcvirt import exception
from hpcvirt.flavors import device_choice
from hpcvirt.flavors import host_part
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from hpcvirt.flavors import warning
from hpcvirt.model import host as host_model
from hpcvirt.model import shape
from tests.builders import hosts
from tests.builders import plans

plan, codes, by_vcpus = plans.plan, plans.codes, plans.by_vcpus


def message(found, code):
    return next(item.message for item in found.warnings if item.code is code)


def with_vf_product(host, product):
    return dataclasses.replace(host, devices=tuple(
        dataclasses.replace(device, vf_product_id=product)
        for device in host.devices))


class PlanWarningsTest(unittest.TestCase):
    def test_a_host_on_which_no_flavor_fits(self):
        found = plan(hosts.build(name='good'), hosts.build(name='bare', mib=0))
        self.assertIn('host-not-served', codes(found))
        self.assertTrue(all(row.per_host['bare'] == 0
                            for row in found.flavors))

    def test_cells_with_one_cache_have_no_parts_unless_allowed(self):
        found = plan(hosts.build(cells=4, cores=12, sockets=2))
        self.assertIn('parts of 2 or 3 or 4 or 6 cores',
                      message(found, warning.WarningCode.NO_PARTS))
        cut = plan(hosts.build(cells=4, cores=12, sockets=2), smallest_cores=6)
        self.assertNotIn('no-parts', codes(cut))
        self.assertEqual((8, 0), by_vcpus(cut, 'host')[6])

    def test_flavors_without_smt_on_hosts_with_smt(self):
        found = plan(hosts.build(name='plain'),
                     hosts.build(name='smt', threads=2))
        self.assertIn('smt-mixed', codes(found))
        for row in found.flavors:
            if row.guest.topology.threads > 1:
                self.assertEqual(0, row.per_host['plain'])

    def test_cores_for_the_host_are_recommended_with_the_source(self):
        self.assertIn('1 to 2 % in [CERN-HEPiX-2015]', message(
            plan(hosts.build()), warning.WarningCode.NO_HOUSEKEEPING))
        self.assertNotIn('no-housekeeping', codes(
            plan(hosts.build(), housekeeping_cores_per_cell=4)))
        # The host's processes run on the shared cores.
        self.assertNotIn('no-housekeeping', codes(
            plan(hosts.build(), housekeeping_cores_per_cell=0,
                 shared_cores_per_cell=1)))
        for cpus, expected in ((None, True), ('0-31', True), ('4-7', False)):
            found = planner.plan([hosts.build()], profiles.DENSE,
                                 host_part.build(cpus, ()))
            self.assertEqual(expected, 'no-housekeeping' in codes(found))

    def test_cells_whose_guests_get_virtual_functions_of_other_cells(self):
        for where, affinity, expected in (
                ([1], 'preferred', True), ([1], 'required', False),
                ([0, 1], 'preferred', False)):
            wanted = device_choice.Devices(
                affinity=shape.PCIAffinity(affinity))
            found = plan(hosts.build(vfs=dict.fromkeys(where, 8)),
                         devices=(wanted,))
            self.assertEqual(expected, 'cells-without-vfs' in codes(found))

    def test_several_caches_of_a_cell(self):
        self.assertIn('llc-not-seen', codes(plan(hosts.build(llc_cores=4))))
        self.assertNotIn('llc-not-seen', codes(plan(hosts.build())))

    def test_huge_pages_that_the_plan_does_not_use(self):
        host = hosts.named('xeon-2s-24c-snc2-1g')
        self.assertRegex(
            message(plan(host), warning.WarningCode.HUGE_PAGES_GIVEN_BACK),
            r'has \d+ pages of 1g now and none under this plan')
        self.assertNotIn('huge-pages-given-back', codes(
            plan(host, page_size=1 << 20)))

    def test_hosts_without_the_devices(self):
        found = plan(hosts.build(name='with', vfs={0: 8}),
                     hosts.build(name='without'), devices=(hosts.VFS,))
        self.assertEqual(
            'without: the host has no device with virtual functions of '
            'vendor 15b3 and product 101e',
            message(found, warning.WarningCode.DEVICES_MISSING))

    def test_a_card_whose_vfs_are_of_another_product_promises_nothing(self):
        for product, promised in ((None, True), ('101e', True),
                                  ('1017', False)):
            found = plan(hosts.build(name='with', vfs={0: 8}), with_vf_product(
                hosts.build(vfs={0: 8}), product), devices=(hosts.VFS,))
            with self.subTest(product):
                self.assertEqual(promised,
                                 'devices-missing' not in codes(found))
                self.assertEqual(promised, any(
                    row.per_host['host'] for row in found.flavors))

    def test_a_device_spec_that_may_give_the_card_itself(self):
        devices = device_choice.Devices(ports=device_choice.Ports.NEUTRON,
                                        physical_network='fast')
        host = hosts.build(vfs={0: 8})
        self.assertIn(
            'the product id of the virtual functions of 0000:41:00.0 is '
            'unknown', message(plan(host, devices=(devices,)),
                               warning.WarningCode.VF_PRODUCT_UNKNOWN))
        for each, wanted in (
                (with_vf_product(host, '101e'), devices),
                (host, dataclasses.replace(devices, product_id='101e'))):
            self.assertNotIn('vf-product-unknown',
                             codes(plan(each, devices=(wanted,))))

    def test_packing_claims_that_would_not_end(self):
        host = hosts.build(cells=24, cores=4, sockets=4)
        found = plan(host, pack_cells=True)
        self.assertIn('claim-too-long', codes(found))
        row, = (row for row in found.flavors if len(row.guest.cells) == 6)
        self.assertLess(row.per_host['host'], 4)
        self.assertIn(f'host takes only {row.per_host["host"]}; for one more',
                      message(found, warning.WarningCode.CLAIM_TOO_LONG))
        self.assertNotIn('claim-too-long', codes(plan(host)))


GPU, VGPU = hosts.GPU, hosts.VGPU
VF = device_choice.Devices(vendor_id='14e4')


def warnings(*machines, wanted=GPU):
    plan = planner.plan(machines, profiles.Profile(
        devices=(wanted,), housekeeping_cores_per_cell=1))
    return {item.code.value: item.message for item in plan.warnings}


class DeviceWarningsTest(unittest.TestCase):
    def test_devices_on_their_cells_are_nothing_to_warn_of(self):
        for total_vfs in (0, 16):
            self.assertEqual({}, warnings(hosts.build(
                gpus={0: 1, 1: 1}, gpu_vfs=total_vfs)))

    def test_hosts_without_the_devices(self):
        found = warnings(hosts.build(name='with', gpus={0: 1, 1: 1}),
                         hosts.build(name='without'))
        self.assertEqual('without: the host has no usable device '
                         'of vendor 10de and product 20b0',
                         found['devices-missing'])

    def test_a_plan_without_the_devices_is_refused_with_the_reason(self):
        for wanted in (GPU, VGPU):
            with self.assertRaisesRegex(
                    exception.InvalidInput, 'host: no guest fits: the '
                    'host has no usable device of vendor 10de'):
                warnings(hosts.build(), wanted=wanted)

    def test_the_device_that_is_missing_is_the_only_reason(self):
        with self.assertRaisesRegex(
                exception.InvalidInput, 'no guest fits: the host has no '
                'device with virtual functions of vendor 14e4( and product '
                '[0-9a-f]{4})?$'):
            warnings(hosts.build(vfs={0: 8}), wanted=VF)

    def test_devices_of_another_type(self):
        found = warnings(
            hosts.build(name='plain', gpus={0: 1, 1: 1}),
            hosts.build(name='sriov', gpus={0: 1, 1: 1}, gpu_vfs=16))
        self.assertEqual(
            'plain: guests cannot get 0001:00:00.0, 0001:01:00.0: other '
            'devices of this product support SR-IOV, so Nova calls them '
            'type-PF, and a PCI alias has one type',
            found['device-type-differs'])
        self.assertIn('devices-missing', found)

    def test_a_source_that_does_not_know_sriov(self):
        host = hosts.build(gpus={0: 1, 1: 1})
        blind = dataclasses.replace(host, devices=tuple(
            dataclasses.replace(device, driver=None)
            for device in host.devices))
        self.assertIn('device-type-unsure', warnings(blind))
        seeing = dataclasses.replace(blind, devices=(
            *blind.devices, host_model.Device(
                '0002:00:00.0', '15b3', '101d', 0, 0, 'mlx5_core')))
        self.assertNotIn('device-type-unsure', warnings(seeing))

    def test_a_device_whose_cell_is_unknown(self):
        found = warnings(hosts.build(gpus={None: 2}))
        self.assertEqual(
            'host: the cell of 0001:00:00.0, 0001:01:00.0 is unknown, so the '
            'affinity policy preferred has no effect on them',
            found['device-without-cell'])
        self.assertNotIn('device-without-cell', warnings(
            hosts.build(cells=1, gpus={None: 2})))

    def test_devices_of_other_cells(self):
        host = hosts.build(gpus={1: 2})
        found = warnings(host)
        self.assertIn('on host, 1 of 2 instances have devices of other cells',
                      found['devices-far'])
        tied = dataclasses.replace(GPU, affinity=shape.PCIAffinity.REQUIRED)
        self.assertNotIn('devices-far', warnings(host, wanted=tied))

    def test_vgpus_of_any_card(self):
        self.assertIn('whatever the cells of its CPUs', warnings(
            hosts.build(gpus={0: 1, 1: 1}), wanted=VGPU)['vgpu-affinity'])
        self.assertEqual({}, warnings(hosts.build(cells=1, gpus={0: 1}),
                                      wanted=VGPU))

    def test_vgpus_that_may_belong_to_virtual_functions(self):
        host = hosts.build(cells=1, gpus={0: 1}, gpu_vfs=16)
        self.assertIn('vgpu-on-sriov', warnings(host, wanted=VGPU))
        card, = host.devices
        existing = dataclasses.replace(host, devices=(
            card, dataclasses.replace(card, address='0001:00:00.4',
                                      total_vfs=0)))
        self.assertNotIn('vgpu-on-sriov', warnings(existing, wanted=VGPU))


class MissingMemoryTest(unittest.TestCase):

    def warnings(self, *sizes):
        machines = [hosts.build(name=f'n{number}', mib=mib)
                    for number, mib in enumerate(sizes)]
        return [item for item in planner.plan(
            machines, profiles.Profile()).warnings
            if item.code == 'host-makes-flavors-smaller']

    def test_a_host_that_lacks_a_dimm_is_named_with_its_cost(self):
        (found,) = self.warnings(*[512 * 1024] * 9, 480 * 1024)
        self.assertEqual(('n9',), found.subjects)
        self.assertRegex(found.what, r'up to 6\d GiB less on each of 9 hosts')

    def test_small_differences_and_pairs_are_not_named(self):
        self.assertEqual([], self.warnings(*[512 * 1024] * 9, 511 * 1024))
        self.assertEqual([], self.warnings(512 * 1024, 480 * 1024))
        self.assertEqual([], self.warnings(*[512 * 1024] * 9, 256 * 1024))

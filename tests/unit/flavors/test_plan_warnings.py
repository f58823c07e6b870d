# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

import dataclasses
import unittest

from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from hpcvirt.flavors import warning
from tests import hosts


def plan(*machines, **choices):
    return planner.plan(machines, profiles.Profile(**choices))


def codes(found):
    return [item.code.value for item in found.warnings]


def by_vcpus(found, host):
    return {row.flavor.vcpus: (row.per_host[host], row.stranded[host].pcpus)
            for row in found.flavors}


def message(found, code):
    return next(item.message for item in found.warnings if item.code is code)


def with_vf_product(host, product):
    return dataclasses.replace(host, devices=tuple(
        dataclasses.replace(device, vf_product_id=product)
        for device in host.devices))


class PlanWarningsTest(unittest.TestCase):

    def test_a_host_on_which_no_flavor_fits(self):
        found = plan(hosts.build(name='good'),
                     hosts.build(name='bare', mib=0))
        self.assertIn('host-not-served', codes(found))
        self.assertTrue(all(row.per_host['bare'] == 0
                            for row in found.flavors))

    def test_cells_with_one_cache_have_no_parts_unless_allowed(self):
        found = plan(hosts.build(cells=4, cores=12, packages=2))
        self.assertIn('no-parts', codes(found))
        cut = plan(hosts.build(cells=4, cores=12, packages=2),
                   smallest_cores=6)
        self.assertNotIn('no-parts', codes(cut))
        self.assertEqual((8, 0), by_vcpus(cut, 'host')[6])

    def test_flavors_without_smt_on_hosts_with_smt(self):
        found = plan(hosts.build(name='plain'),
                     hosts.build(name='smt', threads=2))
        self.assertIn('smt-mixed', codes(found))
        for row in found.flavors:
            if row.guest.topology.threads > 1:
                self.assertEqual(0, row.per_host['plain'])

    def test_parts_are_suggested_by_their_cores(self):
        found = plan(hosts.build(cells=4, cores=12, packages=2))
        self.assertIn('parts of 2 or 3 or 4 or 6 cores',
                      message(found, warning.Code.NO_PARTS))

    def test_cores_for_the_host_are_recommended_with_the_source(self):
        self.assertIn('1 to 2 % in [CERN-HEPiX-2015]', message(
            plan(hosts.build()), warning.Code.NO_HOUSEKEEPING))
        self.assertNotIn('no-housekeeping', codes(
            plan(hosts.build(), housekeeping_cores_per_cell=4)))

    def test_several_caches_of_a_cell(self):
        self.assertIn('llc-not-seen', codes(plan(hosts.build(llc_cores=4))))
        self.assertNotIn('llc-not-seen', codes(plan(hosts.build())))

    def test_huge_pages_that_the_plan_does_not_use(self):
        host = hosts.named('xeon-2s-24c-snc2-1g')
        self.assertRegex(
            message(plan(host), warning.Code.HUGE_PAGES_GIVEN_BACK),
            r'has \d+ pages of 1g now and none under this plan')
        self.assertNotIn('huge-pages-given-back', codes(
            plan(host, page_size=1 << 20)))

    def test_hosts_without_the_devices(self):
        devices = profiles.Devices(vendor_id='15b3', product_id='101e')
        found = plan(hosts.build(name='with', vfs={0: 8}),
                     hosts.build(name='without'), devices=devices)
        self.assertEqual(
            'without: the host has no device with virtual functions of '
            'vendor 15b3 and product 101e',
            message(found, warning.Code.DEVICES_MISSING))

    def test_a_card_whose_vfs_are_of_another_product_promises_nothing(self):
        devices = profiles.Devices(vendor_id='15b3', product_id='101e')
        for product, promised in ((None, True), ('101e', True),
                                  ('1017', False)):
            found = plan(hosts.build(name='with', vfs={0: 8}), with_vf_product(
                hosts.build(vfs={0: 8}), product), devices=devices)
            with self.subTest(product):
                self.assertEqual(promised,
                                 'devices-missing' not in codes(found))
                self.assertEqual(promised, any(
                    row.per_host['host'] for row in found.flavors))

    def test_a_device_spec_that_may_give_the_card_itself(self):
        devices = profiles.Devices(ports=profiles.Ports.NEUTRON,
                                   physical_network='fast')
        host = hosts.build(vfs={0: 8})
        self.assertIn(
            'the product id of the virtual functions of 0000:41:00.0 is '
            'unknown', message(plan(host, devices=devices),
                               warning.Code.VF_PRODUCT_UNKNOWN))
        for each, wanted in (
                (with_vf_product(host, '101e'), devices),
                (host, dataclasses.replace(devices, product_id='101e'))):
            self.assertNotIn('vf-product-unknown',
                             codes(plan(each, devices=wanted)))

    def test_packing_claims_that_would_not_end(self):
        host = hosts.build(cells=24, cores=4, packages=4)
        found = plan(host, pack_cells=True)
        self.assertIn('claim-too-long', codes(found))
        row, = (row for row in found.flavors if len(row.guest.cells) == 6)
        self.assertLess(row.per_host['host'], 4)
        self.assertIn(f'host takes only {row.per_host["host"]}, because',
                      message(found, warning.Code.CLAIM_TOO_LONG))
        self.assertNotIn('claim-too-long', codes(plan(host)))

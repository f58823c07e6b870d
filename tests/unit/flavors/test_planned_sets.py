# SPDX-License-Identifier: Apache-2.0

import collections
import dataclasses
import json
import random
import unittest

import yaml

from hpcvirt import exception
from hpcvirt.fit import capacity
from hpcvirt.flavors import compiled_flavor
from hpcvirt.flavors import device_choice
from hpcvirt.flavors import diff
from hpcvirt.flavors import fleet_plan
from hpcvirt.flavors import host_settings
from hpcvirt.flavors import plan_document
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from hpcvirt.flavors import table
from hpcvirt.model import flavor as flavor_model
from hpcvirt.model import shape
from tests.builders import hosts
from tests.builders import planned_sets
from tests.builders import wired

NEAR = planned_sets.NEAR
GPUS = planned_sets.GPUS
VFS = planned_sets.VFS
plan = planned_sets.plan
read_sets = planned_sets.read_sets
CARDS = dataclasses.replace(VFS, kind=device_choice.DeviceKind.WHOLE,
                            product_id='1021')


def rows(found, host='tree'):
    """Show the kind of set of each flavor, its requests and its number."""
    return {row.guest.device_set: (
        ' '.join(device.alias for device in row.guest.devices),
        row.per_host[host], row.unused[host].devices)
        for row in found.flavors}


def count_most(sets, used, counts):
    """Count the most sets that are free at once, by trying everything.

    :param used: the cards of each set, each as often as the set needs it
    """
    if not sets:
        return 0
    first, *others = sets
    best = count_most(others, used, counts)
    left = dict(counts)
    for card in used[first]:
        left[card] -= 1
    if min(left.values()) < 0:
        return best
    return max(best, 1 + count_most(others, used, left))


class ShippedTest(unittest.TestCase):
    def setUp(self):
        path = hosts.TOPOLOGIES.parent / 'profiles/gpu-nic.yaml'
        self.plan = planner.plan(
            [hosts.named('xeon-2s-20c-smt-8gpu')],
            profiles.build(yaml.safe_load(path.read_text()), path.name))

    def test_the_host_is_tiled_with_sets_and_their_hcas(self):
        self.assertEqual({
            None: ('gpu', 8, (0, 4)),
            'gpu2': ('gpu2-0 gpu2-1 gpu2-ib-0', 4, (0, 0)),
            'gpu4': ('gpu4-0 gpu4-1 gpu4-2 gpu4-3 gpu4-ib-0 gpu4-ib-1', 2,
                     (0, 0)),
            'gpu8': (' '.join([*(f'gpu8-{place}' for place in range(8)),
                               *(f'gpu8-ib-{place}' for place in range(4))]),
                     1, (0, 0))},
            rows(self.plan, 'xeon-2s-20c-smt-8gpu'))
        self.assertEqual(['hpc.4c1n2t.2m.gpu-1r', 'hpc.9c1n2t.2m.gpu2r',
                          'hpc.18c1n2t.2m.gpu4r', 'hpc.36c2n2t.2m.gpu8'],
                         [row.flavor.name for row in self.plan.flavors])

    def test_the_plan_says_who_gets_no_hca(self):
        (found,) = (item for item in self.plan.warnings
                    if item.code.value == 'near-devices-missing')
        self.assertEqual('instances with gpu1 get no ib, because their share '
                         'of 4 is 0.5', found.what)

    def test_each_device_has_a_trait_for_its_place_in_each_set(self):
        config = self.plan.hosts[0].settings
        spec = next(each for each in config.pci_device_spec
                    if each['address'] == '0000:0a:00.0')
        self.assertEqual(
            {'address': '0000:0a:00.0', 'vendor_id': '10de',
             'product_id': '1db1', 'traits': ','.join(
                 f'CUSTOM_HPCVIRT_GPU{place}'
                 for place in ('', '2_1', '4_2', '8_2')),
             'hpcvirt_device_sets': 'gpu2:1:3,gpu4:0:6,gpu8:0:12'},
            spec)
        alias = next(each for each in config.pci_alias
                     if each['name'] == 'gpu4-ib-1')
        self.assertEqual(
            {'name': 'gpu4-ib-1', 'vendor_id': '15b3', 'product_id': '1013',
             'device_type': 'type-PCI', 'numa_policy': 'required',
             'traits': 'CUSTOM_HPCVIRT_GPU4_IB_1'}, alias)

    def test_guests_of_several_cells_prefer_theirs(self):
        policies = {each['name']: each['numa_policy']
                    for each in self.plan.hosts[0].settings.pci_alias}
        self.assertEqual(('required', 'preferred'),
                         (policies['gpu4-0'], policies['gpu8-0']))
        *small, large = (row.flavor.extra_specs[
            'hw:pci_numa_affinity_policy'] for row in self.plan.flavors)
        self.assertEqual((['required'] * 3, 'preferred'), (small, large))

    def test_the_document_says_the_same(self):
        document = plan_document.load(json.loads(json.dumps(
            plan_document.dump(self.plan))), 'plan.json')
        (planned,) = self.plan.hosts
        config = document.host_config[planned.name]
        self.assertEqual(planned.settings, config)
        empty = host_settings.make_empty_host(planned.host, config)
        for flavor in document.flavors:
            guest = compiled_flavor.make(flavor_model.Flavor(
                flavor.name, flavor.vcpus, flavor.ram_mib, 0,
                flavor.extra_specs))
            self.assertEqual(len(guest.shape.devices) > 1,
                             guest.demand.device_set is not None)
            self.assertEqual(flavor.per_host[planned.name],
                             capacity.fill(guest, empty).count)
        self.assertEqual([8, 4], [each.count for each in
                                  document.hosts[0].guest_devices])

    def test_the_flavors_are_known_again(self):
        wanted = [row.flavor for row in self.plan.flavors]
        existing = [diff.Existing(str(number), flavor)
                    for number, flavor in enumerate(wanted)]
        self.assertEqual({diff.Action.SAME}, {
            step.action for step in diff.steps(wanted, existing)})
        changed = dataclasses.replace(wanted[1], extra_specs={
            **wanted[1].extra_specs, 'pci_passthrough:alias': 'gpu:2'})
        (step,) = diff.steps(wanted[1:2], [diff.Existing('1', changed)])
        self.assertEqual(
            (diff.Action.DIFFERS, ((
                'pci_passthrough:alias is gpu:2, planned gpu2-0:1,gpu2-1:1,'
                'gpu2-ib-0:1'),)),
            (step.action, step.differences))

    def test_the_table_counts_both_kinds(self):
        text = table.table(self.plan, (), 80)
        self.assertIn('8 x gpu, 4 x ib', text.splitlines()[2])
        self.assertIn('8 CPUs, 4', next(line for line in text.splitlines()
                                        if 'gpu-1r' in line))


class SetsOfAPlanTest(unittest.TestCase):
    def test_sets_share_cards_with_virtual_functions(self):
        self.assertEqual({
            'gpu1': ('gpu1-0 gpu1-ib-0', 8, (0, 24)),
            'gpu2': ('gpu2-0 gpu2-1 gpu2-ib-0', 4, (0, 28)),
            'gpu4': ('gpu4-0 gpu4-1 gpu4-2 gpu4-3 gpu4-ib-0 gpu4-ib-1', 2,
                     (0, 28))},
            {kind: row for kind, row in rows(plan(wired.tree())).items()
             if kind != 'gpu8'})

    def test_sets_without_enough_cards_are_left_out(self):
        found = plan(wired.tree(vfs=0), entries=(
            GPUS, dataclasses.replace(CARDS, per_instance=1)))
        self.assertEqual({'gpu1': 4, 'gpu2': 4, 'gpu4': 2, 'gpu8': 1}, {
            kind: row[1] for kind, row in rows(found).items()})
        self.assertIn('4 of 8 sets gpu1 are left out, because no 1 ib are '
                      'near (same switch) and left for them: those of '
                      '0000:13:00.0, 0000:23:00.0, 0000:43:00.0, '
                      '0000:53:00.0',
                      [item.what for item in found.warnings])

    def test_more_devices_than_cards_are_several_of_each(self):
        found = plan(wired.tree(), entries=(
            GPUS, dataclasses.replace(VFS, per_instance=2)))
        self.assertEqual(('gpu1-0 gpu1-ib-0 gpu1-ib-1', 8, (0, 16)),
                         rows(found)['gpu1'])

    def test_devices_in_no_set_are_named(self):
        host = wired.tree(gpus=3)
        found = plan(host, entries=(dataclasses.replace(
            GPUS, sets=(('0000:12:00.0', '0000:13:00.0'),
                        ('0000:42:00.0', '0000:43:00.0')), sizes=(2,)), VFS))
        self.assertEqual(2, rows(found)['gpu2'][1])
        texts = [item.what for item in found.warnings]
        self.assertTrue(any(
            text.startswith('8 devices (0000:14:00.0, 0000:22:00.0, ...) are '
                            'in no set, so that no instance gets them as gpu')
            for text in texts), texts)
        self.assertIn('0000:25:00.0, 0000:55:00.0 are in no set, so that no '
                      'instance gets them as ib', texts)
        self.assertNotIn('0000:14:00.0',
                         found.hosts[0].settings.device_counts)

    def test_unknown_links_are_said(self):
        host = dataclasses.replace(wired.tree(), wiring=None)
        found = plan(host, entries=(GPUS,))
        self.assertEqual([None, 'gpu8'], list(rows(found)))
        texts = [f'{item.code} {item.what}' for item in found.warnings]
        self.assertIn('sets-unknown the topology does not say which GPUs are '
                      'linked; sets of gpu are formed only from what it says',
                      texts)
        self.assertIn('sets-missing 8 devices (0000:12:00.0, 0000:13:00.0, '
                      '...) are in no set of 4 gpu (sets: link)', texts)

    def test_seventeen_devices_are_refused_with_the_reason(self):
        with self.assertRaisesRegex(
                exception.InvalidInput, 'the host has 18 gpu, and sets are '
                'planned for at most 16'):
            plan(wired.tree(1, 2, 9), entries=(GPUS,))

    def test_a_flavor_whose_aliases_nova_cannot_store_is_left_out(self):
        long = dataclasses.replace(GPUS, alias='gpu-of-the-partition-of-abc')
        found = plan(wired.tree(), entries=(long,))
        self.assertNotIn('gpu-of-the-partition-of-abc8', rows(found))
        (item,) = (each for each in found.warnings
                   if each.code.value == 'size-not-placed')
        self.assertEqual(('hpc.32c2n.2m.gpu-of-the-partition-of-abc8',),
                         item.subjects)
        self.assertEqual('left out, because the aliases of its 8 devices '
                         'take 263 characters, and Nova allows 255; choose '
                         'shorter aliases', item.what)

    def test_hosts_with_other_links_get_other_sets(self):
        one, other = wired.tree(), wired.tree(name='other', links='none')
        found = plan(one, other, entries=(GPUS,))
        self.assertEqual([4, 0], [row.per_host[name] for row in found.flavors
                                  if row.guest.device_set == 'gpu2'
                                  for name in ('tree', 'other')])

    def test_classes_with_other_products_need_other_aliases(self):
        one = plan(wired.tree(), entries=(GPUS,))
        host = wired.tree(name='other')
        host = dataclasses.replace(host, devices=tuple(
            dataclasses.replace(device, product_id='2331')
            if device.product_id == '2330' else device
            for device in host.devices))
        two = plan(host, entries=(dataclasses.replace(
            GPUS, product_id='2331'),), name_prefix='b')
        with self.assertRaisesRegex(
                exception.InvalidInput, 'has a PCI alias gpu of type-PCI '
                'and required and 10de and 2331, and class a one of'):
            fleet_plan.merge_plans({'a': one, 'b': two})
        other = plan(host, entries=(dataclasses.replace(
            GPUS, product_id='2331', alias='h200'),), name_prefix='b')
        self.assertEqual(8, len(fleet_plan.merge_plans(
            {'a': one, 'b': other}).flavors))


class RandomPlansTest(unittest.TestCase):
    def test_the_counts_are_those_of_all_choices_of_sets(self):
        dice = random.Random(11)
        kinds = collections.Counter()
        for number in range(70):
            host = wired.tree(
                dice.choice([1, 2]), dice.choice([1, 2]), dice.choice([1, 2]),
                dice.choice([0, 1, 2]), dice.choice([0, 1, 2, 8]),
                dice.choice(['all', 'cell', 'none']))
            vfs = any(device.total_vfs for device in host.devices)
            further = dataclasses.replace(
                VFS if vfs else CARDS, near=dice.choice(list(NEAR)),
                per_instance=dice.choice([None, 1, 2]))
            first = dataclasses.replace(
                GPUS, sets=dice.choice(list(device_choice.SetRule)),
                affinity=shape.PCIAffinity.PREFERRED)
            try:
                found = plan(host, entries=(first, further))
            except exception.InvalidInput:
                continue
            config = found.hosts[0].settings
            for row in found.flavors:
                with self.subTest(number=number, kind=row.guest.device_set):
                    self.check(row, config)
                    kinds[row.guest.device_set] += 1
        self.assertGreater(min(kinds.values()), 5)

    def check(self, row, config):
        kind = row.guest.device_set
        if kind is None:
            # Any device will do for a single one.
            self.assertEqual(['gpu'], [each.alias for each
                                       in row.guest.devices])
            self.assertLessEqual(row.per_host['tree'], sum(
                each['product_id'] == '2330'
                for each in config.pci_device_spec))
            return
        aliases = {each['name']: each for each in config.pci_alias}
        specs = {each['address']: each for each in config.pci_device_spec}
        sets = {each: own for each, own in read_sets(config).items()
                if each.kind == kind}
        used = {}
        for each, own in sets.items():
            self.assertEqual(each.pools, len(own))
            # Each place of the flavor is that of one device of the set.
            served = [[address for address in own if aliases[device.alias][
                'traits'] in specs[address]['traits'].split(',')]
                for device in row.guest.devices]
            self.assertTrue(all(served), (each, served))
            used[each] = [min(those) for those in served]
        gpus = [address for own in sets.values() for address in own
                if specs[address]['product_id'] == '2330']
        self.assertEqual(len(gpus), len(set(gpus)))
        most = count_most(list(sets), used, config.device_counts)
        cores = 16 * 2 // len(row.guest.cells)
        self.assertLessEqual(row.per_host['tree'], most)
        if row.guest.pcpus * most <= cores:
            self.assertEqual(row.per_host['tree'], most)

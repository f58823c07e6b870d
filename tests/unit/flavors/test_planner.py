# SPDX-License-Identifier: Apache-2.0

import dataclasses
import random
import sys
import unittest

from hpcvirt import exception
from hpcvirt.flavors import device_choice
from hpcvirt.flavors import memory
from hpcvirt.flavors import plan_document
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from hpcvirt.model import shape as shape_model
from hpcvirt.specs import codec
from tests.builders import hosts
from tests.builders import plans

plan, codes, by_vcpus = plans.plan, plans.codes, plans.by_vcpus

ROLLS = 80


class StudiesTest(unittest.TestCase):
    def test_the_hosts_of_the_32_core_study_get_its_sizes(self):
        # [CERN-HEPiX-2015]: 4x8, 2x16, 1x24, 1x32.
        found = plan(hosts.named('hs06-2s-16c'))
        self.assertEqual({8: (4, 0), 16: (2, 0), 24: (1, 8), 32: (1, 0)},
                         by_vcpus(found, 'hs06-2s-16c'))

    def test_a_64_gb_host_full_of_its_flavors_does_not_swap(self):
        # [CERN-HEPiX-2015]: 2 x 31 GB left 2 GB on paper and 672 MiB
        # in truth; 1.5 GB were in use before any guest came.
        found = plan(hosts.named('hs06-2s-16c'))
        for row in found.flavors:
            used = sum(row.per_host.values()) * (
                row.flavor.ram_mib + 234 + 8 * row.flavor.vcpus
                + 0.002 * row.flavor.ram_mib)
            self.assertGreater(64160 - used, 4096)

    def test_one_guest_per_socket_fills_a_host_of_any_sockets(self):
        # [LBNL-Partitioning]: one VM per socket is usually best.
        for sockets in (1, 2, 4, 8):
            found = plan(hosts.build(cells=sockets, cores=4))
            self.assertEqual((sockets, 0), by_vcpus(found, 'host')[4])


class FleetTest(unittest.TestCase):
    def test_one_flavor_serves_hosts_that_differ_a_little(self):
        found = plan(hosts.build(mib=64160, name='a'),
                     hosts.build(mib=64800, name='b'))
        alone = plan(hosts.build(mib=64160, name='a'))
        self.assertEqual(len(alone.flavors), len(found.flavors))
        for row in found.flavors:
            self.assertEqual({'a', 'b'}, set(row.shares))
            self.assertTrue(all(row.per_host.values()))

    def test_hosts_that_differ_much_get_flavors_of_their_own(self):
        found = plan(hosts.build(mib=32768, name='a'),
                     hosts.build(mib=262144, name='b'))
        large = [row for row in found.flavors if 'a' not in row.shares]
        self.assertTrue(large)
        for row in large:
            self.assertEqual(0, row.per_host['a'])
            self.assertEqual(32, row.unused['a'].pcpus)

    def test_no_host_at_all_is_an_error_that_says_why(self):
        with self.assertRaisesRegex(exception.InvalidInput,
                                    'no guest fits.*no memory'):
            plan(hosts.build(mib=0))
        with self.assertRaises(exception.InvalidInput):
            planner.plan([], profiles.Profile())

    def test_two_hosts_of_one_name_are_an_error(self):
        with self.assertRaisesRegex(exception.InvalidInput, 'two hosts'):
            plan(hosts.build(), hosts.build(cells=4))

    def test_planning_grows_in_proportion_to_the_caches(self):
        def lines_run(caches):
            """Count the lines of Python that planning a host executes."""
            host = hosts.build(cells=1, cores=caches, llc_cores=1,
                               mib=caches * 1024)
            count = 0

            def trace(*_):
                nonlocal count
                count += 1
                return trace
            sys.settrace(trace)
            try:
                found = planner.plan([host], profiles.Profile())
            finally:
                sys.settrace(None)
            self.assertEqual(caches, found.flavors[0].per_host['host'])
            return count
        # Twice the caches take four times the lines if planning is quadratic.
        self.assertLess(lines_run(512), 3 * lines_run(256))

    def test_equal_warnings_of_many_hosts_become_one(self):
        found = plan(*(hosts.build(name=f'n{number}', huge_kib=())
                       for number in range(9)))
        self.assertEqual(1, codes(found).count('huge-pages-unknown'))
        unknown = next(item for item in found.warnings
                       if item.code == 'huge-pages-unknown')
        self.assertIn('9 hosts (', unknown.message)

    def test_virtual_functions_limit_the_count(self):
        host = hosts.build(cells=2, cores=16, vfs={0: 3})
        found = plan(host, devices=(hosts.VFS,))
        self.assertEqual((3, 8), by_vcpus(found, 'host')[8])
        required = plan(host, devices=(dataclasses.replace(
            hosts.VFS, affinity=shape_model.PCIAffinity.REQUIRED),))
        self.assertEqual((2, 16), by_vcpus(required, 'host')[8])

    def test_flavors_for_devices_that_no_host_has_are_an_error(self):
        with self.assertRaisesRegex(exception.InvalidInput,
                                    'has no device with virtual functions'):
            plan(hosts.build(), devices=(hosts.VFS,))

    def test_neutron_ports_limit_the_count_and_are_not_in_the_flavor(self):
        found = plan(hosts.build(vfs={0: 1}), devices=(device_choice.Devices(
            ports=device_choice.Ports.NEUTRON, physical_network='fast'),))
        row = found.flavors[0]
        self.assertEqual({'host': 1}, row.per_host)
        self.assertNotIn('pci_passthrough:alias', row.flavor.extra_specs)
        self.assertEqual(
            'preferred', row.flavor.extra_specs['hw:pci_numa_affinity_policy'])

    def test_the_socket_scope_is_kept_where_it_costs_nothing(self):
        even = plan(hosts.build(cells=4, cores=4, sockets=2))
        scopes = {row.flavor.name: row.guest.numa_scope
                  for row in even.flavors}
        self.assertEqual({'hpc.8c2n1s.2m.skt': 'socket'}, {
            name: scope for name, scope in scopes.items()
            if scope is shape_model.NUMAScope.SOCKET})
        self.assertNotIn('socket-scope-not-held', codes(even))

    def test_the_socket_scope_goes_where_it_would_keep_a_host_empty(self):
        # Cell 0 of most machines has a little less memory: Nova begins at
        # cell 1 then, and its second cell is in the other socket.
        usual = hosts.build(cells=4, cores=4, sockets=2,
                            mib=(64160, 65536, 65536, 65536))
        found = plan(usual)
        self.assertIn('socket-scope-not-held', codes(found))
        self.assertNotIn(shape_model.NUMAScope.SOCKET, [
            row.guest.numa_scope for row in found.flavors])
        packed = plan(usual, pack_cells=True)
        self.assertIn((shape_model.NUMAScope.SOCKET, 2), [
            (row.guest.numa_scope, row.per_host['host'])
            for row in packed.flavors])

    def test_isolated_emulators_cost_a_core_of_each_guest_cell(self):
        found = plan(hosts.build(),
                     emulator_threads=shape_model.EmulatorThreads.ISOLATE)
        self.assertEqual({7: (4, 0), 15: (2, 0), 22: (1, 9), 30: (1, 1)},
                         by_vcpus(found, 'host'))

    def test_housekeeping_cores_are_never_stranded_nor_given(self):
        found = plan(hosts.build(), housekeeping_cores_per_cell=4)
        self.assertEqual((2, 0), by_vcpus(found, 'host')[12])
        self.assertNotIn('no-housekeeping', codes(found))

    def test_small_pages_keep_the_reserve_by_reserved_pages(self):
        found = plan(hosts.build(cells=1, mib=8192), page_size=4)
        config = plan_document.dump(found)['host_config']['host']
        reserved = config['reserved_huge_pages']
        self.assertEqual(1, len(reserved))
        self.assertEqual(4, reserved[0]['size'])
        self.assertGreater(reserved[0]['count'] * 4 // 1024, 1024)

    def test_pages_for_programs_of_the_host_are_reserved(self):
        found = plan(hosts.build(), host_pages_per_cell=((1048576, 2),))
        config = plan_document.dump(found)['host_config']['host']
        self.assertEqual(
            [{'node': 0, 'size': 1048576, 'count': 2},
             {'node': 1, 'size': 1048576, 'count': 2}],
            config['reserved_huge_pages'])
        self.assertEqual(2, config['pages']['0']['1048576'])

    def test_pages_for_programs_that_a_host_cannot_have_are_an_error(self):
        with self.assertRaisesRegex(exception.InvalidInput,
                                    'host_pages_per_cell.*16g'):
            plan(hosts.build(), host_pages_per_cell=((16777216, 2),))


def list_sums(cpus, pages, parts):
    """List the pages that mixes of parts fill, by trying each mix."""
    mixes = {(0, 0)}
    new = mixes
    while new:
        new = {(mix[0] + part.cpus, mix[1] + part.pages)
               for mix in new for part in parts
               if mix[0] + part.cpus <= cpus
               and mix[1] + part.pages <= pages} - mixes
        mixes = mixes | new
    return {sum_ for _, sum_ in mixes}


def roll(case, seed, rolls):
    """Plan for hosts and choices that dice make.

    :param case: a test, or the class of tests, which gets the plans
    """
    dice = random.Random(seed)
    case.plans = []
    for number in range(rolls):
        machines = [hosts.any_host(dice, f'h{number}-{each}')
                    for each in range(dice.choice([1, 1, 1, 2, 3]))]
        choices = hosts.any_profile(dice)
        try:
            case.plans.append(planner.plan(machines, choices))
        except exception.InvalidInput:
            continue
    case.plans += [plan(host) for host in hosts.shipped()]
    case.hosts = [host for found in case.plans for host in found.hosts]
    case.rows = [row for found in case.plans for row in found.flavors]


class AnyHostTest(unittest.TestCase):
    """What holds for every plan, on hosts and choices that dice make."""

    @classmethod
    def setUpClass(cls):
        roll(cls, 20261120, ROLLS)

    def test_most_rolls_are_plans(self):
        self.assertGreater(len(self.plans), ROLLS // 2)

    def test_periodic_what_holds_for_many_more_hosts(self):
        roll(self, 20261129, 10 * ROLLS)
        for name in unittest.defaultTestLoader.getTestCaseNames(type(self)):
            if not name.startswith('test_periodic_'):
                with self.subTest(name):
                    getattr(self, name)()

    def test_a_host_never_gives_more_than_it_has(self):
        for found in self.plans:
            config = plan_document.dump(found)['host_config']
            for planned in found.hosts:
                host = planned.host
                own = config[host.name]
                memory = sum(cell.memory_mib for cell in host.cells)
                huge = sum(
                    int(size) * count / 1024 for pages
                    in own['pages'].values() for size, count in pages.items()
                    if int(size) > min(map(int, pages)))
                profile = planned.profile
                for row in found.flavors:
                    count = row.per_host[host.name]
                    small = planned.page_kib == min(
                        map(int, own['pages'][str(host.cells[0].id)]))
                    guests = count * row.flavor.ram_mib if small else 0
                    emulators = count * (
                        profile.guest_overhead_mib
                        + profile.guest_overhead_mib_per_vcpu
                        * row.flavor.vcpus + profile.guest_overhead_permille
                        * row.flavor.ram_mib / 1000)
                    self.assertLessEqual(
                        own['reserved_host_memory_mb'] + huge + guests
                        + emulators, memory, row.flavor.name)

    def test_what_the_host_keeps_of_a_used_cell_is_its_reserve(self):
        for planned in self.hosts:
            for share in planned.partition.cells:
                cell = planned.host.by_id[share.id]
                promised = planned.profile.host_reserve_mib_per_cell
                if promised is None:
                    promised = min(2048, cell.memory_mib // 8)
                self.assertGreaterEqual(planned.rest_mib[share.id], promised)

    def test_pages_add_up_to_the_memory_of_the_cell(self):
        for planned in self.hosts:
            for cell in planned.host.cells:
                total = sum(size * count for size, count in
                            planned.settings.pages[cell.id].items()) / 1024
                self.assertLess(abs(total - cell.memory_mib), 2)

    def test_a_mix_of_guests_fills_the_pages_of_each_cell(self):
        for found in self.plans:
            parts = {part for row in found.flavors
                     for part in memory.memory_parts(row.guest)}
            for planned in found.hosts:
                for share in planned.partition.cells:
                    pages = planned.settings.pages[share.id]
                    if planned.page_kib == min(pages):
                        continue
                    own = dict(planned.profile.host_pages_per_cell)
                    wanted = pages[planned.page_kib] - own.get(
                        planned.page_kib, 0)
                    self.assertIn(wanted, list_sums(
                        len(share.dedicated), wanted, parts))

    def test_guest_cells_are_whole_pages_and_none_precedes_a_larger(self):
        for row in self.rows:
            for cell in row.guest.cells:
                self.assertGreater(cell.page_kib, 0)
                self.assertEqual(0, cell.memory_mib * 1024 % cell.page_kib)
            for sizes in ([cell.cpus for cell in row.guest.cells],
                          [cell.memory_mib for cell in row.guest.cells]):
                self.assertEqual(sorted(sizes, reverse=True), sizes)

    def test_unequal_guest_cells_are_for_unequal_hosts_alone(self):
        for found in self.plans:
            unequal = any(
                len({len(share.cores) for share in host.partition.cells}) > 1
                for host in found.hosts)
            for row in found.flavors:
                if not unequal:
                    self.assertEqual(1, len(set(row.guest.cells)))
                    self.assertNotIn('hw:numa_mem.0', row.flavor.extra_specs)

    def test_extra_specs_say_what_the_guest_is(self):
        for row in self.rows:
            flavor = row.flavor
            ports = any(device.alias is None for device in row.guest.devices)
            wanted = (dataclasses.replace(row.guest, devices=())
                      if ports else row.guest)
            self.assertEqual(wanted, codec.decode(
                flavor.vcpus, flavor.ram_mib, flavor.extra_specs))

    def test_left_over_cpus_are_those_that_no_guest_has(self):
        for found in self.plans:
            for planned in found.hosts:
                name = planned.host.name
                dedicated = len(planned.settings.dedicated)
                for row in found.flavors:
                    self.assertEqual(
                        dedicated - row.per_host[name] * row.guest.pcpus,
                        row.unused[name].pcpus)

    def test_a_flavor_fits_every_host_for_which_it_was_made(self):
        for found in self.plans:
            if found.hosts[0].profile.devices:
                continue
            for row in found.flavors:
                for name in row.shares:
                    self.assertGreater(row.per_host[name], 0, row.flavor)

    def test_parts_cells_and_hosts_tile_equal_cells_exactly(self):
        for found in self.plans:
            profile = found.hosts[0].profile
            if profile.devices or profile.emulator_threads is (
                    shape_model.EmulatorThreads.ISOLATE):
                continue
            for planned in found.hosts:
                if planned.page_kib > 2048 or len({
                        len(share.cores)
                        for share in planned.partition.cells}) > 1:
                    # A part of a poor cell may come to no whole page.
                    continue
                if not all(planned.settings.pages[share.id].get(
                        planned.page_kib) for share
                        in planned.partition.cells):
                    # The memory of a cell rounds to nothing.
                    continue
                # Where cells differ in memory, a size comes once for each
                # level; on the poorest it tiles.
                left = {}
                for row in found.flavors:
                    share = row.shares.get(planned.host.name)
                    if share and (share.words in ('cell', 'host')
                                  or share.words.startswith('1/')):
                        left.setdefault(row.flavor.vcpus, []).append(
                            row.unused[planned.host.name].pcpus)
                self.assertEqual({0}, {0, *map(min, left.values())})

    def test_dedicated_and_shared_cpus_are_apart_and_exist(self):
        for planned in self.hosts:
            own = planned.settings
            self.assertFalse(own.dedicated & own.shared)
            self.assertLessEqual(own.dedicated | own.shared, planned.host.cpus)


class TwinsTest(unittest.TestCase):
    """Hosts that are alike are planned once, and the plan is the same."""

    def figures(self, plan):
        return ([(row.flavor, row.shares, row.per_host, row.unused)
                 for row in plan.flavors],
                [(each.name, each.partition.host.name, each.settings,
                  each.state, each.rest_mib) for each in plan.hosts])

    def test_a_difference_that_matters_to_nobody_changes_nothing(self):
        self.assert_difference_changes_nothing(15)

    def test_periodic_nor_does_it_in_many_fleets(self):
        self.assert_difference_changes_nothing(300)

    def assert_difference_changes_nothing(self, fleets):
        dice = random.Random(20261123)
        plans = 0
        for _ in range(fleets):
            kinds = [hosts.any_host(dice, f'k{number}')
                     for number in range(dice.choice((1, 2, 3)))]
            alike = [dataclasses.replace(dice.choice(kinds), name=f'n{number}')
                     for number in range(8)]
            profile = hosts.any_profile(dice)
            try:
                found = planner.plan(alike, profile)
            except exception.InvalidInput:
                continue
            plans += 1
            # Processors of other names make each host one of its own kind.
            each = planner.plan([
                dataclasses.replace(host, processor=host.name)
                for host in alike], profile)
            self.assertEqual(self.figures(each), self.figures(found))
            for code in {item.code for item in each.warnings}:
                one, other = ({
                    name for item in plan.warnings if item.code is code
                    for name in item.subjects} for plan in (found, each))
                self.assertEqual(other, one, code)
        self.assertGreater(plans, fleets // 3)

# SPDX-License-Identifier: Apache-2.0

import dataclasses
import random
import shlex
import unittest

from hpcvirt import bibliography
from hpcvirt import exception
from hpcvirt.bench.studies import catalogue as study_catalogue
from hpcvirt.fit import supply
from hpcvirt.flavors import cpu_partition
from hpcvirt.flavors import host_part
from hpcvirt.flavors import kernel_settings
from hpcvirt.flavors import lint
from hpcvirt.flavors import memory
from hpcvirt.flavors import operator_specs
from hpcvirt.flavors import plan_document
from hpcvirt.flavors import planned
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from hpcvirt.flavors import propose
from hpcvirt.flavors import settings
from hpcvirt.flavors import sizes as guest_sizes
from hpcvirt.flavors import table
from hpcvirt.flavors import warning
from hpcvirt.model import cpuset
from hpcvirt.model import flavor as flavor_model
from hpcvirt.model import shape
from tests.builders import hosts
from tests.builders.plans import plan


class AlternativeTest(unittest.TestCase):
    def test_each_profile_names_the_plan_of_the_other(self):
        machines = [hosts.build(name='a'), hosts.build(name='b'),
                    hosts.build(cells=4, name='c')]
        for name, other in (('default', 'dense'), ('dense', 'default')):
            plan = planner.plan(machines, profiles.BUILT_IN[name])
            wanted = planner.plan(machines, profiles.BUILT_IN[other])
            found = plan_document.plan_other(plan)
            self.assertEqual((other, 128, ''), (
                found.profile, found.cpus, found.refusal))
            self.assertEqual(found.dedicated, sum(
                len(host.settings.dedicated) for host in wanted.hosts))
            self.assertEqual(found.vcpus, tuple(sorted({
                row.flavor.vcpus for row in wanted.flavors})))

    def test_a_plan_that_cannot_be_is_said_so(self):
        plan = planner.plan([hosts.build(cells=1, cores=1)], profiles.DENSE)
        found = plan_document.plan_other(plan)
        self.assertIn('no guest fits', found.message)
        self.assertNotIn('\n', found.message)

    def test_cpus_that_the_operator_names_are_all_for_guests(self):
        host = hosts.build()
        part = host_part.build('4-15,20-31', [])
        plan = planner.plan([host], profiles.DEFAULT, part)
        self.assertEqual(24, len(plan.hosts[0].settings.dedicated))
        self.assertEqual(24, plan_document.plan_other(plan, part).dedicated)


def found(*hosts, code='does-not-fit'):
    return lint.LintFinding(code, lint.LintSeverity.ERROR, 'm1', 'vcpus',
                            'no instance fits', 'make it smaller', hosts)


class FindingTest(unittest.TestCase):
    def test_the_message_names_the_hosts(self):
        self.assertEqual('no instance fits', found().message)
        self.assertEqual('a, b: no instance fits', found('a', 'b').message)

    def test_equal_findings_become_one_with_all_hosts(self):
        self.assertEqual(
            (found('a', 'b', 'c'), found('a', code='other')),
            warning.gather([found('a'), found('a', code='other'),
                            found('b', 'c')], 'hosts'))


def states(host, base=profiles.DENSE, **choices):
    plan = planner.plan([host], dataclasses.replace(base, **choices))
    return kernel_settings.make_state(plan.hosts[0])


def words(state):
    return [f'{item.name}={item.value}' for item in state.parameters]


class HostStateTest(unittest.TestCase):
    def test_the_tiering_of_memory_is_not_ended(self):
        for slow, expected in ((0, ['vm.swappiness', 'kernel.numa_balancing']),
                               (1, ['vm.swappiness'])):
            host = hosts.build(cores=4, mib=16384, memory_only=slow)
            self.assertEqual(expected, [
                item.name for item in states(host).sysctls])

    def test_pages_of_each_cell_are_on_the_command_line(self):
        found = words(states(hosts.build(cores=4, mib=16384)))
        self.assertEqual(
            ['default_hugepagesz=2M', 'hugepagesz=2M',
             'hugepages=0:6656,1:6656'], found[:3])

    def test_pages_that_are_there_and_unused_are_given_back(self):
        state = states(hosts.named('xeon-2s-24c-snc2-1g'))
        self.assertEqual({0}, {found[1048576]
                               for found in state.pages.values()})
        self.assertNotIn('hugepagesz=1G', words(state))

    def test_gigabyte_pages_are_the_default_where_guests_use_them(self):
        found = words(states(hosts.build(), page_size=1048576))
        self.assertEqual(['default_hugepagesz=1G', 'hugepagesz=1G'], found[:2])

    def test_a_host_without_huge_pages_lets_the_kernel_join_small_ones(self):
        found = words(states(hosts.build(), page_size=4))
        self.assertEqual(['transparent_hugepage=always'], found)

    def test_siblings_of_dedicated_cpus_are_isolated(self):
        state = states(hosts.build(cores=4, threads=2), smt=profiles.SMT.LEAVE,
                       housekeeping_cores_per_cell=1)
        self.assertEqual('1-3,5-7,9-11,13-15', cpuset.render(state.isolated))
        self.assertEqual('0,4,8,12', cpuset.render(state.housekeeping))

    def test_guests_with_all_cpus_are_not_isolated(self):
        state = states(hosts.build())
        self.assertEqual(frozenset(), state.housekeeping)
        self.assertNotIn('nohz_full', ''.join(words(state)))

    def test_the_iommu_is_for_devices_of_guests(self):
        passthrough = 'iommu.passthrough=1'
        self.assertNotIn(passthrough, words(states(hosts.build(vfs={1: 8}))))
        self.assertIn(passthrough, words(states(
            hosts.build(vfs={1: 8}), devices=(hosts.VFS,))))

    def test_every_cpu_of_every_machine_has_one_place(self):
        for host in hosts.shipped():
            for base in profiles.BUILT_IN.values():
                state = states(host, base)
                plan = planner.plan([host], base).hosts[0].settings
                self.assertEqual(host.cpus,
                                 state.isolated | state.housekeeping)
                self.assertFalse(state.isolated & state.housekeeping)
                self.assertLessEqual(plan.dedicated, state.isolated)
                self.assertLessEqual(plan.shared, state.housekeeping)
                # COMMAND_LINE_SIZE of x86 is 2048.
                self.assertLess(len(' '.join(words(state))), 1800)


class TemplateTest(unittest.TestCase):
    def test_a_good_template_is_read_as_it_stands(self):
        for form in (operator_specs.TEMPLATE, 'fixed', '{cores}c-{memory}',
                     ''.join(f'{{{field}}}'
                             for field in operator_specs.FIELDS)):
            self.assertEqual(form, operator_specs.read_template(form))

    def test_a_bad_template_is_refused(self):
        for form, pattern in (
                ('{core}', 'unknown field {core}; known: prefix'),
                ('{cores:>999999999}', 'unknown field'),
                ('{cores!r}', 'unknown field'),
                ('{prefix.__class__}', 'unknown field'),
                ('{}', 'unknown field'), ('{0}', 'unknown field'),
                ('{cores', 'is no template'), ('a}', 'is no template'),
                ('a b', 'only letters'), ('a\n', 'only letters'),
                ('{{x}}', 'only letters'), ('', 'must be text'),
                ('a' * 129, 'must be text'), (7, 'must be text')):
            with self.assertRaisesRegex(ValueError, pattern, msg=form):
                operator_specs.read_template(form)


class OperatorSpecsTest(unittest.TestCase):
    def test_what_hpcvirt_leaves_open_is_read_in_the_order_of_the_keys(self):
        given = {'trait:CUSTOM_HPC': 'required',
                 'quota:vif_inbound_average': '1000',
                 'aggregate_instance_extra_specs:pool': 'hpc',
                 'resources:CUSTOM_FPGA': '1'}
        self.assertEqual(tuple(sorted(given.items())),
                         operator_specs.read_specs(given))
        self.assertEqual((), operator_specs.read_specs({}))

    def test_keys_that_hpcvirt_sets_are_refused(self):
        for key, value in (('hw:cpu_policy', 'shared'),
                           ('hw:numa_nodes', '2'),
                           ('hw:mem_page_size', 'small'),
                           ('resources:PCPU', '4'),
                           ('resources1:MEMORY_MB', '1024')):
            with self.assertRaisesRegex(ValueError, 'is set by hpcvirt'):
                operator_specs.read_specs({key: value})
        self.assertTrue(operator_specs.is_taken('hw:numa_cpus.1'))
        self.assertFalse(operator_specs.is_taken('trait:CUSTOM_HPC'))

    def test_unknown_keys_of_a_checked_namespace_are_refused(self):
        with self.assertRaisesRegex(ValueError, 'unknown in its namespace'):
            operator_specs.read_specs({'hpcvirt:numa_scop': 'socket'})

    def test_values_that_are_not_text_are_refused(self):
        for value in (1, None, True, ['x'], '', 'a\nb', 'x' * 256):
            with self.assertRaisesRegex(ValueError, 'trait:CUSTOM_X: must'):
                operator_specs.read_specs({'trait:CUSTOM_X': value})

    def test_bad_keys_are_refused(self):
        for key in ('', 'a/b', 'x' * 256, 7, 'tr\u00e9it:X'):
            with self.assertRaisesRegex(ValueError, 'must have keys of'):
                operator_specs.read_specs({key: 'required'})
        with self.assertRaisesRegex(ValueError, 'a mapping of keys'):
            operator_specs.read_specs(['trait:CUSTOM_X'])


#: Words that say nothing about the loss.
WORDS = guest_sizes.HostShare('socket')


def planned_host(page_kib=2048, pages=None, reserved=(), dedicated=32):
    """A host with two cells for guests, and one that the host keeps."""
    host = hosts.build(cells=3)
    shares = tuple(
        cpu_partition.CellShare(number, number, (), ()) for number in (0, 1))
    return planned.PlannedHost(
        profiles.DENSE, host, cpu_partition.Partition(host, 1, shares),
        page_kib,
        settings.HostSettings(
            cpu_dedicated_set=cpuset.render(range(dedicated)),
            cpu_shared_set='', reserved_host_memory_mb=0,
            reserved_huge_pages=tuple(reserved), pages=pages or {}),
        supply.Supply((), ()), {})


class GuestMemoryTest(unittest.TestCase):
    def test_the_pages_of_the_guests_cells_are_added_up(self):
        host = planned_host(pages={
            0: {4: 1000, 2048: 100}, 1: {4: 1000, 2048: 50},
            2: {4: 1000, 2048: 7}})
        self.assertEqual((100 + 50) * 2, host.guest_memory_mib)

    def test_pages_that_are_reserved_are_not_for_guests(self):
        reserved = [settings.ReservedPages(0, 2048, 30),
                    settings.ReservedPages(1, 1048576, 1),
                    settings.ReservedPages(2, 2048, 5)]
        host = planned_host(pages={
            0: {2048: 100}, 1: {2048: 50, 1048576: 1}, 2: {2048: 7}},
            reserved=reserved)
        self.assertEqual((100 - 30 + 50) * 2, host.guest_memory_mib)

    def test_normal_pages_count_by_their_size(self):
        host = planned_host(4, {0: {4: 2560}, 1: {2048: 9}}, [
            settings.ReservedPages(0, 4, 512)])
        self.assertEqual(8, host.guest_memory_mib)


class LossesTest(unittest.TestCase):
    def losses(self, pcpus, host=None, share=WORDS, count=1):
        guest = shape.Shape((shape.GuestCell(pcpus, 0, 1024),))
        flavor = planned.PlannedFlavor(
            flavor_model.Flavor('f', pcpus, 1024, 0, {}), guest,
            {'host': share} if share else {}, {'host': count}, {})
        return [(loss.low_percent, loss.high_percent, loss.configuration)
                for loss in flavor.losses(host or planned_host())]

    def test_the_loss_is_that_of_the_share_of_the_dedicated_cpus(self):
        # [CERN-HEPiX-2015], table "VM sizes (cores)", column "After".
        self.assertEqual([(3.3, 3.3, '4x8')], self.losses(8))
        self.assertEqual([(4.6, 4.6, '2x16')], self.losses(9))
        self.assertEqual([(5.0, 5.0, '1x24')], self.losses(24))
        self.assertEqual([(3.0, 6.0, '1x32')],
                         self.losses(24, planned_host(dedicated=24)))

    def test_a_modified_hypervisor_promises_nothing_to_a_socket(self):
        # [LBNL-Partitioning]: "On Numa nodes 40% -> 3%".
        self.assertEqual([(4.6, 4.6, '2x16')], self.losses(
            16, share=guest_sizes.HostShare('any words', is_socket=True)))

    def test_a_host_that_it_was_not_sized_for_or_takes_none_has_none(self):
        self.assertEqual([], self.losses(8, share=None))
        self.assertEqual([], self.losses(8, count=0))


def proposals(sizes, pages, host=None, page_kib=2048, **choices):
    profile = profiles.Profile(**choices)
    partition = cpu_partition.divide(host or hosts.build(cells=2, cores=8),
                                     profile)
    pools = [memory.CellPool(share.id, len(share.cores), count, page_kib)
             for share, count in zip(partition.cells, pages, strict=True)]
    return propose.proposals(partition, sizes, pools, profile)


def memories(found):
    return [[cell.memory_mib for cell in item.guest.cells] for item in found]


class ProposalsTest(unittest.TestCase):
    def test_memory_is_in_proportion_to_cores(self):
        sizes = [guest_sizes.GuestSize(cores, 1)
                 for cores in ((2,), (4,), (8,), (8, 8))]
        self.assertEqual(
            [[2048], [4096], [8192], [8192, 8192]],
            memories(proposals(sizes, (4096, 4096))))

    def test_a_size_comes_once_for_each_level_of_memory(self):
        sizes = [guest_sizes.GuestSize((8,), 1)]
        self.assertEqual([[8192], [16384]],
                         memories(proposals(sizes, (8192, 4096))))
        self.assertEqual([[8192]], memories(proposals(sizes, (4300, 4096))))
        # Two cells have only the smaller amount in common.
        self.assertEqual([[8192, 8192]], memories(proposals(
            [guest_sizes.GuestSize((8, 8), 1)], (8192, 4096))))

    def test_a_size_whose_memory_rounds_to_nothing_is_left_out(self):
        self.assertEqual((),
                         proposals([guest_sizes.GuestSize((8,), 1)], (0, 0)))

    def test_threads_are_vcpus_of_a_core_and_stay_on_siblings(self):
        host = hosts.build(cells=2, cores=8, threads=2)
        (found,) = proposals([guest_sizes.GuestSize((8,), 2)], (4096, 4096),
                             host)
        self.assertEqual(16, found.guest.cpus)
        self.assertIs(shape.ThreadPolicy.REQUIRE, found.guest.thread_policy)
        self.assertEqual(shape.GuestTopology(1, 8, 2), found.guest.topology)

    def test_isolated_emulator_threads_take_a_core_of_each_cell(self):
        sizes = [guest_sizes.GuestSize(cores, 1) for cores in ((1,), (8, 8))]
        (found,) = proposals(sizes, (4096, 4096),
                             emulator_threads=shape.EmulatorThreads.ISOLATE)
        self.assertEqual([7, 7], [cell.pcpus for cell in found.guest.cells])

    def test_the_socket_scope_is_for_sizes_of_one_socket(self):
        for one_socket, allowed, expected in (
                (True, True, shape.NUMAScope.SOCKET),
                (False, True, shape.NUMAScope.HOST),
                (True, False, shape.NUMAScope.HOST)):
            host = hosts.build(cells=2, cores=8, sockets=1)
            (found,) = proposals(
                [guest_sizes.GuestSize((8, 8), 1, 1, one_socket)],
                (4096, 4096), host, socket_scope=allowed)
            self.assertIs(expected, found.guest.numa_scope)

    def test_an_unequal_cell_has_no_more_memory_than_the_one_before(self):
        host = hosts.build(cores=(8, 4))
        (found,) = proposals([guest_sizes.GuestSize((8, 4), 1)], (2048, 8192),
                             host)
        self.assertEqual([4096, 4096],
                         [cell.memory_mib for cell in found.guest.cells])


class SourcesTest(unittest.TestCase):
    """A plan cites the studies; the figures stand in both places."""

    def test_losses_by_share_are_those_of_the_tuned_cases(self):
        study_ = study_catalogue.get('S4')
        rows = [row for row in study_.rows if row.case.endswith('-tuned')
                and study_.case(row.case).guests.tuned]
        self.assertEqual(
            {row.case.removesuffix('-tuned') for row in rows},
            {loss.configuration for _, loss in planned.BY_SHARE})
        for share, loss in planned.BY_SHARE:
            case = study_.case(f'{loss.configuration}-tuned')
            percents = [row.stated_percent for row in rows
                        if row.case == case.id]
            self.assertEqual((min(percents), max(percents)),
                             (loss.low_percent, loss.high_percent))
            # The study's hosts have 32 cores.
            self.assertEqual(case.guests.vcpus, share * 32)
            self.assertEqual(loss.source, bibliography.get(
                study_.source).citation)
            self.assertEqual({loss.place}, {
                row.place for row in rows if row.case == case.id})


def config(host, **choices):
    return plan_document.dump(plan(host, **choices))['host_config']['host']


class SettingsTest(unittest.TestCase):
    def test_a_host_of_two_cells(self):
        found = config(hosts.build(cores=4, mib=16384))
        self.assertEqual('0-7', found['cpu_dedicated_set'])
        self.assertEqual('', found['cpu_shared_set'])
        self.assertEqual([], found['reserved_huge_pages'])
        self.assertEqual([], found['pci_device_spec'])
        self.assertEqual([], found['pci_alias'])
        # 13 GiB of 16 GiB in pages of 2 MiB, the rest in pages of 4 KiB.
        self.assertEqual(
            {'4': 786432, '2048': 6656, '1048576': 0}, found['pages']['0'])

    def test_no_more_pages_are_set_aside_than_guests_can_fill(self):
        for host in hosts.shipped():
            found = plan(host)
            for each in found.hosts:
                pages = sum(
                    each.settings.pages[share.id][each.page_kib]
                    for share in each.partition.cells)
                most = max(
                    row.per_host[host.name] * row.flavor.ram_mib * 1024
                    // each.page_kib for row in found.flavors)
                self.assertLessEqual(most, pages)
                self.assertLess(pages - most, pages * 0.06)

    def test_small_pages_are_counted_from_what_the_source_says(self):
        host = hosts.named('hs06-2s-16c')
        found = plan_document.dump(plan(host))['host_config'][host.name]
        for cell in host.cells:
            before = sum(pool.size_kib * pool.total for pool in cell.pages)
            pages = found['pages'][str(cell.id)]
            after = sum(int(size) * count for size, count in pages.items())
            self.assertEqual(before, after)

    def test_neutron_devices_name_their_physical_network(self):
        found = config(hosts.build(vfs={0: 4}), devices=(profiles.Devices(
            ports=profiles.Ports.NEUTRON, physical_network='fast'),))
        self.assertEqual(
            [{'address': '0000:41:00.0', 'physical_network': 'fast'}],
            found['pci_device_spec'])
        self.assertEqual([], found['pci_alias'])


class ShellTest(unittest.TestCase):
    def test_a_line_creates_the_flavor_that_the_plan_has(self):
        for host in hosts.shipped():
            found = plan(host)
            commands = [line for line in table.commands(found)
                        if not line.startswith('#')]
            self.assertEqual(len(found.flavors), len(commands))
            for row, line in zip(found.flavors, commands, strict=True):
                words = shlex.split(line)
                self.assertEqual(['openstack', 'flavor', 'create'], words[:3])
                self.assertEqual(row.flavor.name, words[-1])
                self.assertEqual(
                    {f'{key}={value}' for key, value
                     in row.flavor.extra_specs.items()},
                    {words[at + 1] for at, word in enumerate(words)
                     if word == '--property'})
                for option, value in (('--vcpus', row.flavor.vcpus),
                                      ('--ram', row.flavor.ram_mib),
                                      ('--disk', row.flavor.disk_gib)):
                    self.assertEqual(str(value),
                                     words[words.index(option) + 1])
                self.assertNotIn('--id', words)

    def test_warnings_are_comments(self):
        first = next(table.commands(plan(hosts.build())))
        self.assertTrue(first.startswith('# no-housekeeping: '))


class TableTest(unittest.TestCase):
    def test_no_line_is_wider_than_the_terminal(self):
        for machines in (*([host] for host in hosts.shipped()),
                         hosts.shipped()):
            found = plan(*machines)
            for width, most in ((None, 100), (80, 80)):
                for line in table.table(
                        found, [plan_document.plan_other(found)],
                        width).splitlines():
                    self.assertLessEqual(len(line), most, line)

    def test_a_row_shows_the_guests_that_fit_and_what_they_leave(self):
        text = table.table(plan(hosts.named('hs06-2s-16c')))
        row = next(line.split() for line in text.splitlines()
                   if line.strip().startswith('hpc.24c'))
        self.assertEqual(
            ['3/4', 'host', '24', '2x12', '42', '1', '8', 'CPUs,', '14', 'GiB',
             '5%,', '1x24'], row[1:])

    def test_hosts_of_one_kind_share_a_table(self):
        text = table.table(plan(hosts.build(name='a'),
                                      hosts.build(name='b'),
                                hosts.build(cells=4, name='c')))
        self.assertIn('2 hosts: a, b', text)
        self.assertEqual(2, text.count('  Loss\n'))

    def test_many_hosts_of_one_kind_are_counted(self):
        text = table.table(plan(*(hosts.build(name=f'node-{number:03}')
                                  for number in range(1, 301))))
        self.assertIn('300 hosts (node-001, node-002, ...)\n', text)
        self.assertNotIn('node-003', text)

    def test_normal_pages_count_for_guests_only_as_far_as_they_get_them(self):
        texts = {size: table.table(planner.plan(
            [hosts.named('hs06-2s-16c')], profiles.Profile(page_size=size)))
            for size in (4, 2048)}
        for text in texts.values():
            self.assertIn(' 56 of 62.7 GiB in', text)

    def test_a_host_that_nothing_fits_says_so(self):
        text = table.table(plan(hosts.build(),
                                hosts.build(mib=0, name='bare')))
        self.assertIn('none of the flavors fits on this host', text)


CODE = warning.WarningCode.NO_PARTS


class GatherTest(unittest.TestCase):
    def test_equal_warnings_become_one_with_all_subjects_once(self):
        found = warning.gather([
            warning.PlanWarning(CODE, 'x', ('b',)),
            warning.PlanWarning(CODE, 'y', ('b',)),
            warning.PlanWarning(CODE, 'x', ('a', 'b'))])
        self.assertEqual([('x', ('b', 'a')), ('y', ('b',))],
                         [(item.what, item.subjects) for item in found])


def plan_class(name, **choices):
    return planner.plan([hosts.build(name=name, vfs={0: 8})],
                        profiles.Profile(**choices))


class MergeTest(unittest.TestCase):

    def test_classes_keep_their_settings_and_flavors(self):
        cpu, card = plan_class('a'), plan_class('b', name_prefix='io',
                                                devices=(hosts.VFS,))
        both = planned.merge_plans({'cpu': cpu, 'io': card})
        self.assertEqual(['a', 'b'], [host.name for host in both.hosts])
        self.assertEqual(
            [row.flavor for row in (*cpu.flavors, *card.flavors)],
            [row.flavor for row in both.flavors])

    def test_equal_flavors_are_one(self):
        both = planned.merge_plans({'x': plan_class('a'),
                                    'y': plan_class('b')})
        self.assertEqual([{'a', 'b'}] * len(both.flavors),
                         [set(row.per_host) for row in both.flavors])

    def test_what_two_classes_cannot_have_both_is_refused(self):
        for one, other, fault in (
                (plan_class('a'), plan_class('b', disk_gib=1),
                 'class y: plans a flavor'),
                (plan_class('a'),
                 plan_class('b', name_prefix='b', pack_cells=True),
                 'class y: has pack_cells: true, unlike class x'),
                (plan_class('a', devices=(hosts.VFS,)),
                 plan_class('b', name_prefix='b', devices=(
                     dataclasses.replace(
                         hosts.VFS, affinity=shape.PCIAffinity.REQUIRED),)),
                 'class y: has a PCI alias hpc-vf')):
            with self.assertRaisesRegex(exception.InvalidInput, fault):
                planned.merge_plans({'x': one, 'y': other})


class TwinsTest(unittest.TestCase):
    """Hosts that are alike are planned once, and the plan is the same."""

    def figures(self, plan):
        return ([(row.flavor, row.shares, row.per_host, row.stranded)
                 for row in plan.flavors],
                [(each.name, each.partition.host.name, each.settings,
                  each.supply, each.rest_mib) for each in plan.hosts])

    def test_a_difference_that_matters_to_nobody_changes_nothing(self):
        dice = random.Random(20261123)
        plans = 0
        for _ in range(60):
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
        self.assertGreater(plans, 20)


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

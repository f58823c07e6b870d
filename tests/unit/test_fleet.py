# SPDX-License-Identifier: Apache-2.0

import dataclasses
import random
import re
import unittest

from hpcvirt.fit import capacity
from hpcvirt.fit import claim
from hpcvirt.fit import reasons
from hpcvirt.fleet import admission
from hpcvirt.fleet import assemble
from hpcvirt.fleet import capacity_report
from hpcvirt.fleet import count
from hpcvirt.fleet import document
from hpcvirt.fleet import drawing
from hpcvirt.fleet import explain_report
from hpcvirt.fleet import free_resources
from hpcvirt.fleet import guest as guests
from hpcvirt.fleet import metrics
from hpcvirt.fleet import verdict
from hpcvirt.model import flavor as flavor_model
from hpcvirt.topology import snapshot
from tests.builders import fleets
from tests.builders import hosts


def widths(text):
    return {kind: float(width) for kind, width in re.findall(
        r'<rect class="(\w+)"[^>]*? width="([\d.]+)"', text)}


class DrawingTest(unittest.TestCase):
    def test_parts_of_a_bar_are_as_long_as_their_shares(self):
        found = widths(drawing.shares(100, 40, 10, 'PCPUs'))
        self.assertEqual((132, 66, 22), (
            found['taken'], found['free'], found['stranded']))
        found = widths(drawing.promise(1, 4, 'x'))
        self.assertEqual((55, 165), (found['free'], found['stranded']))
        for nothing in (drawing.shares(0, 0, 0, 'x'),
                        drawing.promise(0, 0, 'x'), drawing.part(0, 0, 'x')):
            self.assertEqual({'outline'}, {*widths(nothing)})

    def test_pages_that_do_not_matter_are_left_out(self):
        fleet, _ = fleets.a_fleet(random.Random(4), 1)
        self.assertIn('2m', drawing.host(fleet.hosts[0], {2048}))
        self.assertNotIn('2m', drawing.host(fleet.hosts[0], {4}))


class MetricsTest(unittest.TestCase):
    def setUp(self):
        super().setUp()
        fleet, self.flavors = fleets.a_fleet(random.Random(4), 3, load=1)
        # Hosts that are alike are judged once, and counted each.
        twin = dataclasses.replace(fleet.hosts[0], name='twin')
        self.fleet = dataclasses.replace(
            fleet, hosts=(*fleet.hosts, twin), broken={'h9': 'is broken'})
        self.found = count.count(self.fleet, self.flavors)
        self.samples = {
            family.name: family.samples for family
            in metrics.families(self.fleet, self.found)}

    def test_flavors_have_their_counts(self):
        for item in self.found:
            name = item.flavor.name
            self.assertEqual((item.total, item.by_sums), tuple(
                self.samples[metric][name, 'True'] for metric in (
                    'openstack_free_capacity_by_flavor_total',
                    'hpcvirt_capacity_by_sums')))
            self.assertEqual(
                {host: number for host, number in item.per_host.items()
                 if number},
                {host: number for (host, flavor, *_), number in self.samples[
                    'openstack_free_capacity_hypervisor_by_flavor'].items()
                 if flavor == name})

    def test_each_refusal_is_counted_by_step_and_reason(self):
        total = 0
        for flavor in self.flavors:
            expected = {}
            for each in verdict.judge(guests.compile_flavor(flavor),
                                      self.fleet):
                if each.step is not None and each.name != 'h9':
                    key = flavor.name, each.step.value, each.root or each.code
                    expected[key] = expected.get(key, 0) + 1
            self.assertEqual(expected, {
                key: number for key, number
                in self.samples['hpcvirt_refusing_hypervisors'].items()
                if key[0] == flavor.name})
            total += sum(expected.values())
        self.assertGreater(total, 3)

    def test_hosts_have_what_is_free_and_broken_ones_are_named(self):
        rooms = free_resources.describe_hosts(self.fleet, self.found)
        places = {host.name: (host.name, host.zone, host.project_aggregate)
                  for host in self.fleet.hosts}
        for host, room in rooms.items():
            place = places[host]
            self.assertEqual(
                (*dataclasses.astuple(room.pcpus), room.cells.total,
                 room.cells.free, room.sockets.free, room.hosts.free),
                tuple(self.samples[f'hpcvirt_hypervisor_{name}'][place]
                      for name in ('pcpus', 'pcpus_free', 'pcpus_stranded',
                                   'cells', 'cells_free', 'sockets_free',
                                   'empty')))
            for size, amount in room.pages.items():
                self.assertEqual(dataclasses.astuple(amount), tuple(
                    self.samples[f'hpcvirt_hypervisor_pages{part}'][
                        *place, str(size)] for part in (
                            '', '_free', '_stranded')))
        self.assertEqual({**{(host,): 0 for host in rooms}, ('h9',): 1},
                         self.samples['hpcvirt_hypervisor_broken'])


class CountTest(unittest.TestCase):
    def test_hosts_without_the_devices_promise_nothing(self):
        with_gpus, plain = (
            {'name': name, 'topology': snapshot.make_json(hosts.named(name))}
            for name in ('xeon-2s-20c-smt-8gpu', 'intel-2s-16c-smt'))
        fleet, flavors = assemble.make_fleet(document.read({
            'schema_version': 1, 'classes': {
                'gpu': {'hosts': [with_gpus], 'profile': {
                    'base': 'dense', 'devices': [{
                        'kind': 'whole', 'vendor_id': '10de',
                        'product_id': '1db1', 'alias': 'gpu'}]}},
                'plain': {'hosts': [plain], 'profile': 'dense'}}}, 'f'))
        found = {item.flavor.name: item
                 for item in count.count(fleet, flavors)}
        gpus = [item for name, item in found.items() if 'gpu' in name]
        self.assertEqual([(8, 8)], [
            (item.total, item.by_sums) for item in gpus])
        self.assertEqual(0, gpus[0].per_host['intel-2s-16c-smt'])
        self.assertGreater(len(found), 1)

    def test_each_host_takes_what_it_takes_one_after_the_other(self):
        dice = random.Random(3)
        lost = 0
        for _ in range(25):
            fleet, flavors = fleets.a_fleet(dice, 3)
            for item in count.count(fleet, flavors):
                guest = guests.compile_flavor(item.flavor)
                self.assertEqual(
                    {host.name: len(admission.place_guests(
                        guest, host.state, 999)) for host in fleet.hosts},
                    item.per_host)
                self.assertGreaterEqual(item.by_sums, item.total)
                lost += item.by_sums - item.total
        self.assertGreater(lost, 9)

    def test_sums_limit_what_no_cell_limits(self):
        for shared, flavor, expected in (
                (4, flavor_model.Flavor('m', 1, 40, 0, {}), 2),
                (4, flavor_model.Flavor('v', 2, 0, 0, {}), 3),
                # Placement has six, but gives none of them two.
                (1, flavor_model.Flavor('v', 2, 0, 0, {}), 0),
                (1, flavor_model.Flavor('v', 1, 0, 0, {}), 6)):
            fleet, host = self.fleet_with_shared_cpus(shared)
            (item,) = count.count(fleet, [flavor])
            self.assertEqual((expected, expected), (item.total, item.by_sums))
            placed = admission.admit(guests.compile_flavor(flavor), host.state)
            self.assertEqual(not expected,
                             isinstance(placed, reasons.Misfit))
            if not expected:
                self.assertEqual('the host has 1 VCPU per instance free, '
                                 '2 needed', placed.message)

    def fleet_with_shared_cpus(self, number):
        fleet, _ = fleets.a_fleet(random.Random(5), 1)
        (host,) = fleet.hosts
        first, *others = host.state.supply.cells
        host = fleets.changed(host, (
            first._replace(shared=frozenset(range(900, 900 + number))),
            *others), free=guests.Resources(0, 6, 100))
        return dataclasses.replace(fleet, hosts=(host,)), host

    def test_memory_that_the_host_keeps_is_not_counted(self):
        fleet, _ = fleets.a_fleet(random.Random(5), 1)
        (host,) = fleet.hosts
        flavor = flavor_model.Flavor('x', 1, 64, 0, {
            'hw:cpu_policy': 'dedicated', 'hw:mem_page_size': 'large'})
        full = fleets.changed(
            host, free=host.state.free._replace(memory_mib=63))
        (item,) = count.count(dataclasses.replace(fleet, hosts=(full,)),
                              [flavor])
        self.assertEqual(0, item.total)
        self.assertEqual(
            reasons.Code.RESOURCES, admission.admit(
                guests.compile_flavor(flavor), full.state).code)

    def test_equal_hosts_are_counted_each(self):
        fleet, flavors = fleets.a_fleet(random.Random(5), 1)
        many = dataclasses.replace(fleet, hosts=tuple(
            dataclasses.replace(fleet.hosts[0], name=f'n{number}')
            for number in range(5)))
        for one, five in zip(count.count(fleet, flavors),
                             count.count(many, flavors), strict=True):
            self.assertEqual((5 * one.total, 5 * one.by_sums),
                             (five.total, five.by_sums))


class ReportTest(unittest.TestCase):
    def test_lines_keep_to_the_width(self):
        fleet, flavors = fleets.a_fleet(random.Random(9), 6)
        broken = dataclasses.replace(fleet, broken={'h9': 'f: ' + 'x ' * 70})
        text = capacity_report.text(broken, count.count(broken, flavors), 70)
        self.assertLessEqual(max(map(len, text.splitlines())), 70)
        self.assertIn('1 host left out, because', text)
        self.assertIn('  h9: f: x x', text)

    def test_hosts_with_equal_room_are_in_natural_order(self):
        item = count.InstanceCount(
            flavor_model.Flavor('x', 1, 64, 0, {}),
            {'c-1': 1, 'c-10': 1, 'c-2': 1, 'c-3': 2}, 5)
        self.assertEqual('c-3: 2, c-1: 1, c-2: 1, 1 more',
                         capacity_report.row(item)[-1])


class VerdictTest(unittest.TestCase):
    def test_each_host_has_the_verdict_of_placement_and_claim(self):
        dice = random.Random(21)
        steps = set()
        for _ in range(25):
            fleet, flavors = fleets.a_fleet(dice, 4)
            for flavor in flavors:
                guest = guests.compile_flavor(flavor)
                for host, found in zip(
                        fleet.hosts, verdict.judge(guest, fleet), strict=True):
                    self.assertEqual(host.name, found.name)
                    steps.add(found.step)
                    short = any(need > free for need, free in zip(
                        guest.sums, host.state.free, strict=True))
                    placed = claim.predict(guest.demand, host.state.supply)
                    self.assertEqual(
                        short, found.step == verdict.SchedulingStep.PLACEMENT)
                    if not short and isinstance(placed, reasons.Misfit):
                        self.assertEqual(
                            (verdict.SchedulingStep.FILTER, placed.code,
                             str(placed)),
                            (found.step, found.code, found.reason))
                    elif not short:
                        self.assertEqual((True, placed.cells),
                                         (found.fits, found.cells))
        self.assertEqual({None, verdict.SchedulingStep.PLACEMENT,
                          verdict.SchedulingStep.FILTER},
                         steps)

    def test_a_defect_of_the_claim_is_a_step_of_its_own(self):
        fleet, _ = fleets.a_fleet(random.Random(1), 1)
        (host,) = fleet.hosts
        flavor = flavor_model.Flavor('x', 3, 192, 0, {
            'hw:cpu_policy': 'dedicated', 'hw:numa_nodes': '2',
            'hw:numa_cpus.0': '0', 'hw:numa_cpus.1': '1,2',
            'hw:numa_mem.0': '64', 'hw:numa_mem.1': '128',
            'hw:mem_page_size': '2048'})
        steps = set()
        for free in ((1, 2), (2, 1), (2, 1, 1), (1, 2, 1)):
            cells = (
                host.state.supply.cells[0]._replace(
                    id=number, dedicated=frozenset(range(8)),
                    free=frozenset(range(count)),
                    siblings=tuple(frozenset([cpu]) for cpu in range(8)))
                for number, count in enumerate(free))
            odd = fleets.changed(
                host, cells, free=guests.Resources(8, 8, 1 << 20))
            (found,) = verdict.judge(
                guests.compile_flavor(flavor),
                dataclasses.replace(fleet, hosts=(odd,)))
            steps.add(found.step)
            if found.step is verdict.SchedulingStep.CLAIM:
                self.assertIn("Nova's defect A", found.reason)
        self.assertIn(verdict.SchedulingStep.CLAIM, steps)

    def test_a_broken_record_has_the_reason(self):
        fleet, flavors = fleets.a_fleet(random.Random(1), 1)
        fleet = dataclasses.replace(fleet, broken={'h7': 'f: bad'})
        found = verdict.judge(guests.compile_flavor(flavors[0]), fleet)
        self.assertEqual(('h7', False, 'record', 'f: bad'), (
            found[-1].name, found[-1].fits, found[-1].step,
            found[-1].reason))


class VerdictReportTest(unittest.TestCase):
    def test_hosts_that_fail_alike_share_a_line(self):
        found = [verdict.HostVerdict(
            f'n{number}', verdict.SchedulingStep.FILTER, reasons.Code.NO_CELL,
            reasons.Code.FREE_PCPUS, f'reason {number}')
            for number in range(400)]
        found.append(verdict.HostVerdict('m', None, cells=(3, 1)))
        text = explain_report.text('x', found, (), 80)
        self.assertIn('x fits on 1 of 401 hosts.', text)
        self.assertRegex(text, r'\n +1  m +- +it fits on cells 3, 1\n'
                         r' +400  n0, n1, \.\.\.  filter +'
                         r'for example n0: reason 0\n')
        self.assertLess(len(text.splitlines()), 9)
        document = explain_report.document(found, ())
        self.assertEqual((True, 401), (document['fits'],
                                       len(document['hosts'])))


def filled(host, flavor):
    """Fill a host claim by claim; return the PCPUs and pages left."""
    guest = guests.compile_flavor(flavor)
    left = capacity.fill(guest.shape, host.state.supply,
                         host.state.free.times(guest.sums))
    return left.free_pcpus, {
        size: sum(pool.free for cell in left.supply.cells
                  for pool in cell.pages if pool.size_kib == size)
        for size in (4, 2048)}


class FreeRoomTest(unittest.TestCase):
    def test_stranded_is_what_no_flavor_alone_takes(self):
        dice = random.Random(4)
        stranded = 0
        for _ in range(15):
            fleet, flavors = fleets.a_fleet(dice, 2)
            flavors = [item for item in flavors if item.vcpus > 1][:2]
            flavors.append(flavor_model.Flavor('any', 3, 64, 0, {
                'hw:cpu_policy': 'dedicated',
                'hw:mem_page_size': dice.choice(('any', 'large', '2048'))}))
            rooms = free_resources.describe_hosts(fleet,
                                                  count.count(fleet, flavors))
            for host in fleet.hosts:
                room = rooms[host.name]
                left = [filled(host, flavor) for flavor in flavors]
                self.assertEqual(min(pcpus for pcpus, _ in left),
                                 room.pcpus.stranded)
                for size, amount in room.pages.items():
                    if size in (4, 2048):
                        self.assertEqual(
                            min(pages[size] for _, pages in left),
                            amount.stranded)
                stranded += room.pcpus.stranded
        self.assertGreater(stranded, 4)

    def test_only_what_no_instance_is_on_is_whole(self):
        fleet, _ = fleets.a_fleet(random.Random(1), 2)
        host = max(fleet.hosts, key=lambda host: len(host.instances))
        for instances in ((), host.instances[:1]):
            now = fleets.rebuilt(host, instances)
            used = {cell for item in instances for cell in item.cells}
            cells = {cell.id: cell.socket for cell in now.state.supply.cells}
            room = free_resources.describe_hosts(
                dataclasses.replace(fleet, hosts=(now,)), ())[host.name]
            self.assertEqual(
                (len(cells), len(cells) - len(used),
                 len(set(cells.values()) - {cells[one] for one in used}),
                 not instances),
                (room.cells.total, room.cells.free, room.sockets.free,
                 room.hosts.free))

    def test_nothing_is_free_on_a_closed_host(self):
        fleet, flavors = fleets.a_fleet(random.Random(1), 1)
        (host,) = fleet.hosts
        empty = fleets.rebuilt(host, ())
        closed = dataclasses.replace(fleet, hosts=(fleets.changed(
            empty, closed='it is disabled', free=guests.Resources(0, 0, 0)),))
        room = free_resources.describe_hosts(
            closed, count.count(closed, flavors))[host.name]
        self.assertEqual([0] * 5, [part.free for part in (
            room.pcpus, room.pages[2048], room.cells, room.sockets,
            room.hosts)])
        self.assertEqual((0, 0), (room.pcpus.stranded,
                                  room.pages[2048].stranded))

    def test_the_fleet_is_the_sum_of_its_hosts(self):
        fleet, flavors = fleets.a_fleet(random.Random(9), 3)
        document = capacity_report.document(fleet, count.count(fleet, flavors))
        for key in ('total', 'free', 'stranded'):
            self.assertEqual(
                sum(host['pcpus'][key] for host in document['hosts']),
                document['free']['pcpus'][key])
        for key in ('cells', 'sockets', 'hosts'):
            self.assertEqual(
                sum(host[key]['free'] for host in document['hosts']),
                document['free'][key]['free'])

    def test_what_is_left_of_a_share_is_drawn(self):
        room = free_resources.FreeResources(
            free_resources.Amount(1000, 7, 1), {},
            *[free_resources.Whole(3, 3), free_resources.Whole(0, 0),
              free_resources.Whole(2, 1)])
        bars = [capacity_report._bar(total, free, stranded or 0)
                for _, total, free, stranded
                in capacity_report.list_amounts(room)]
        self.assertEqual(['#' * 22 + '-!', '-' * 24, '',
                          '#' * 12 + '-' * 12], bars)

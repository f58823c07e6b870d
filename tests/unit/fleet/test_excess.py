# SPDX-License-Identifier: Apache-2.0

import random
import unittest

from hpcvirt.fit import placement
from hpcvirt.fleet import assemble
from hpcvirt.fleet import classes
from hpcvirt.fleet import document
from hpcvirt.fleet import excess
from hpcvirt.topology import snapshot
from tests.builders import fleets
from tests.builders import hosts

SHARED = {'name': 's', 'vcpus': 6, 'ram_mib': 512, 'disk_gib': 0,
          'extra_specs': {}}
IN_CELL = {**SHARED, 'extra_specs': {'hw:numa_nodes': '1'}}
PINNED = {**SHARED, 'vcpus': 2, 'extra_specs': {
    'hw:cpu_policy': 'dedicated', 'hw:mem_page_size': '2048'}}
HELD = {'flavor': PINNED, 'cells': [{'id': 0, 'pages': {'2048': 256}}]}


def assemble_with(*instances, host=None, **own):
    """Build a fleet of a host with 2 cells of 4 cores, 2 of them shared."""
    host = host or {'topology': snapshot.make_json(hosts.build(
        cells=2, cores=4, mib=8192, name='h', vfs={0: 2}))}
    fleet, _ = assemble.make_fleet(document.read({
        'schema_version': 1, 'classes': {'c': {
            'hosts': [host], 'profile': {'shared_cores_per_cell': 1},
            **own}}, 'flavors': [SHARED],
        'instances': [{'id': f'i{number}', 'host': 'h', **each}
                      for number, each in enumerate(instances)]}, 'f'))
    return fleet


class ExcessTest(unittest.TestCase):
    def check(self, said, *instances, code='instances-exceed', host=None):
        fleet = assemble_with(*instances, host=host)
        self.assertEqual({}, fleet.broken)
        found = [item.message for item in fleet.warnings if item.code == code]
        if said is None:
            self.assertEqual([], found)
            return
        self.assertEqual(1, len(found), found)
        self.assertTrue(found[0].startswith('h: the instances have '), found)
        self.assertIn(said, found[0])

    def test_instances_that_have_what_is_given_are_no_excess(self):
        # Two shared CPUs, four times.
        self.check(None)
        self.check(None, {'flavor': {**SHARED, 'vcpus': 2}})
        self.check(None, *[{'flavor': {**SHARED, 'vcpus': 2}}] * 4)

    def test_the_sums_of_placement_are_compared(self):
        self.check('on h, they have 10 vCPUs, and the host gives 8 (i0 of f: '
                   'instances[0] has 2)',
                   *[{'flavor': {**SHARED, 'vcpus': 2}}] * 5)
        self.check('MiB of memory, and the host gives ',
                   *[{'flavor': {**SHARED, 'vcpus': 1, 'ram_mib': 5000}}] * 4)

    def test_one_instance_with_more_than_the_host_has_is_named(self):
        self.check('i1 of f: instances[1] has 6 vCPUs, and the host has 2 in '
                   'all', {'flavor': {**SHARED, 'vcpus': 1}},
                   {'flavor': SHARED})

    def test_the_sums_of_a_cell_are_compared(self):
        one = {**IN_CELL, 'vcpus': 1}
        self.check('on h, they have 5 vCPUs on cell 1, which gives 4 (i0 of f',
                   *[{'flavor': one, 'cells': [{'id': 1}]}] * 5)
        self.check('9000 MiB of memory on cell 1, which gives 8192',
                   {'flavor': {**one, 'ram_mib': 9000},
                    'cells': [{'id': 1}]})

    def test_nothing_of_an_excess_is_free(self):
        (host,) = assemble_with(
            *[{'flavor': {**SHARED, 'vcpus': 2}}] * 5).hosts
        guest = host.instances[0].guest
        self.assertEqual(-2, host.state.free.vcpus)
        self.assertEqual(0, placement.count(guest, host.state))

    def test_devices_that_the_host_does_not_have_are_named(self):
        none = {**SHARED, 'vcpus': 1}
        code = 'devices-not-counted'
        self.check('i0 of f: instances[0] has 0000:FF:00.0, which the '
                   'topology does not have', {
                       'flavor': none, 'devices': ['0000:FF:00.0']}, code=code)
        self.check('has a flavor with 2 gpu, and the host gives none', {
            'flavor': {**none, 'extra_specs': {
                'pci_passthrough:alias': 'gpu:2'}}}, code=code)

    def test_devices_that_are_not_for_guests_are_no_contradiction(self):
        (card,) = hosts.build(cells=2, vfs={0: 2}).devices
        bus = card.address.rpartition(':')[0]
        for address in (card.address, f'{bus}:02.1'):
            self.check(None, {'flavor': {**SHARED, 'vcpus': 1},
                              'devices': [address]},
                       code='devices-not-counted')

    def test_hosts_of_one_kind_are_one_warning(self):
        fleet = assemble_with(*[
            {'flavor': SHARED, 'host': f'h-{number}'} for number in (1, 2, 3)],
            host={'count': 3, 'topology': snapshot.make_json(
                hosts.build(cells=2, cores=4, mib=8192, name='h'))})
        (found,) = (item.message for item in fleet.warnings
                    if item.code == 'instances-exceed')
        self.assertTrue(found.startswith('h-1, h-2, h-3: the'), found)


class ReportedTest(unittest.TestCase):
    """Hosts of a dump, whose instances stand beside what Nova reports."""

    def report(self, *instances):
        """Write down a host as Nova would report it with its instances."""
        (host,) = assemble_with(*instances).hosts
        entry = classes.HostEntry(name='h', reported=host.state)
        (plain,) = classes.dump_class(
            classes.FleetClass(hosts=(entry,)))['hosts']
        return plain

    def say(self, reported, *instances):
        fleet = assemble_with(*instances, host=self.report(*reported))
        return fleet.broken or [item.message for item in fleet.warnings]

    def test_instances_that_nova_reports_are_no_contradiction(self):
        first, second = ({**HELD, 'cpus': cpus} for cpus in ([1, 2], [3]))
        shared = {'flavor': {**IN_CELL, 'vcpus': 1}, 'cells': [{'id': 1}]}
        second['flavor'] = {**PINNED, 'vcpus': 1}
        for known in ([], [first], [first, second, shared]):
            self.assertEqual([], self.say(known, *known))
        # Another one has been removed from the document.
        self.assertEqual([], self.say([first, second], second))

    def test_an_instance_on_no_cell_of_the_host_breaks_the_record(self):
        self.assertEqual(
            {'h': 'f: instances[0]: i0 is on cell 4, which the host does not '
             'have'}, self.say([], {**HELD, 'cpus': [1, 2], 'cells': [
                 {'id': 4}]}))

    def test_what_is_not_reported_as_used_is_named(self):
        held = {**HELD, 'cpus': [1, 2]}
        plain = {'flavor': {**IN_CELL, 'vcpus': 1}, 'cells': [{'id': 1}]}
        small = {**held, 'flavor': {**PINNED, 'ram_mib': 2},
                 'cells': [{'id': 0, 'pages': {'2048': 1}}]}
        for reported, instances, said in (
                ([], [held], '[0] has CPU 1-2, which Nova reports as free'),
                ([held], [held] * 2, 'instances[1] has CPU 1, and so has i0'),
                ([small], [held], ('they have 256 pages of 2 MiB on cell 0, '
                                   'where Nova reports 1 as used (one of them '
                                   'is i0 of f: instances[0])')),
                ([], [plain], 'on cell 1, where Nova reports 0 as used')):
            with self.subTest(said):
                (found,) = self.say(reported, *instances)
                self.assertIn(said, found)
                self.assertTrue(found.startswith(
                    'h: the instances have what is not reported as used'))


class OfTheClaimTest(unittest.TestCase):
    def test_instances_where_the_claim_puts_them_are_no_excess(self):
        dice = random.Random(5)
        seen = 0
        for _ in range(20):
            made = fleets.a_fleet(dice, 2)
            if made is None:
                continue
            for host in made[0].hosts:
                seen += len(host.instances)
                self.assertIsNone(excess.describe_difference(host))
        self.assertGreater(seen, 20)

# SPDX-License-Identifier: Apache-2.0

"""Make the changes that explain proposes; Nova's claim must then accept."""

import collections
import dataclasses
import random
import re
import unittest

from hpcvirt import exception
from hpcvirt.flavors import compiled_flavor
from hpcvirt.fleet import changes
from hpcvirt.fleet import verdict
from hpcvirt.specs import codec
from tests.builders import fleets
from tests.functional import planned_nova

SEED = 2

#: The kinds of changes that occur, in words without numbers and names.
KINDS = {
    'guest cells instead of', 'equal guest cells', 'CPU fewer', 'CPUs fewer',
    'CPUs fewer and less memory in proportion', 'pages of KiB',
    'the thread policy prefer instead of require',
    'the thread policy prefer instead of isolate',
    'emulator threads that are not isolated',
    'more pages of KiB on cell of', 'moves from to',
}


class FleetChangesTest(unittest.TestCase):
    def test_nova_accepts_the_guest_after_each_change(self):
        made = self.make_all(SEED, 25)
        self.assertLessEqual(KINDS, made.keys())

    def test_periodic_nova_accepts_the_guest_after_each_change(self):
        made = self.make_all('periodic', 600)
        self.assertLessEqual({
            *KINDS, 'equal guest cells instead of',
            'moves from to , then moves from to'}, made.keys())

    def make_all(self, seed, rounds):
        """Make every change on random fleets; count them by kind."""
        dice = random.Random(seed)
        made = collections.Counter()
        for _ in range(rounds):
            fleet, nova, flavors = a_fleet(dice)
            for flavor in flavors:
                try:
                    guest = compiled_flavor.make(flavor)
                except exception.InvalidInput:
                    continue
                if any(item.fits for item in verdict.judge(guest, fleet)):
                    continue
                for host in nova.values():
                    self.assertFalse(host.would_take(shown(flavor)))
                for change in changes.nearest(guest, fleet.hosts):
                    self.assert_accepts(nova, flavor, change)
                    made[re.sub(r'\b[hi]?\d+ ?|(?<= )$', '', change.what)
                         .strip()] += 1
        return made

    def assert_accepts(self, nova, flavor, change):
        before = {name: host.snapshot() for name, host in nova.items()}
        wanted = shown(flavor) if change.guest is None else {
            **shown(flavor), 'vcpus': change.guest.shape.cpus,
            'ram_mib': change.guest.shape.memory_mib,
            'extra_specs': codec.encode(change.guest.shape)}
        if change.pages is not None:
            change_pages(nova[change.host], change.pages)
        for move in change.moves:
            moving = nova[move.source].running[move.id].flavor
            self.assertEqual(list(move.cells),
                             nova[move.target].take(moving).cells)
            nova[move.source].stop(move.id)
        claimed = nova[change.host].take(wanted)
        self.assertIsNotNone(claimed, change.what)
        self.assertEqual(list(change.cells), claimed.cells, change.what)
        for name, kept in before.items():
            nova[name].restore(kept)


def change_pages(host, pages):
    """Turn free small pages of a cell into huge ones."""
    host.topology = host.topology.obj_clone()
    cell = next(cell for cell in host.topology.cells
                if cell.id == pages.cell)
    for pool in cell.mempages:
        if pool.size_kb == pages.size_kib:
            pool.total += pages.more
        elif pool.size_kb == pages.small_kib:
            pool.total -= pages.fewer_small


def a_fleet(dice):
    """Let instances come and go on two or three hosts.

    :returns: the fleet, the same hosts in Nova, and flavors to ask for
    """
    machines = fleets.machines(dice, dice.choice((2, 3)))
    document, flavors = fleets.plan_of(machines)
    for config in document['host_config'].values():
        for sizes in config['pages'].values():
            # Leave small pages to make huge ones of.
            sizes['2048'] = sizes['2048'] * 2 // 3
            sizes['4'] = sizes.get('4', 0) + sizes['2048'] // 2 * 512
    nova = planned_nova.compute_hosts(machines, document)
    planned_nova.come_and_go(dice, nova, document['flavors'],
                             dice.randrange(4, 30), leaving=0.3)
    fleet = planned_nova.read_fleet(machines, document, nova)
    return fleet, nova, [*flavors, *(
        variant(dice, flavor) for flavor in flavors for _ in range(2))]


def variant(dice, flavor):
    """Ask for something else than what was planned."""
    specs = {key: value for key, value in flavor.extra_specs.items()
             if not key.startswith(('hw:cpu_sockets', 'hw:cpu_cores',
                                    'hw:cpu_threads', 'hw:cpu_max'))}
    kind = dice.randrange(6)
    if kind == 0:
        specs['hw:mem_page_size'] = dice.choice(('large', '4', '1048576'))
    elif kind == 1:
        specs['hw:cpu_thread_policy'] = dice.choice(('require', 'isolate'))
    elif kind == 2:
        specs['hw:emulator_threads_policy'] = 'isolate'
    elif kind == 3 and flavor.vcpus > 2:
        # Unequal cells, the smallest first.
        first = max(flavor.vcpus // 3, 1)
        small = flavor.ram_mib // 3 // 2 * 2
        specs.update({
            'hw:numa_nodes': '2', 'hw:numa_cpus.0': f'0-{first - 1}',
            'hw:numa_cpus.1': f'{first}-{flavor.vcpus - 1}',
            'hw:numa_mem.0': str(small),
            'hw:numa_mem.1': str(flavor.ram_mib - small)})
    elif kind == 4:
        return dataclasses.replace(
            flavor, ram_mib=flavor.ram_mib * 5 // 4 // 64 * 64,
            vcpus=flavor.vcpus, extra_specs=specs)
    return dataclasses.replace(
        flavor, ram_mib=dice.choice((flavor.ram_mib, flavor.vcpus * 64)),
        extra_specs=specs)


def shown(flavor):
    """Write a flavor as the document of a plan does."""
    return {'name': flavor.name, 'vcpus': flavor.vcpus,
            'ram_mib': flavor.ram_mib, 'disk_gib': 0,
            'extra_specs': dict(flavor.extra_specs)}

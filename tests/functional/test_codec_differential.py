# SPDX-License-Identifier: Apache-2.0

"""The codec against Nova's own reading of the same flavors."""

import collections
import random
import unittest

from nova import exception as nova_exception
from nova import objects
from nova.virt import hardware

from hpcvirt import exception
from hpcvirt.model import shape
from hpcvirt.specs import codec
from hpcvirt.specs import vocabulary

CASES = 5000

#: Values worth trying: Nova's own, its borders, and mistakes.
VALUES = {
    'hw:cpu_policy': ('dedicated', 'dedicated', 'shared', 'mixed', 'mixed',
                      '', 'Dedicated'),
    'hw:cpu_thread_policy': ('prefer', 'require', 'isolate', 'pin', ''),
    'hw:cpu_dedicated_mask': ('0', '^0', '0-1', '^0-1', '1-3', '0-7', '2,^3',
                              '^0,2', '0-3,,', ' ^1', '3-1', 'x', '', '^',
                              '0-99', '^1-99', '^3-1', '+0', '^+0', '0-+2',
                              '1_0', '^1_0', '^ 0', '+0--0', '0 - 1', '\u0661',
                              '^70000', '^1-70000', '^^1', '00', '--1',
                              '\N{FULLWIDTH DIGIT SEVEN}'),
    'hw:emulator_threads_policy': ('share', 'isolate', 'isolate', '', 'any'),
    'hw:cpu_realtime': ('true', 'yes', 'false', '1', 'maybe'),
    'hw:cpu_realtime_mask': ('^0', '1-3', '0-3', '0', '^0-1', '0-99', 'no',
                             '', '^+0', '+1-3', '0_1'),
    'hw:numa_nodes': ('1', '2', '2', '3', '4', '0', '-1', '02', ' 2', '',
                      'two', '129', '+2', '1_0', '\u0662'),
    'hw:mem_page_size': ('small', 'large', 'any', '4', '2048', '2MB', '2M',
                         '2MiB', '1GB', '1GiB', '1048576', '2Mb', '2Mbit',
                         '0', '1B', '1023B', '1025B', '.5MB', '2048kB',
                         '2048KB', '2048KiB', '1TB', '', 'huge', '4x', '+2048',
                         '2_048', '+2MB', '2MB\n', '\u0662MB', '\u0664',
                         '\xb2', '002048', '0' * 30 + '4', ' 4'),
    'hw:locked_memory': ('true', 'false', 'perhaps'),
    'hw:pmem': ('a', 'a,b', ',', ''),
    'hw:pci_numa_affinity_policy': ('required', 'preferred', 'socket',
                                    'legacy', 'strict', ''),
    'hw:cpu_sockets': ('1', '2', '3', 'x', '0', '+2', '0_2', ' 1 '),
    'hw:cpu_cores': ('1', '2', '4', '', '8'),
    'hw:cpu_threads': ('1', '2', '4'),
    'hw:cpu_max_sockets': ('1', '2', '16', 'x'),
    'hw:cpu_max_cores': ('1', '2', '16'),
    'hw:cpu_max_threads': ('1', '2', '16'),
    'resources:PCPU': ('2', '4', '5', '0', 'x', '+4', '0_4'),
    'resources1:PCPU': ('4',),
    'resources:VCPU': ('2', '4', '0'),
    'resources_A:PCPU': ('4',),
    'trait:HW_CPU_HYPERTHREADING': ('required', 'forbidden', 'maybe'),
    'trait1:HW_CPU_HYPERTHREADING': ('forbidden',),
    'hw:cpu_dedicated': ('1',),
}


def a_flavor(dice):
    """A random flavor; about half of them are acceptable."""
    vcpus = dice.choice((1, 2, 4, 4, 4, 6, 8))
    ram_mib = dice.choice((1024, 2048, 3000, 4096))
    specs = {}
    for name in dice.sample(sorted(VALUES), dice.randint(0, 5)):
        specs[name] = dice.choice(VALUES[name])
    if dice.random() < 0.3:
        specs.update(some_cells(dice, vcpus, ram_mib))
    return vcpus, ram_mib, specs


def some_cells(dice, vcpus, ram_mib):
    """Guest cells cell by cell, now and then with a mistake."""
    nodes = dice.randint(1, 4)
    specs = {'hw:numa_nodes': str(nodes)}
    cpus = [[] for _ in range(nodes)]
    for cpu in range(vcpus):
        cpus[dice.randrange(nodes)].append(str(cpu))
    for node in range(nodes):
        last = node == nodes - 1
        size = ram_mib - (nodes - 1) * 256 if last else 256
        specs[f'hw:numa_cpus.{node}'] = ','.join(cpus[node])
        specs[f'hw:numa_mem.{node}'] = str(size)
    if dice.random() < 0.3:
        name = dice.choice(sorted(specs))
        if dice.random() < 0.5:
            del specs[name]
        else:
            specs[name] = dice.choice((
                '0', '1', '0-3', '9', 'x', '256', '+0', '+256', '2_56', '0_1',
                ' 256 ', '\u0661', '0' * 20 + '256', '1_', '+0-+1'))
    return specs


def as_nova_reads(vcpus, ram_mib, specs):
    """What Nova makes of a flavor in the calls that its API makes.

    :returns: the fields of a Shape, or None if Nova refuses
    """
    flavor = objects.Flavor(vcpus=vcpus, memory_mb=ram_mib,
                            extra_specs=dict(specs))
    image = objects.ImageMeta(properties=objects.ImageMetaProps())
    try:
        numa = hardware.numa_get_constraints(flavor, image)
        hardware.get_pci_numa_policy_constraint(flavor, image)
        topology = None
        if any(name.startswith(('hw:cpu_s', 'hw:cpu_c', 'hw:cpu_max',
                                'hw:cpu_threads')) for name in specs):
            topology = hardware.get_best_cpu_topology(flavor, image)
    except (nova_exception.NovaException, ValueError):
        # Several refusals are bare ValueErrors, a fault of its own for the
        # API.
        return None
    seen = topology and shape.GuestTopology(
        topology.sockets, topology.cores, topology.threads)
    if numa is None:
        return (), None, None, None, seen
    cells = tuple(
        (len(cell.pcpuset), len(cell.cpuset), cell.memory,
         cell.pagesize or None) for cell in numa.cells)
    first = numa.cells[0]
    return (cells, first.cpu_policy or 'shared', first.cpu_thread_policy,
            numa.emulator_threads_policy or None, seen)


def as_codec_reads(vcpus, ram_mib, specs):
    try:
        guest = codec.decode(vcpus, ram_mib, specs)
    except exception.InvalidInput as exc:
        return None, exc
    if not guest.cells:
        return ((), None, None, None, guest.topology), None
    cells = tuple((cell.pcpus, cell.vcpus, cell.memory_mib, cell.page_kib)
                  for cell in guest.cells)
    return (cells, guest.cpu_policy, guest.thread_policy,
            guest.emulator_threads, guest.topology), None


class CodecAgainstNovaTest(unittest.TestCase):
    def setUp(self):
        super().setUp()
        objects.register_all()

    def test_every_flavor_is_read_as_nova_reads_it(self):
        self.roll(0)

    def test_periodic_three_more_blocks_of_flavors(self):
        for block in range(1, 4):
            self.roll(block)

    def roll(self, block):
        dice = random.Random(block)
        outcomes = collections.Counter()
        for _ in range(CASES):
            flavor = a_flavor(dice)
            theirs = as_nova_reads(*flavor)
            ours, refusal = as_codec_reads(*flavor)
            self.assertEqual(theirs, ours, f'{flavor}: {refusal}')
            if refusal:
                self.assertTrue(
                    vocabulary.find(refusal.where)
                    or refusal.where in (codec.ALL_CPUS, codec.ALL_MEMORY),
                    f'{refusal} names no key')
            kind = ('refused' if ours is None
                    else 'cells' if ours[0] else 'none')
            outcomes[kind] += 1
        self.assertGreater(outcomes['refused'], CASES // 10)
        self.assertGreater(outcomes['cells'], CASES // 10)
        self.assertGreater(outcomes['none'], CASES // 50)

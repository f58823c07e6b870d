# SPDX-License-Identifier: Apache-2.0

"""Hosts that are alike are found, and odd hosts with what is odd."""

import dataclasses
import json
import random
import unittest

from hpcvirt.model import host as host_model
from hpcvirt.topology.alike import classes
from hpcvirt.topology.alike import differences
from hpcvirt.topology.alike import report
from tests.builders import hosts as shipped
from tests.builders import machines

NPS1, NPS4, GPUS = (
    dataclasses.replace(shipped.named(name), processor='EPYC 7742')
    for name in ('epyc-2s-64c-nps1', 'epyc-2s-64c-nps4',
                 'xeon-2s-20c-smt-8gpu'))


def fleet(host: host_model.Host, number: int = 10) -> list[host_model.Host]:
    return [named(host, f'n{each:03}') for each in range(number)]


def named(host: host_model.Host, name: str) -> host_model.Host:
    return dataclasses.replace(host, name=name)


def with_cell(host: host_model.Host, number: int,
              **changes: object) -> host_model.Host:
    return dataclasses.replace(host, cells=tuple(
        dataclasses.replace(cell, **changes) if cell.id == number else cell
        for cell in host.cells))


def without_smt(host: host_model.Host) -> host_model.Host:
    cells = []
    for cell in host.cells:
        left = frozenset(min(core) for core in cell.siblings)
        cells.append(dataclasses.replace(
            cell, cpus=left,
            siblings=tuple(core & left for core in cell.siblings),
            llc=tuple(cache & left for cache in cell.llc)))
    return dataclasses.replace(host, cells=tuple(cells))


class OddHostsTest(unittest.TestCase):
    def odd(self, host: host_model.Host,
            usual: host_model.Host = NPS4) -> list[tuple[str, str]]:
        """Add one host to a class; return what is odd about it."""
        found = classes.group([named(host, 'odd'), *fleet(usual)])
        self.assertEqual(1, len(found))
        self.assertEqual(10, len(found[0].hosts))
        variant, = found[0].odd
        self.assertEqual(('odd',), variant.hosts)
        return [(item.subject, item.what) for item in variant.differences]

    def test_a_missing_module(self) -> None:
        mib = NPS4.cells[3].memory_mib
        found = self.odd(with_cell(NPS4, 3, memory_mib=mib - 32768, pages=()))
        what = ('cell 3 has 32 GiB less memory: 95.6, not 127.6 GiB (a memory '
                'module may be missing)')
        self.assertEqual([('memory', what)], found)

    def test_smt_off(self) -> None:
        what = 'has 1 thread per core, not 2 (SMT is off)'
        self.assertEqual([('smt', what)], self.odd(without_smt(NPS4)))

    def test_another_number_of_cells_per_socket(self) -> None:
        bare = dataclasses.replace(NPS1, devices=NPS4.devices[:1])
        found = self.odd(bare, dataclasses.replace(
            NPS4, devices=NPS4.devices[:1]))
        what = ('has 2 cells with CPUs, not 8, 1 instead of 4 per socket '
                '(another NPS or SNC setting)')
        self.assertEqual([('cells', what)], found)

    def test_another_processor(self) -> None:
        self.assertEqual(
            [('processor', 'has the processor EPYC 7702, not EPYC 7742')],
            self.odd(dataclasses.replace(NPS4, processor='EPYC 7702')))

    def test_a_card_on_another_cell(self) -> None:
        card = GPUS.devices[0]
        self.assertEqual(0, card.cell)
        moved = dataclasses.replace(card, cell=1, address='0000:f1:00.0')
        (subject, what), = self.odd(dataclasses.replace(
            GPUS, devices=(*GPUS.devices[1:], moved)), GPUS)
        self.assertEqual('devices', subject)
        self.assertRegex(what, r'has .* on cell 0 \(\d\) and cell 1 \(\d\), '
                         r'not on cell 0')

    def test_a_missing_card_and_less_pages(self) -> None:
        pages = tuple(dataclasses.replace(pool, total=7)
                      if pool.size_kib == 2048 else pool
                      for pool in NPS4.cells[0].pages)
        pages = pages if len(pages) > 1 else (
            *pages, host_model.PagePool(2048, 7))
        self.assertEqual([
            ('pages', 'cell 0 has 7 reserved pages of 2 MiB, not 0'),
            ('devices', 'has 1 device 10de:1db1 less')], [
                *self.odd(with_cell(NPS4, 0, pages=pages)),
                *self.odd(dataclasses.replace(
                    GPUS, devices=tuple(
                        device for device in GPUS.devices
                        if device != next(
                            each for each in GPUS.devices
                            if each.vendor_id == '10de'))), GPUS)])

    def test_whatever_keeps_a_host_out_of_a_class_has_words(self) -> None:
        for seed in range(300):
            dice = random.Random(seed)
            host = dataclasses.replace(
                machines.invent(seed)[0],
                processor=dice.choice((None, 'EPYC')))
            other = named(changed(dice, host), 'other')
            apart = len(classes.group([host, other])) > 1
            said = differences.compare_hosts(other, host)
            self.assertEqual(apart, bool(said), (seed, said))
            self.assertEqual(apart,
                             bool(differences.compare_hosts(host, other)))


def changed(dice: random.Random, host: host_model.Host) -> host_model.Host:
    """Change one thing of a host."""
    cell = dice.choice(host.cells)
    core = cell.siblings[0] if cell.siblings else frozenset()
    last = cell.pages[-1]
    device = host.devices[0] if host.devices else host_model.Device(
        '0000:01:00.0', '1000', '1000', None)
    return dice.choice((
        host,
        dataclasses.replace(host, processor='Xeon'),
        dataclasses.replace(host, distances=()),
        dataclasses.replace(host, distances=tuple(
            (99,) * len(host.cells) for _ in host.cells)),
        dataclasses.replace(host, devices=host.devices[1:]),
        dataclasses.replace(host, devices=(dataclasses.replace(
            device, cell=dice.choice(host.cells).id), *host.devices[1:])),
        dataclasses.replace(host, devices=(dataclasses.replace(
            device, total_vfs=5), *host.devices[1:])),
        dataclasses.replace(host, cells=host.cells[:-1]),
        dataclasses.replace(host, unknown=frozenset(
            {dice.choice(list(host_model.Unknown))})),
        with_cell(host, cell.id, memory_mib=cell.memory_mib // 2),
        with_cell(host, cell.id, socket=dice.randint(0, 3)),
        with_cell(host, cell.id, llc=tuple(
            frozenset({cpu}) for cpu in sorted(cell.cpus))),
        with_cell(host, cell.id, pages=(*cell.pages[:-1], dataclasses.replace(
            last, total=last.total + 1))),
        with_cell(host, cell.id, cpus=cell.cpus - core,
                  siblings=cell.siblings[1:],
                  llc=tuple(cache - core for cache in cell.llc)),
        with_cell(host, cell.id, siblings=tuple(
            frozenset({cpu}) for cpu in sorted(cell.cpus))),
    ))


class ClassesTest(unittest.TestCase):
    def test_names_addresses_drivers_and_vfs_do_not_matter(self) -> None:
        card = host_model.Device('0000:41:00.0', '8086', '1572', 0, 64,
                                 'i40e', '154c')
        there = dataclasses.replace(card, address='0000:a1:00.0',
                                    driver='vfio-pci')
        function = host_model.Device('0000:a1:02.0', '8086', '154c', 0)
        first = dataclasses.replace(NPS4, devices=(card,))
        hosts = [*fleet(first, 3), named(dataclasses.replace(
            NPS4, devices=(there, function)), 'z')]
        group, = classes.group(hosts)
        self.assertEqual(('n000', 'n001', 'n002', 'z'), group.hosts)
        self.assertEqual((), group.odd)
        variant, = group.slots
        self.assertEqual(('z',), variant.hosts)
        self.assertIn('at 0000:a1:00.0, not at 0000:41:00.0',
                      variant.differences[0].what)

    def test_the_kernels_share_of_the_memory_does_not_matter(self) -> None:
        mib = NPS4.cells[0].memory_mib
        hosts = [with_cell(named(NPS4, f'n{each}'), 0, pages=(),
                           memory_mib=mib - 40 * each) for each in range(9)]
        hosts = [with_cell(host, 0, pages=()) for host in hosts]
        self.assertEqual(1, len(classes.group(hosts)))

    def test_a_fleet_has_kinds_of_hosts(self) -> None:
        hosts = [*fleet(NPS4, 100), *(named(GPUS, f'g{each}')
                                      for each in range(2)),
                 named(GPUS, 'lonely')]
        hosts[-1] = dataclasses.replace(
            hosts[-1], processor='other', devices=())
        found = classes.group(hosts)
        self.assertEqual([100, 2, 1], [len(each.hosts) for each in found])
        self.assertFalse(any(each.odd for each in found))

    def test_none_of_two_hosts_is_odd(self) -> None:
        found = classes.group([named(NPS4, 'a'),
                               named(without_smt(NPS4), 'b')])
        self.assertEqual([('a',), ('b',)], [each.hosts for each in found])

    def test_the_order_of_the_hosts_does_not_matter(self) -> None:
        hosts = [*fleet(NPS4, 20), named(NPS1, 'x'), named(GPUS, 'y'),
                 named(without_smt(NPS4), 'z'),
                 with_cell(named(NPS4, 'w'), 2, memory_mib=1000, pages=())]
        wanted = classes.group(hosts)
        for seed in range(10):
            random.Random(seed).shuffle(hosts)
            self.assertEqual(wanted, classes.group(hosts))

    def test_reports_have_every_host(self) -> None:
        found = classes.group([*fleet(NPS4, 20), named(NPS1, 'x'),
                               named(without_smt(NPS4), 'z')])
        text = report.table(found, 80)
        plain = json.dumps(report.document(found))
        for name in ('n000', 'n019', 'x', 'z', 'SMT is off'):
            self.assertIn(name, text)
            self.assertIn(name, plain)
        self.assertLessEqual(max(map(len, text.splitlines())), 80)

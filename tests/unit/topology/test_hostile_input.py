# SPDX-License-Identifier: Apache-2.0

"""Any file gives a sound Host or an error of one line.

Real files of every source are changed at random, with fixed seeds, byte by
byte and element by element. Set HPCVIRT_FUZZ to a factor for more cases.
The periodic test has ten times as many.
"""

import copy
import json
import os
import pathlib
import random
import time
import unittest
from typing import Any
from xml.etree import ElementTree

from hpcvirt import exception
from hpcvirt import topology
from hpcvirt.topology import document
from hpcvirt.topology import snapshot
from hpcvirt.topology.draw import diagram
from tests.builders import hosts
from tests.builders import sysfs_files
from tests.builders import wired
from tests.builders import writers

FACTOR = float(os.environ.get('HPCVIRT_FUZZ', '0.5'))
MACHINE = sysfs_files.MACHINES / 'emulated-intel-2x2x2'
SYNTHETIC = sysfs_files.MACHINES / 'synthetic-2x2'
INSPECTED = sysfs_files.HOSTS / 'intel-2s-smt.ironic.json'
SHIPPED = hosts.TOPOLOGIES
TOOLS = sysfs_files.MACHINES.with_name('tools')

REAL = (MACHINE / 'capabilities.xml', MACHINE / 'lstopo.xml',
        SYNTHETIC / 'lstopo-v1.xml',
        sysfs_files.MACHINES / 'synthetic-hbm' / 'lstopo.xml',
        SHIPPED / 'uneven-2s.json', INSPECTED)

NASTY = ('', ' ', '0', '1', '-1', '3', '7', '8', '255', '256', '65535',
         '65536', '4294967295', '18446744073709551616', '9' * 400, '1e9',
         'nan', 'inf', '0x1', '0xf...f', '0xffffffff,,0x0', ',', '0-3', '3-0',
         '0-65535', '^0', 'x', 'KiB', 'EiB', 'PU', 'NUMANode', 'Core',
         'L3Cache', '\u0663', '\u2028', '\x85', 'a b', '../../etc/passwd',
         '%s', '{}', '0000:41:00.0', '0200 [8086:10c9]')

NASTY_VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2 ** 31, 2 ** 63, 10 ** 300, 1.5, 1e400,
    '', 'x', '\ud800', '0', [], {}, [0], [[0]], [True], {'4': 0}, 'a\nb',
    '\x1b[31m', '0000:00:01.0', '0000:18:00.0')


class HostileInputTest(unittest.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.scratch = pathlib.Path(sysfs_files.scratch(self))
        self.sound = self.refused = 0
        self.factor = FACTOR

    def judge(self, path: pathlib.Path, hint: str) -> None:
        """Read a file; expect an error of one line or a sound Host."""
        try:
            host = topology.read(str(path))
        except exception.InvalidInput as exc:
            self.refused += 1
            self.assertNotIn('\n', str(exc), hint)
            self.assertIn(str(self.scratch), str(exc), hint)
            return
        self.sound += 1
        again = snapshot.read(snapshot.dumps(host).encode(), 'again')
        self.assertEqual(host, again, hint)
        drawn = diagram.draw(host, 80)
        self.assertTrue(drawn, hint)
        self.assertTrue(drawn.replace('\n', '').isprintable(), hint)

    def judge_bytes(self, data: bytes, hint: str) -> None:
        path = self.scratch / 'file'
        path.write_bytes(data)
        self.judge(path, hint)

    def test_changed_bytes(self) -> None:
        for path in REAL:
            real = path.read_bytes()
            for seed in range(int(60 * self.factor)):
                dice = random.Random(seed)
                data = bytearray(real)
                for _ in range(dice.choice((1, 1, 1, 2, 5, 50))):
                    _change_bytes(dice, data)
                self.judge_bytes(bytes(data), f'{path.name}, seed {seed}')
        self.assertGreater(self.refused, 50)

    def test_truncated_files(self) -> None:
        for path in REAL:
            real = path.read_bytes().rstrip()
            for seed in range(int(40 * self.factor)):
                cut = random.Random(seed).randrange(len(real))
                self.judge_bytes(real[:cut], f'{path.name}, {cut} bytes')
        self.assertEqual(0, self.sound)

    def test_changed_elements(self) -> None:
        for path in REAL:
            if path.suffix != '.xml':
                continue
            real = document.xml_root(path.read_bytes(), path.name)
            for seed in range(int(40 * self.factor)):
                dice = random.Random(seed)
                root = copy.deepcopy(real)
                for _ in range(dice.choice((1, 1, 2, 4))):
                    _change_element(dice, root)
                self.judge_bytes(
                    ElementTree.tostring(root, encoding='utf-8'),
                    f'{path.name}, seed {seed}')
        self.assertGreater(self.refused, 20)
        self.assertGreater(self.sound, 20)

    def test_changed_values(self) -> None:
        for real in (*(json.loads(path.read_text()) for path in (
                SHIPPED / 'single-1s-8c-smt.json',
                SHIPPED / 'uneven-2s.json', INSPECTED)),
                snapshot.make_json(wired.host())):
            for seed in range(int(250 * self.factor)):
                dice = random.Random(seed)
                plain = copy.deepcopy(real)
                for _ in range(dice.choice((1, 1, 2))):
                    _change_value(dice, plain)
                self.judge_bytes(json.dumps(plain).encode(), f'seed {seed}')
        self.assertGreater(self.refused, 100)

    def test_changed_sysfs(self) -> None:
        emulated = sysfs_files.captured('emulated-intel-2x2x2')
        devices = writers.sysfs(wired.host()) | {
            f'output/{name}': (TOOLS / f'{file}.txt').read_text()
            for name, file in {
                'nvidia-smi-topo': 'dgx-1-topo', 'rocm-smi-bus': 'mi60-bus',
                'nvidia-smi-nvlink': 'v100-nvlink',
                'fmpm': 'hgx-partitions', 'nvidia-smi-modules': 'hgx-modules',
                'rocm-smi-topo': 'mi60-topo',
                'lspci': 'granite-ridge-lspci'}.items()}
        for seed in range(int(40 * self.factor)):
            dice = random.Random(seed)
            files = dict(devices if seed % 2 else emulated)
            for _ in range(dice.choice((1, 1, 2, 6))):
                name = dice.choice(sorted(files))
                kind = dice.random()
                if kind < 0.2:
                    del files[name]
                elif kind < 0.3:
                    files[name] = sysfs_files.Link(dice.choice(
                        ('/etc/passwd', '.', '..', 'no', '/dev/zero')))
                else:
                    files[name] = dice.choice(NASTY)
            root = self.scratch / f'{seed}'
            sysfs_files.lay_out(files, root)
            self.judge(root, f'seed {seed}')
        self.assertGreater(self.refused, 5)
        self.assertGreater(self.sound, 2)

    def test_periodic_more_changes_of_each(self) -> None:
        self.factor = 10 * FACTOR
        for test in (self.test_changed_bytes, self.test_truncated_files,
                     self.test_changed_elements, self.test_changed_values,
                     self.test_changed_sysfs):
            with self.subTest(test.__name__):
                self.sound = self.refused = 0
                test()

    def test_files_meant_to_cost_time_or_memory_do_not(self) -> None:
        self.assert_cost_little(4000)

    def test_periodic_larger_files_do_not_either(self) -> None:
        self.assert_cost_little(20000)

    def assert_cost_little(self, elements: int) -> None:
        cpu = '<cpu id="{0}" socket_id="0" siblings="{1}"/>'
        memory = '<memory>4194304</memory>'
        many = range(elements)
        started = time.process_time()
        for body in (
                ''.join(cpu.format(n, '0-65535') for n in many),
                ''.join(cpu.format(n, ','.join(['0-65535'] * 300))
                        for n in range(300)),
                ''.join(cpu.format(n, n) for n in many)):
            self.judge_bytes((
                '<capabilities><host><topology><cells><cell id="0">'
                f'{memory}<cpus>{body}</cpus></cell></cells></topology>'
                '</host></capabilities>').encode(), body[:80])
        pus = ''.join(f'<object type="PU" os_index="{n}"/>' for n in many)
        nodes = ''.join(f'<object type="NUMANode" os_index="{n}"/>'
                        for n in many)
        core = '<object type="Core">'
        for body in (f'{core}{pus}</object>', nodes + pus, core * 70):
            self.judge_bytes(
                f'<topology><object type="Machine" local_memory="{2 ** 30}">'
                f'{body}</object></topology>'.encode(), body[:80])
        lists = '[' * 900 + ']' * 900
        for text in (f'{{"a": {lists}}}',
                     '{"a": [' + '[],' * (50 * elements) + '[]]}',
                     '{"schema_version": ' + '1' * 4000 + '}'):
            self.judge_bytes(text.encode(), text[:80])
        self.assertLess(time.process_time() - started, 60)


def _change_bytes(dice: random.Random, data: bytearray) -> None:
    place = dice.randrange(len(data) + 1)
    kind = dice.randrange(5)
    if kind == 0 and place < len(data):
        data[place] = dice.randrange(256)
    elif kind == 1:
        data[place:place] = bytes([dice.randrange(256)])
    elif kind == 2:
        del data[place:place + dice.choice((1, 1, 10, 500))]
    elif kind == 3:
        data[place:place] = data[place:place + dice.choice((3, 30, 300))]
    else:
        data[place:place] = dice.choice(NASTY).encode()


def _change_element(dice: random.Random, root: ElementTree.Element) -> None:
    every = [(parent, child) for parent in root.iter() for child in parent]
    if not every:
        return
    parent, child = dice.choice(every)
    kind = dice.randrange(6)
    if kind == 0:
        parent.remove(child)
    elif kind == 1:
        parent.append(copy.deepcopy(child))
    elif kind == 2:
        dice.choice(every)[0].append(copy.deepcopy(child))
    elif kind == 3 and child.attrib:
        del child.attrib[dice.choice(sorted(child.attrib))]
    elif kind == 4 or not child.attrib:
        child.text = dice.choice(NASTY)
    else:
        name = dice.choice(sorted(child.attrib))
        child.set(name, dice.choice(NASTY))


def _change_value(dice: random.Random, plain: Any) -> None:
    inside = plain
    while True:
        keys: list[Any] = (list(inside) if isinstance(inside, dict)
                           else list(range(len(inside))))
        if not keys:
            return
        key = dice.choice(keys)
        deeper = isinstance(inside[key], (dict, list)) and inside[key]
        if deeper and dice.random() < 0.8:
            inside = inside[key]
            continue
        kind = dice.randrange(4)
        if kind == 0:
            del inside[key]
        elif kind == 1 and isinstance(inside, list):
            inside.append(copy.deepcopy(inside[key]))
        else:
            inside[key] = dice.choice(NASTY_VALUES)
        return

# SPDX-License-Identifier: Apache-2.0

"""Files that were damaged at random are read, or refused in one line."""

import random
import unittest

from hpcvirt import exception
from hpcvirt.model import cpuset
from hpcvirt.simulate import read as workloads
from hpcvirt.topology import collection
from tests.builders import folders
from tests.builders import hosts

PIECES = (b'\0', b'\n', b'"', b'{', b'<', b'-1', b'1e999', b'9' * 30, b'\xff',
          b'\x1f\x8b', b'PK\x03\x04', b',', b'^0-65535', b'&a;', b'\t\x1b[2J')


class StrangeFilesTest(unittest.TestCase):
    def setUp(self):
        super().setUp()
        self.path = folders.make(self) / 'file.json'
        self.samples = [path.read_bytes() for path in sorted(
            hosts.TOPOLOGIES.iterdir()) if path.is_file()]
        self.samples.sort(key=len)
        del self.samples[6:]
        self.samples += [
            b'created_at,deleted_at,vcpus,memory_mb\n1,2,4,512\n',
            b'; MaxProcs: 8\n1 0 0 9 4 -1 -1 4 9 -1 1 1 1 1 1 1 -1 -1\n']

    def damage(self, dice):
        data = dice.choice(self.samples)
        for _ in range(dice.randrange(1, 5)):
            place = dice.randrange(len(data) + 1)
            data = (data[:place] + dice.choice((*PIECES, b''))
                    + data[place + dice.choice((0, 1, 9, 99)):])
        return data

    def check(self, seed, cases):
        dice = random.Random(seed)
        refused = 0
        for case in range(cases):
            data = self.damage(dice)
            self.path.write_bytes(data)
            for read in (lambda: list(collection.read(str(self.path))),
                         lambda: workloads.workload(str(self.path)),
                         lambda: cpuset.parse(
                             self.path.read_text('latin-1'))):
                try:
                    read()
                except exception.InvalidInput as exc:
                    refused += 1
                    self.assertTrue(str(exc).isprintable(), (seed, case))
        self.assertLess(cases // 2, refused)

    def test_500_files(self):
        self.check(1, 500)

    def test_periodic_10000_files(self):
        self.check(2, 10_000)

# SPDX-License-Identifier: Apache-2.0

"""Shards are merged to what a single run gives."""

import json
import pathlib
import tempfile
import unittest

from hpcvirt import exception
from hpcvirt.fleet import guest as guests
from hpcvirt.fleet import state
from hpcvirt.simulate import outcome
from hpcvirt.simulate import scenario
from hpcvirt.simulate import shard
from tests.unit.simulate import replayed
from tests.unit.simulate import small

ASKED = replayed.requested((4,), (0, 1, 0, 1), (1, 1, 0, 1), (2, 1, 0, 1))


def choices(cpus=8, asked=ASKED):
    fleet = state.Fleet((state.FleetHost('n', state.FleetHostState(
        small.host(small.cell(0, cpus)),
        guests.Resources(cpus, 0, 8192))),), {})
    return {'': scenario.Scenario('log', (), fleet, None, (asked,))}


class ShardTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.found = {
            ('', name, 0): outcome.ReplayOutcome(
                name, fates, (outcome.FleetSample(0.5, 1, 2, 3, 4, 5),), 2,
                0.25)
            for name, fates in (
                ('nova', (None, outcome.Cause.PAGES, None)),
                ('hpcvirt', (None,) * 3), ('one bin', (None,) * 3))}

    def part(self, number):
        return dict([*self.found.items()][number - 1::2])

    def write(self, name, found, its=None):
        path = self.folder / name
        path.write_text(json.dumps(shard.dump(found, its or choices())))
        return str(path)

    def merge(self, *paths, its=None):
        return shard.merge(paths, self.found, its or choices())

    def test_what_is_merged_is_what_was_written(self):
        paths = [self.write(f'{number}', self.part(number))
                 for number in (1, 2)]
        for order in (paths, paths[::-1], [*paths, paths[0]]):
            merged = self.merge(*order)
            self.assertEqual(self.found, merged)
            self.assertEqual([*self.found], [*merged])

    def test_a_missing_shard_is_told(self):
        path = self.write('1', self.part(1))
        with self.assertRaisesRegex(
                exception.InvalidInput, 'all of the replay of hpcvirt'):
            self.merge(path)

    def test_shards_of_other_input_are_refused(self):
        for its in (choices(cpus=6), choices(
                asked=replayed.requested((4,), (0, 1, 0, 1), (1, 1, 0, 1),
                                         (2, 2, 0, 1)))):
            path = self.write('other', self.found, its)
            with self.assertRaisesRegex(exception.InvalidInput,
                                        'other: is a shard of other'):
                self.merge(path)
        for text in ('', 'null', '[1]', '{"input": "0"}'):
            (self.folder / 'junk').write_text(text)
            with self.assertRaisesRegex(exception.InvalidInput, 'junk'):
                self.merge(str(self.folder / 'junk'))
        short = {key: outcome.ReplayOutcome('nova', (None,))
                 for key in self.found}
        with self.assertRaisesRegex(exception.InvalidInput, 'no file has'):
            self.merge(self.write('short', short))

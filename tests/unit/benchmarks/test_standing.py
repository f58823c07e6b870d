# SPDX-License-Identifier: Apache-2.0

import csv
import unittest

from tests import pages

ROOT = pages.ROOT
BENCHMARKS = ROOT / 'benchmarks'


class TestStandingRoom(unittest.TestCase):
    """The figures of the pages against the table of replays."""

    def test_the_pages_say_what_the_table_has(self):
        with (BENCHMARKS / 'results' / 'standing_room.csv').open(
                newline='') as file:
            *_, every = csv.DictReader(file)
        page = ' '.join((BENCHMARKS / 'README.rst').read_text().split())
        for words in ('at a refusal', 'beforehand', 'every tenth'):
            gain = every[f'Gained {words}'].split()[0].lstrip('+')
            moves = every[f'Moves {words}']
            self.assertIn(f'{gain} points for {moves} moves', page)
            if words == 'beforehand':
                self.assertIn(
                    f'gain {gain} points of the requested core-hours for '
                    f'{moves} moves',
                    ' '.join(pages.read('admin/make-room').split()))

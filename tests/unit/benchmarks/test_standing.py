# SPDX-License-Identifier: Apache-2.0

import csv
import unittest

from tests import pages

ROOT = pages.ROOT
REFERENCE = ROOT / 'doc' / 'source' / 'reference'


class TestStandingRoom(unittest.TestCase):
    """The figures of the page against the table of replays."""

    def test_the_page_says_what_the_table_has(self):
        with (REFERENCE / 'standing_room.csv').open(newline='') as file:
            *_, every = csv.DictReader(file)
        page = ' '.join(pages.read('reference/standing-room').split())
        for words in ('at a refusal', 'beforehand', 'every tenth'):
            gain = every[f'Gained {words}'].split()[0].lstrip('+')
            moves = every[f'Moves {words}']
            self.assertIn(f'{gain} points for {moves} moves', page)

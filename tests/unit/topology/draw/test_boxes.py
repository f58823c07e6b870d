# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt.topology.draw import boxes


class BoxTest(unittest.TestCase):
    def test_a_box_has_its_title_above_the_lines(self) -> None:
        self.assertEqual(['┌─ title ──┐',
                          '│ a line   │',
                          '│ a longer │',
                          '└──────────┘'],
                         boxes.box('title', ['a line', 'a longer']))

    def test_a_box_is_as_wide_as_its_title_or_as_asked(self) -> None:
        self.assertEqual(['┏━ title ━┓', '┃ a       ┃', '┗━━━━━━━━━┛'],
                         boxes.box('title', ['a'], boxes.HEAVY))
        self.assertEqual({20}, set(map(len, boxes.box('t', ['a'], width=20))))

    def test_every_line_of_a_box_is_equally_long(self) -> None:
        for title in ('', 'a', 'a longer title'):
            for lines in ([], [''], ['a'], ['a', 'a much longer line']):
                for width in (0, 2, 10, 30):
                    drawn = boxes.box(title, lines, width=width)
                    self.assertEqual(1, len(set(map(len, drawn))), drawn)


class SideBySideTest(unittest.TestCase):
    def test_blocks_are_side_by_side_if_there_is_room(self) -> None:
        self.assertEqual(['aa  b', 'aa  c', 'dd'.ljust(5)],
                         boxes.side_by_side(
                             [['aa', 'aa'], ['b', 'c'], ['dd']], 7))

    def test_a_block_that_is_too_wide_gets_its_own_row(self) -> None:
        self.assertEqual(['a   ', 'bbbb', 'c   '],
                         boxes.side_by_side([['a'], ['bbbb'], ['c']], 3))

    def test_boxes_in_a_row_are_equally_high(self) -> None:
        self.assertEqual(
            ['┌───┐  ┌───┐',
             '│ a │  │ b │',
             '│ a │  │   │',
             '└───┘  └───┘'],
            boxes.side_by_side([boxes.box('', ['a', 'a']),
                                boxes.box('', ['b'])], 80))

    def test_no_blocks_make_no_rows(self) -> None:
        self.assertEqual([], boxes.side_by_side([], 80))


class WrapTest(unittest.TestCase):
    def test_lines_are_filled_and_indented(self) -> None:
        words = ['aa', 'bb', 'cc', 'dddddddd', 'e']
        self.assertEqual(['aa bb', '  cc', '  dddddddd', '  e'],
                         boxes.wrap(words, 5, '  '))

    def test_no_words_are_no_lines(self) -> None:
        self.assertEqual([], boxes.wrap([], 5))


class PlainTest(unittest.TestCase):
    def test_only_ascii_remains(self) -> None:
        drawn = '\n'.join(boxes.box('a · b', ['…', 'é'], boxes.HEAVY))
        self.assertEqual('+= a . b =+\n| .       |\n| ?       |\n+=========+',
                         boxes.plain(drawn))

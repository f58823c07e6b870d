# SPDX-License-Identifier: Apache-2.0

import random
import unittest

from hpcvirt import text_table

HEADINGS = ('Study', 'Title', 'Cases')
ROWS = (('S1', 'Memory virtualization; page size', '4'),
        ('S22', 'One guest per socket', '16'))


def draw(rows=ROWS, **more):
    return text_table.draw(HEADINGS, rows, {'Cases'}, **more)


class TextTableTest(unittest.TestCase):
    def test_text_is_aligned_left_and_numbers_are_aligned_right(self):
        self.assertEqual(
            'Study  Title                             Cases\n'
            '------ --------------------------------- -----\n'
            'S1     Memory virtualization; page size      4\n'
            'S22    One guest per socket                 16\n', draw())

    def test_a_narrow_table_wraps_text_between_words(self):
        self.assertEqual(
            'Study  Title             Cases\n'
            '------ ----------------- -----\n'
            'S1     Memory                4\n'
            '       virtualization;\n'
            '       page size\n'
            'S22    One guest per        16\n'
            '       socket\n', draw(width=30))

    def test_every_word_is_there_at_any_width(self):
        words = sorted(word for row in (HEADINGS, *ROWS)
                       for cell in row for word in cell.split())
        for width in range(1, 60):
            lines = draw(width=width).splitlines()
            del lines[1]
            self.assertEqual(words, sorted(' '.join(lines).split()), width)
            if width >= 29:
                self.assertLessEqual(max(map(len, lines)), width)

    def test_the_widest_column_is_narrowed_first(self):
        text = text_table.draw(
            ('Name', 'Long', 'Short'),
            [('n', 'some words that take much room', 'two words')], width=40)
        self.assertIn('two words', text)
        self.assertLessEqual(max(map(len, text.splitlines())), 40)

    def test_names_and_numbers_are_not_wrapped(self):
        text = text_table.draw(('Name', 'Range'), [('a b c', '1 +/- 2')],
                               {'Range'}, 5)
        self.assertIn('a b c  1 +/- 2\n', text)

    def test_a_row_may_be_shorter_and_a_table_may_have_no_rows(self):
        self.assertIn('\nS3\n', draw([('S3',), *ROWS]))
        self.assertEqual(2, draw([]).count('\n'))

    def test_cells_are_shown_as_they_are(self):
        cells = ('[red]x[/red]', ':smile:', '10.0.0.1', '/a\\b')
        text = text_table.draw(('A', 'B', 'C', 'D'), [cells])
        self.assertEqual(cells, tuple(text.splitlines()[2].split()))

    def test_output_is_ascii_without_spaces_at_the_end(self):
        chance = random.Random(1)
        for _ in range(50):
            rows = [[''.join(chance.choices('ab c', k=chance.randrange(30)))
                     for _ in HEADINGS] for _ in range(4)]
            text = draw(rows, width=chance.randrange(20, 90))
            self.assertTrue(text.isascii())
            for line in text.splitlines():
                self.assertEqual(line.rstrip(), line)

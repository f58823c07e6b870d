# SPDX-License-Identifier: Apache-2.0

"""The messages that pages explain are messages of the code."""

import ast
import csv
import re
import unittest

from hpcvirt.fit import reasons
from tests import pages

TROUBLESHOOTING = pages.read('admin/troubleshooting')
REFUSALS = pages.path('reference/refusal-messages').with_suffix('.csv')
#: Stands for a value in a message.
VALUE = '\0'
#: A letter that stands for a value on the page of refusals.
LETTER = re.compile(r'\b[A-Z]\b')


def headings(text):
    """The headings below the section about Nova's own messages."""
    own = text[text.index('The log of nova-scheduler says'):]
    return re.findall(r'^(.+)\n~+$', own, re.MULTILINE)


def strings():
    """All strings of hpcvirt, with their values left open."""
    for path in (pages.ROOT / 'hpcvirt').rglob('*.py'):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.JoinedStr):
                yield ''.join(part.value if isinstance(part, ast.Constant)
                              else VALUE for part in node.values)
            elif isinstance(node, ast.Constant) and isinstance(
                    node.value, str):
                yield re.sub(r'%\(\w+\)s|%\(\w+\)d|%s', VALUE, node.value)


def is_shown(message, text):
    """Whether the parts of a message stand in a text, in this order."""
    parts = [re.escape(part.strip()) for part in message.split('...')]
    return re.search('.*'.join(parts), text) is not None


class TroubleshootingTest(unittest.TestCase):
    def test_each_heading_is_a_message_of_the_code(self):
        known = ''.join(f'{text}\n' for text in strings() if len(text) < 2000)
        found = headings(TROUBLESHOOTING)
        self.assertGreater(len(found), 10)
        for heading in found:
            with self.subTest(heading):
                self.assertTrue(is_shown(heading, known))

    def test_warnings_of_the_scheduler_are_explained(self):
        for path in (pages.ROOT / 'hpcvirt' / 'nova').glob('*.py'):
            for node in ast.walk(ast.parse(path.read_text())):
                if (isinstance(node, ast.Call)
                        and ast.unparse(node.func) == 'LOG.warning'):
                    message = node.args[0].value
                    self.assertTrue(
                        any(is_shown(heading, re.sub(r'%\(\w+\)\w|%s', VALUE,
                                                     message))
                            for heading in headings(TROUBLESHOOTING)),
                        message)


class RefusalsTest(unittest.TestCase):
    def setUp(self):
        super().setUp()
        with REFUSALS.open(newline='') as file:
            _, *rows = csv.reader(file)
        self.shown = [message for _, cell, _ in rows
                      for message in re.findall(r'\*(.*?)\*', cell)]
        self.known = {
            code: re.sub(r'\{.*?\}', 'X', template)
            for code, template in reasons._MESSAGES.items()}

    def codes(self, message):
        """The reasons whose message a page shows, perhaps its beginning."""
        pattern = LETTER.sub('.+', re.escape(message))
        return {code for code, text in self.known.items()
                if re.match(pattern, text)}

    def test_each_message_of_the_page_is_one_of_the_filter(self):
        self.assertGreater(len(self.shown), 30)
        for message in self.shown:
            with self.subTest(message):
                self.assertTrue(self.codes(message))

    def test_each_message_of_the_filter_is_on_the_page(self):
        explained = set().union(*map(self.codes, self.shown))
        self.assertEqual(set(), set(self.known) - explained)

# SPDX-License-Identifier: Apache-2.0

"""The messages of the fit engine."""

import string
import unittest

from hpcvirt.fit import reasons


class MessagesTest(unittest.TestCase):
    def test_every_code_has_a_message_and_a_name_for_counting(self):
        for code in reasons.Code:
            self.assertIn(code, reasons._MESSAGES)
            self.assertIn(code, reasons.KINDS)

    def test_messages_are_one_line_without_a_full_stop(self):
        for message in (*reasons._MESSAGES.values(),
                        *reasons._MESSAGES_FOR_ONE.values()):
            self.assertEqual(1, len(message.splitlines()))
            self.assertFalse(message.endswith('.'))

    def test_a_message_is_formatted_only_when_it_is_read(self):
        class Loud:
            def __format__(self, _spec):
                raise AssertionError('formatted')
        misfit = reasons.Misfit(reasons.Code.FREE_PCPUS, {
            'cell': 0, 'free': 1, 'needed': Loud()})
        with self.assertRaises(AssertionError):
            str(misfit)

    def test_one_of_a_thing_is_not_written_in_the_plural(self):
        details = {'cell': 2, 'total': 0, 'free': 0, 'needed': 1,
                   'size': 1 << 20, 'limit': 0.5, 'request': 'vf',
                   'resource': 'PCPU', 'which': 'free', 'defect': 'M'}
        # Several cells are needed, or they would not be too few.
        several = {reasons.Code.TOO_FEW_CELLS, reasons.Code.CELLS_CONTENDED}
        messages = {str(reasons.Misfit(code, details))
                    for code in set(reasons.Code) - several
                    if '{needed}' in reasons._MESSAGES[code]}
        self.assertIn('cell 2 has no free page of 1048576 KiB', messages)
        self.assertIn('the host has no free PCI device for request vf',
                      messages)
        for message in messages:
            if 'MiB' not in message:
                self.assertNotRegex(message, r'\b1 \w+s\b|of the 1\b')

    def test_cells_are_named_in_their_number(self):
        self.assertEqual(['no cell', 'cell 4', 'cells 2, 0'],
                         [*map(reasons.cells, ([], [4], [2, 0]))])

    def test_placeholders_of_a_message_are_plain_names(self):
        for message in (*reasons._MESSAGES.values(),
                        *reasons._MESSAGES_FOR_ONE.values()):
            for _, field, _, _ in string.Formatter().parse(message):
                self.assertTrue(field is None or field.isidentifier())


class CountingTest(unittest.TestCase):
    def obstacle(self, code, cell):
        return reasons.Misfit(code, {'cell': cell, 'free': 0, 'needed': 1,
                                     'size': 4})

    def test_a_host_is_counted_by_what_most_of_its_cells_lack(self):
        misfit = reasons.refuse_host(0, 3, [
            self.obstacle(reasons.Code.FREE_PCPUS, 2),
            self.obstacle(reasons.Code.FREE_PAGES, 1),
            self.obstacle(reasons.Code.FREE_PCPUS, 0)])
        self.assertEqual(reasons.Code.FREE_PCPUS, misfit.root)
        self.assertEqual([0, 1, 2], [cause.details['cell']
                                     for cause in misfit.causes])

    def test_a_refusal_without_causes_is_counted_by_itself(self):
        self.assertEqual(reasons.Code.NO_TOPOLOGY,
                         reasons.Misfit(reasons.Code.NO_TOPOLOGY).root)

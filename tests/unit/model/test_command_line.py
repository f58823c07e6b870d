# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt.model import command_line


class SplitTest(unittest.TestCase):
    def test_parameters_are_divided_as_the_kernel_does_it(self):
        # Documentation/admin-guide/kernel-parameters.rst, and next_arg of
        # lib/cmdline.c: a quote without an end goes to the end of the line,
        # and a single quote is a letter.
        for text, words in (
                ('root=/dev/sda ro\n', ('root=/dev/sda', 'ro')),
                ('dyndbg="file ec.c +p" quiet', ('dyndbg=file ec.c +p',
                                                 'quiet')),
                ('"a=b c" d', ('a=b c', 'd')),
                ('a="b c d', ('a=b c d',)),
                ("a='b c'", ("a='b", "c'")),
                ('a -- b', ('a',)),
                ('', ())):
            with self.subTest(text):
                self.assertEqual(words, command_line.split(text))

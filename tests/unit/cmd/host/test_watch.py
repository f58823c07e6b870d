# SPDX-License-Identifier: Apache-2.0

import unittest

from tests.builders import commands


class WatchTest(unittest.TestCase):
    """The arguments of ``hpcvirt host watch``."""

    def test_bad_input_is_one_line(self):
        for said, words in (
                ('one of them is needed', ()),
                ('--interval', ('--interval=0', '--serve')),
                ('--dedicated', ('--dedicated=x', '--serve')),
                ('is not an address', ('--serve=x:y',)),
                ('cannot be written', ('--textfile=/nowhere/x.prom',))):
            commands.check_refused(
                self, said, commands.run('host', 'watch', *words))

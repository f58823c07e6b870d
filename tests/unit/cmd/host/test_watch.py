# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""The arguments of ``hpcvirt host watch``."""

import contextlib
import io
import pathlib
import tempfile
import unittest

from hpcvirt.cmd import main


class WatchTest(unittest.TestCase):

    def test_bad_input_is_one_line(self):
        folder = pathlib.Path(self.enterContext(
            tempfile.TemporaryDirectory()))
        (folder / 'empty').write_text('')
        (folder / 'frames').write_text('{}\n')
        for words in ((f'--replay={folder}/frames',), ('--interval=0',),
                      (f'--replay={folder}/empty',), (f'--replay={folder}',),
                      ('--dedicated=x',), ('--replay=/nowhere',),
                      ('--usual=/nowhere',), ('--replay=a', '--record=b')):
            out, errors = io.StringIO(), io.StringIO()
            with (contextlib.redirect_stdout(out),
                  contextlib.redirect_stderr(errors)):
                status = main.main(('host', 'watch', *words))
            self.assertEqual((2, '', 1), (
                status, out.getvalue(), errors.getvalue().count('\n')),
                (words, errors.getvalue()))

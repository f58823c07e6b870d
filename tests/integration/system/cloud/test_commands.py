# SPDX-License-Identifier: Apache-2.0

import os
import sys

from tests.system.cloud import commands
from tests.system.cloud import errors
from tests.unit.system.cloud import cloud_case


class CommandsTest(cloud_case.CloudCase):
    def run_script(self, script, **options):
        commands.run(self.settings, 'one', ['sh', '-c', script], **options)

    def failure(self, script, **options):
        with self.assertRaises(errors.ServiceError) as caught:
            self.run_script(script, **options)
        return str(caught.exception)

    def test_output_is_appended_to_the_log(self):
        self.run_script('echo first')
        self.run_script('cat', text='second')
        self.assertEqual('first\nsecond',
                         (self.settings.log / 'one.log').read_text())

    def test_failure_quotes_only_its_own_output(self):
        self.run_script('echo before')
        text = self.failure('echo reason; exit 3')
        self.assertIn('status 3', text)
        self.assertIn('reason', text)
        self.assertNotIn('before', text)

    def test_program_that_takes_too_long_is_killed(self):
        self.assertIn('did not end within 0 s',
                      self.failure('exec sleep 60', limit_s=0.1))

    def test_error_of_the_watch_ends_the_program(self):
        def watch():
            raise errors.CloudError('a service ended')
        self.assertRaisesRegex(errors.CloudError, 'a service ended',
                               self.run_script, 'exec sleep 60', watch=watch)

    def test_arguments_of_a_script_are_not_those_of_its_process(self):
        (self.settings.venv / 'bin').mkdir(parents=True)
        os.symlink(sys.executable, self.settings.program('python'))
        script = self.path / 'script'
        script.write_text('import pathlib, sys\n'
                          'print(sys.argv[1:], __name__)\n'
                          'print(pathlib.Path("/proc/self/cmdline")'
                          '.read_bytes().count(b"pa55"))\n')
        commands.run_unseen(self.settings, 'two', [str(script), 'pa55', 'b'])
        self.assertEqual("['pa55', 'b'] __main__\n0\n",
                         (self.settings.log / 'two.log').read_text())

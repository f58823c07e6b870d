# SPDX-License-Identifier: Apache-2.0

"""Runs of tests: how often they are imported, and how they end badly."""

import contextlib
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest
from unittest import mock

from hpcvirt import waiting
from tests.builders import processes
from tools import run_tests

ROOT = pathlib.Path(__file__).parents[3]


class RunTestsTest(unittest.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.environment = {**os.environ, 'PYTHONPATH': str(ROOT),
                            'OS_TEST_TIMEOUT': '2'}
        # The tests of this environment have been given a folder, and an
        # interpreter that measures coverage or copies itself.
        for name in ('TMPDIR', 'PYTHON', 'HPCVIRT_TEST_SOCKET'):
            self.environment.pop(name, None)

    def run_tests(self, content: str, workers: int = 1,
                  status: int = 1) -> str:
        """Run a module of tests.

        :param content: the classes of the module
        :param status: the exit status to expect
        :returns: the output, the failures and the slowest tests
        """
        folder = self.folder = pathlib.Path(
            self.enterContext(tempfile.TemporaryDirectory()))
        package = folder / 'hanging'
        package.mkdir()
        (package / '__init__.py').write_text('import tests\n')
        (package / 'test_it.py').write_text(
            'import os\nimport signal\nimport time\n'
            'import unittest\n' + textwrap.dedent(content))
        done = subprocess.run(
            [sys.executable, ROOT / 'tools/run_tests.py', 'it', 'hanging',
             '--concurrency', str(workers)],
            cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            check=False, text=True, timeout=300, env=self.environment)
        self.assertEqual(status, done.returncode, done.stdout)
        return ''.join([done.stdout, *(
            (folder / f'.stestr/it.{name}').read_text()
            for name in ('failures', 'slowest'))])

    def import_tests(self, beginning: str) -> list[pathlib.Path]:
        """Run two tests with two workers.

        :returns: the folder of temporary files at each import of the tests
        """
        text = self.run_tests(textwrap.dedent(beginning) + textwrap.dedent("""
            import tempfile
            with open('imports', 'a') as file:
                print(tempfile.gettempdir(), file=file)

            class OneTest(unittest.TestCase):
                def test_it(self):
                    pass

            class TwoTest(unittest.TestCase):
                def test_it(self):
                    pass
            """), workers=2, status=0)
        self.assertIn('\nit: 2 passed, 0 failed, 0 skipped\n', text)
        self.assertIn(' - Worker 1 (1 tests) => ', text)
        return [pathlib.Path(line) for line in
                (self.folder / 'imports').read_text().splitlines()]

    def test_several_workers_import_the_tests_once(self) -> None:
        self.assertEqual(1, len(self.import_tests('')))

    def test_a_process_with_threads_is_not_copied(self) -> None:
        places = self.import_tests("""
            import threading
            threading.Thread(target=time.sleep, args=(0.5,)).start()
            """)
        self.assertEqual(3, len(places))
        self.assert_in_memory(places)

    def assert_in_memory(self, places: list[pathlib.Path]) -> None:
        """Check that tests write into one folder, which goes at the end."""
        with mock.patch.dict(os.environ):
            os.environ.pop('TMPDIR', None)
            memory = run_tests.choose_folder(run_tests.MEMORY)
        if memory:
            self.assertEqual({pathlib.Path(memory)},
                             {place.parent for place in places})
            self.assertEqual(1, len(set(places)))
            self.assertFalse(places[0].exists())

    def test_a_worker_that_dies_fails_its_test(self) -> None:
        text = self.run_tests("""
            class OneTest(unittest.TestCase):
                def test_it(self):
                    os.kill(os.getpid(), signal.SIGKILL)

            class TwoTest(unittest.TestCase):
                def test_it(self):
                    pass
            """, workers=2)
        self.assertIn('\nfail: hanging.test_it.OneTest.test_it\n', text)
        self.assertIn('\nit: 1 passed, 1 failed, 0 skipped\n', text)

    def test_a_test_that_hangs_fails_and_others_run(self) -> None:
        text = self.run_tests("""
            class HangingTest(unittest.TestCase):
                def test_one(self):
                    time.sleep(3600)

                def test_two(self):
                    pass
            """)
        self.assertIn('\nfail: hanging.test_it.HangingTest.test_one\n', text)
        self.assertIn('\nit: 1 passed, 1 failed, 0 skipped\n', text)
        self.assertIn('HangingTest.test_one did not end within 2 s', text)
        self.assertIn('time.sleep(3600)', text)
        # The slowest test is first.
        self.assertRegex(
            text, r'\n\d+ hanging\.test_it\.HangingTest\.test_one\n'
            r'\d+ hanging\.test_it\.HangingTest\.test_two\n')

    def test_a_process_that_does_not_listen_to_signals_ends(self) -> None:
        text = self.run_tests("""
            from tests import limit
            limit.GRACE_S = 1

            class HangingTest(unittest.TestCase):
                def test_one(self):
                    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
                    time.sleep(3600)
            """)
        self.assertIn('\nfail: hanging.test_it.HangingTest.test_one\n', text)
        self.assertIn('Timeout (0:00:03)!', text)
        self.assertRegex(text, r'test_it.py", line \d+ in test_one')

    def test_a_process_that_dies_ends_the_run(self) -> None:
        text = self.run_tests("""
            class DyingTest(unittest.TestCase):
                def test_one(self):
                    os._exit(0)
            """)
        self.assertIn('\nfail: hanging.test_it.DyingTest.test_one\n', text)

    def test_a_run_without_output_ends_with_its_processes(self) -> None:
        shown = io.TextIOWrapper(io.BytesIO())
        with contextlib.redirect_stdout(shown):
            status = run_tests.run(
                ('sh', '-c', 'sleep 3600 & echo $!; exit 0'), 3)
            shown.flush()
        self.assertEqual(1, status)
        child, why = shown.buffer.getvalue().decode().splitlines()
        self.assertEqual('no test has ended for 3 s', why)
        self.assertTrue(waiting.poll(
            lambda: processes.has_ended(int(child)), bool, 60, 0.1))

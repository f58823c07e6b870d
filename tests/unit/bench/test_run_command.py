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

"""The command, end to end: a build, jobs in two places, a store, a verdict.

The program that is built is a script that prints what real runs printed: the
native output where it is tied to the CPU that only the native arm is tied to,
the output of an emulated guest elsewhere.
"""

import contextlib
import io
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from hpcvirt.bench import record
from hpcvirt.bench import store
from hpcvirt.cmd import main
from tests.unit.bench import ssh_server

DATA = pathlib.Path(__file__).parents[2] / 'data' / 'bench'

MAKEFILE = """\
ep:
\tmkdir -p bin
\tcp program.sh bin/ep.$(CLASS).x
\tchmod 755 bin/ep.$(CLASS).x
"""

PROGRAM = """\
#!/bin/sh
echo run >> '{trace}'
sleep {seconds}
if [ -e '{broken}' ]; then head -c 300 '{native}'; exit 0; fi
if grep -q 'Cpus_allowed_list:[^0-9]*0$' /proc/self/status; then
  cat '{native}'
else
  cat '{guest}'
fi
"""


class RunCommandTest(unittest.TestCase):

    def setUp(self):
        if os.sched_getaffinity(0) == {0}:
            self.fail('needs a CPU beside CPU 0 to tell the arms apart')
        self.scratch = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.scratch)
        self.source = self.scratch / 'NPB'
        self.source.mkdir()
        (self.source / 'Makefile').write_text(MAKEFILE)
        self.trace = self.scratch / 'trace'
        self.broken = self.scratch / 'broken'
        self.server = self.enterContext(ssh_server.running())

    def words(self, seconds=0.0, pairs=5, native='local'):
        (self.source / 'program.sh').write_text(PROGRAM.format(
            trace=self.trace, seconds=seconds, broken=self.broken,
            native=DATA / 'native_np1' / 'npb_ep.S.out',
            guest=DATA / 'guest_tcg_np1' / 'npb_ep.S.out'))
        words = ['bench', 'run', 'npb-ep/serial', '--where', self.server.url,
                 '--pairs', str(pairs), '--set', f'npb_ser={self.source}',
                 '--set', 'class=S', '--data', str(self.scratch / 'data'),
                 '--format', 'json']
        if native:
            words += ['--native', native]
        if native == 'local':
            words += ['--native-cpus', '0']
        return words

    def run_(self, *words):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main.main(words)
        return status, out.getvalue(), err.getvalue()

    def result(self, *words, status):
        got, out, err = self.run_(*words)
        self.assertEqual(status, got, err)
        return json.loads(out)

    def runs(self):
        return len(self.trace.read_text().split())

    def store(self):
        made = store.Store(f'sqlite:///{self.scratch}/data/bench.sqlite',
                           str(self.scratch / 'data'))
        self.addCleanup(made.close)
        return made

    def test_a_slow_guest_fails(self):
        result = self.result(*self.words(), status=1)
        self.assertEqual('FAIL', result['verdict']['word'])
        ratio = result['verdict']['judgements'][0]['interval']['ratio']
        self.assertLess(ratio, 0.5)
        self.assertEqual(12, self.runs())

    def test_a_machine_beside_itself_does_not_fail(self):
        result = self.result(*self.words(native=self.server.url), status=0)
        self.assertEqual('PASS', result['verdict']['word'])
        self.assertEqual('aa', result['runs'][0]['purpose'])

    def test_a_broken_output_is_invalid_and_says_why(self):
        self.broken.touch()
        result = self.result(*self.words(), status=1)
        self.assertEqual('INVALID', result['verdict']['word'])
        self.assertIn('12 of 12 samples', result['verdict']['reason'])

    def test_without_native_nothing_is_judged(self):
        result = self.result(*self.words(native=None), status=0)
        arms = {sample['arm'] for sample in result['runs'][0]['samples']}
        self.assertEqual({'guest'}, arms)
        self.assertEqual('unpaired', result['runs'][0]['purpose'])

    def test_raw_outputs_are_kept(self):
        result = self.result(*self.words(pairs=1), status=1)
        sample = result['runs'][0]['samples'][0]
        kept = {raw['name']: self.scratch / 'data' / raw['path']
                for raw in sample['outputs']}
        self.assertIn('EP Benchmark Completed', kept['stdout'].read_text())
        self.assertIn('kernel', sample['environment'])

    def test_nothing_is_left_where_it_ran(self):
        self.result(*self.words(pairs=1), status=1)
        entry = self.store().entries()[0].id
        left = pathlib.Path('/var/tmp').glob(f'hpcvirt-*/{entry}*')
        self.assertEqual([], list(left))

    def test_a_killed_run_goes_on_where_it_stopped(self):
        words = self.words(seconds=0.3)
        process = subprocess.Popen(
            [sys.executable, '-m', 'hpcvirt.cmd.main', *words],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        kept = self.wait_for_samples(4)
        process.send_signal(signal.SIGKILL)
        process.wait()
        result = self.result(*words, status=1)
        samples = result['runs'][0]['samples']
        self.assertEqual(list(range(12)),
                         [sample['position'] for sample in samples])
        self.assertEqual([one.started_at for one in kept],
                         [sample['started_at']
                          for sample in samples[:len(kept)]])
        self.assertEqual('FAIL', result['verdict']['word'])
        # The job that ran when its runner died was waited for.
        self.assertEqual(12, self.runs())

    def test_a_cut_connection_loses_nothing(self):
        words = self.words(seconds=0.2)
        process = subprocess.Popen(
            [sys.executable, '-m', 'hpcvirt.cmd.main', *words],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.wait_for_samples(2)
        self.server.cut()
        self.wait_for_samples(6)
        self.server.cut()
        out, _ = process.communicate()
        self.assertEqual('FAIL', json.loads(out)['verdict']['word'])
        self.assertEqual(12, self.runs())

    def wait_for_samples(self, number):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if (self.scratch / 'data' / 'bench.sqlite').exists():
                kept = self.samples()
                if len(kept) >= number:
                    return kept
            time.sleep(0.05)
        return self.fail('no samples are kept')

    def samples(self) -> tuple[record.Sample, ...]:
        made = self.store()
        entries = made.entries()
        runs = made.result(entries[0].id).runs if entries else ()
        return runs[0].samples if runs else ()

    def test_bad_input_is_one_line_and_leaves_no_trace(self):
        good = self.words()
        for change, said in (
                ({'npb-ep/serial': 'nonsense'}, 'no such benchmark'),
                ({'npb-ep/serial': 'npb-ep/cuda'}, 'no variant'),
                ({'class=S': 'klass=S'}, 'klass'),
                ({'class=S': 'class'}, 'KEY=VALUE'),
                ({'local': 'lokal'}, 'not a place'),
                ({'0': '0-x'}, 'not a CPU number')):
            with self.subTest(change=change):
                words = [change.get(word, word) for word in good]
                status, out, err = self.run_(*words)
                self.assertEqual(2, status)
                self.assertEqual('', out)
                self.assertEqual(1, len(err.splitlines()), err)
                self.assertIn(said, err)
        self.assertFalse((self.scratch / 'data').exists())
        self.assertFalse(self.trace.exists())


class ReportCommandTest(unittest.TestCase):

    def setUp(self):
        self.scratch = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.scratch)

    def report(self, *words):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main.main(['bench', 'report', '--data',
                                str(self.scratch / 'data'), *words])
        return status, out.getvalue(), err.getvalue()

    def test_an_empty_store_is_no_error(self):
        self.assertEqual((0, 'No results yet.\n', ''), self.report())

    def test_a_page_is_whole_and_needs_nothing_from_elsewhere(self):
        page = self.scratch / 'page.html'
        self.assertEqual(0, self.report('--html', str(page))[0])
        text = page.read_text()
        self.assertTrue(text.rstrip().endswith('</html>'))
        for word in ('http://', 'https://', 'src=', '@import', '<link'):
            self.assertNotIn(word, text)

    def test_a_file_that_is_no_report_is_kept(self):
        page = self.scratch / 'thesis.html'
        page.write_text('three years of work')
        status, _, err = self.report('--html', str(page))
        self.assertEqual(2, status)
        self.assertIn('no report', err)
        self.assertEqual('three years of work', page.read_text())

    def test_an_unknown_result_is_named(self):
        status, _, err = self.report('deadbeef')
        self.assertEqual(2, status)
        self.assertIn('deadbeef', err)

# SPDX-License-Identifier: Apache-2.0

"""The base of tests of ``bench run``: a build, two places, a store.

The program that is built is a script that prints what real runs printed: the
native output where it is tied to the CPU that only the native side is tied to,
the output of an emulated guest elsewhere. A checksum of the directory of the
sample is added to the last digits of its rate: equal figures would be copies
of an output.
"""

import contextlib
import json
import os
import pathlib
import signal
import sqlite3
import subprocess
import sys
import time
import unittest
from unittest import mock

from hpcvirt.bench.model import record
from hpcvirt.bench.results import store
from hpcvirt.bench.run import sampler
from tests.builders import commands
from tests.builders import folders
from tests.integration.bench import ssh_server

DATA = pathlib.Path(__file__).parents[2] / 'data' / 'bench'

MAKEFILE = """\
ep:
\tmkdir -p bin
\tcp program.sh bin/ep.$(CLASS).x
\tchmod 755 bin/ep.$(CLASS).x
"""

#: Prints a file with another rate in each sample.
VARY = """\
vary() {{
  digits=$(pwd | cksum | sed 's/ .*//; s/.*\\(....\\)$/\\1/')
  sed "/^ Mop.s total/s/$/$digits/" "$1"
}}
"""

PROGRAM = """\
#!/bin/sh
""" + VARY + """\
echo run >> '{trace}'
sleep {seconds}
if [ -e '{broken}' ]; then head -c 300 '{native}'; exit 0; fi
if grep -q 'Cpus_allowed_list:[^0-9]*0$' /proc/self/status; then
  vary '{native}'
else
  vary '{guest}'
fi
"""


class RunCase(unittest.TestCase):
    def setUp(self):
        if os.sched_getaffinity(0) == {0}:
            self.fail('needs another CPU than CPU 0 to distinguish the sides')
        self.scratch = folders.make(self)
        self.state = self.scratch / 'state'
        self.enterContext(mock.patch.dict(
            os.environ, XDG_STATE_HOME=str(self.state)))
        self.source = self.scratch / 'NPB'
        self.source.mkdir()
        (self.source / 'Makefile').write_text(MAKEFILE)
        self.trace = self.scratch / 'trace'
        self.broken = self.scratch / 'broken'
        # Most programs of the tests end at once.
        self.enterContext(mock.patch.object(sampler, 'FIRST_PAUSE_S', 0.02))
        self.server = self.enterContext(ssh_server.running())

    def list_left(self, name):
        """List what is left of the runs of a result on their machines."""
        return sorted(self.state.glob(f'hpcvirt/run-{name}*'))

    def words(self, seconds=0.0, pairs=5, native='local'):
        (self.source / 'program.sh').write_text(PROGRAM.format(
            trace=self.trace, seconds=seconds, broken=self.broken,
            native=DATA / 'native_np1' / 'npb_ep.S.out',
            guest=DATA / 'guest_tcg_np1' / 'npb_ep.S.out'))
        words = ['bench', 'run', 'npb-ep/serial', '--where', self.server.url,
                 '--host-key', 'accept-new', '--pairs', str(pairs),
                 '--set', f'npb_ser={self.source}',
                 '--set', 'class=S', '--data', str(self.scratch / 'data'),
                 '--format', 'json']
        if native:
            words += ['--native', native]
        if native == 'local':
            # Most tests need no verdict, and few pairs are quicker.
            words += ['--native-cpus', '0', '--no-verdict']
        return words

    def run_(self, *words):
        return commands.run(*words)

    def result(self, *words, status):
        got, out, err = self.run_(*words)
        self.assertEqual(status, got, err)
        return json.loads(out)

    def killed_and_resumed(self, words, number, planned):
        """Kill a run after so many samples, and run it again to its end.

        :param planned: how many samples it has then
        """
        process = subprocess.Popen(
            [sys.executable, '-m', 'hpcvirt.cmd.main', *words],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        kept = self.wait_for_samples(number)
        process.send_signal(signal.SIGKILL)
        process.wait()
        result = self.result(*words, status=1)
        samples = result['runs'][0]['samples']
        self.assertEqual(list(range(planned)),
                         [sample['position'] for sample in samples])
        self.assertEqual([sample.started_at for sample in kept],
                         [sample['started_at']
                          for sample in samples[:len(kept)]])
        return result

    def runs(self):
        return len(self.trace.read_text().split())

    def store(self):
        opened = store.Store(f'sqlite:///{self.scratch}/data/bench.sqlite',
                             str(self.scratch / 'data'))
        self.addCleanup(opened.close)
        return opened

    def wait_for_samples(self, number):
        deadline = time.monotonic() + 150
        while time.monotonic() < deadline:
            if self.count_samples() >= number:
                return self.samples()
            time.sleep(0.05)
        return self.fail('no samples are kept')

    def count_samples(self):
        """Count the samples in the file, which takes less than a store."""
        file = self.scratch / 'data' / 'bench.sqlite'
        # The tables may be being made at this moment.
        with contextlib.suppress(sqlite3.OperationalError), (
                contextlib.closing(sqlite3.connect(
                    f'file:{file}?mode=ro', uri=True))) as opened:
            return opened.execute(
                'SELECT count(*) FROM hpcvirt_samples').fetchone()[0]
        return 0

    def samples(self) -> tuple[record.Sample, ...]:
        opened = self.store()
        entries = opened.entries()
        runs = opened.result(entries[0].id).runs if entries else ()
        opened.close()
        return runs[0].samples if runs else ()

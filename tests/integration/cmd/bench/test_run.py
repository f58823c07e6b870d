# SPDX-License-Identifier: Apache-2.0

"""The command, end to end: a build, jobs in two places, a store, a verdict."""

import json
import pathlib
import re
import signal
import subprocess
import sys
from unittest import mock

from hpcvirt.bench.results import store as stores
from hpcvirt.bench.run import sampler
from tests.builders import commands
from tests.integration.bench import run_case

#: One program for both sides. The rate of the guest changes slowly.
SLOWLY = """\
#!/bin/sh
if grep -q 'Cpus_allowed_list:[^0-9]*0$' /proc/self/status; then
  rate=119.$(pwd | cksum | cut -c 1-4)
else
  echo run >> '{trace}'
  rate=$(awk -v run="$(wc -l < '{trace}')" \\
    'BEGIN {{ printf "%.4f", 119 + 6 * sin(run / 3) }}')
fi
sed "/^ Mop.s/s/=.*/= $rate/" '{output}'
"""


class RunCommandTest(run_case.RunCase):
    def test_a_benchmark_without_a_bound_is_measured_if_that_is_meant(self):
        script = self.scratch / 'script'
        script.write_text('#!/bin/sh\n'
                          'echo "rate: 1.$(pwd | cksum | cut -c 1-4)"\n')
        script.chmod(0o755)
        words = ['bench', 'run', 'site-script',
                 *self.words(pairs=1, native=self.server.url)[3:],
                 '--set', f'script={script}']
        del words[words.index('class=S') - 1:words.index('class=S') + 1]
        place = words.index(f'npb_ser={self.source}')
        del words[place - 1:place + 1]
        commands.check_refused(self, 'site-script: no figure has a bound',
                               self.run_(*words))
        result = self.result(*words, '--no-verdict', status=0)
        self.assertEqual(4, len(result['runs'][0]['samples']))
        self.assertEqual('no figure has a bound',
                         result['verdict']['reason'])

    def test_a_machine_compared_with_itself_does_not_fail(self):
        result = self.result(*self.words(pairs=10, native=self.server.url),
                             status=0)
        self.assertEqual('PASS', result['verdict']['result'])
        self.assertEqual('aa', result['runs'][0]['purpose'])

    def test_an_overhead_replaces_the_bounds(self):
        words = self.words(pairs=10)
        words[words.index('--no-verdict')] = '--this-launch'
        result = self.result(*words, '--overhead', '25%', status=1)
        self.assertEqual('FAIL', result['verdict']['result'])
        [run] = result['runs']
        self.assertEqual(25, run['overhead_percent'])
        self.assertEqual(['mops_total'], list(run['bounds']))
        self.assertEqual(1 / 1.25, run['bounds']['mops_total']['ratio'])

    def test_periodic_a_machine_compared_with_itself_is_labelled_so(self):
        words = self.words(pairs=1, native=self.server.url)
        words[words.index('json')] = 'table'
        self.assertIn('native against native', self.run_(*words)[1])
        page = self.scratch / 'page.html'
        self.run_('bench', 'report', '--data', str(self.scratch / 'data'),
                  '--html', str(page))
        self.assertIn('native against native', page.read_text())

    def test_a_broken_output_is_invalid_and_says_why(self):
        self.broken.touch()
        status, out, err = self.run_(*self.words(pairs=1))
        self.assertEqual(1, status, err)
        verdict = json.loads(out)['verdict']
        self.assertEqual('INVALID', verdict['result'])
        self.assertIn('4 of 4 samples', verdict['reason'])
        where = re.findall(r'INVALID: .*; its outputs are in (\S+)', err)
        self.assertEqual(4, len(where))
        self.assertTrue((pathlib.Path(where[0]) / 'stdout').exists())

    def test_without_native_nothing_is_judged(self):
        result = self.result(*self.words(pairs=1, native=None), status=0)
        sides = {sample['side'] for sample in result['runs'][0]['samples']}
        self.assertEqual({'guest'}, sides)
        self.assertEqual('unpaired', result['runs'][0]['purpose'])

    def test_the_progress_counts_the_samples_of_all_benchmarks(self):
        words = self.words(pairs=1)
        words.insert(2, words[2])
        err = self.run_(*words)[2]
        self.assertEqual([f'{number}/8' for number in range(1, 9)],
                         re.findall(r'^npb-ep serial .*?  (\d+/\d+)  ', err,
                                    re.MULTILINE))
        left = re.findall(r' left(?: for npb-ep)?$', err, re.MULTILINE)
        self.assertEqual({' left', ' left for npb-ep'}, {*left})

    def test_periodic_what_changes_slowly_in_the_guest_is_no_loss(self):
        words = [*self.words(pairs=12), '--this-launch']
        (self.source / 'program.sh').write_text(SLOWLY.format(
            trace=self.trace,
            output=run_case.DATA / 'native_np1' / 'npb_ep.S.out'))
        result = self.result(*words, status=1)
        self.assertEqual('INCONCLUSIVE', result['verdict']['result'])
        page = self.scratch / 'page.html'
        self.run_('bench', 'report', '--data', str(self.scratch / 'data'),
                  '--html', str(page))
        for text in ('the losses resemble those before them (correlation 0.',
                     'relaunches the guest.'):
            self.assertIn(text, page.read_text())

    def test_raw_outputs_are_kept_and_nothing_is_left_where_it_ran(self):
        result = self.result(*self.words(pairs=1), status=1)
        sample = result['runs'][0]['samples'][0]
        kept = {raw['name']: self.scratch / 'data' / raw['path']
                for raw in sample['outputs']}
        self.assertIn('EP Benchmark Completed', kept['stdout'].read_text())
        self.assertIn('kernel', sample['environment'])
        entry = self.store().entries()[0].id
        self.assertEqual([], self.list_left(entry))
        self.assertEqual([], list(self.state.glob('hpcvirt/*')))

    def test_periodic_a_guest_lost_after_the_last_sample_changes_nothing(self):
        add_sample = stores.Store.add_sample

        def add_and_cut(store, run_id, sample):
            add_sample(store, run_id, sample)
            if sample.position == 11:
                self.server.close()
        with (mock.patch.object(stores.Store, 'add_sample', add_and_cut),
              mock.patch.object(sampler, 'CLEAN_S', 0.1)):
            status, out, err = self.run_(*self.words())
        self.assertEqual(1, status, err)
        self.assertEqual('FAIL', json.loads(out)['verdict']['result'])
        self.assertIn('not removed', err)
        self.assertIn('a guest passes in 4 of 5 cases', err)

    def test_periodic_a_usual_run_has_controls_and_its_warm_ups(self):
        result = self.result(*self.words(pairs=10), '--warm-ups', '3',
                             status=1)
        self.assertEqual('FAIL', result['verdict']['result'])
        # Six warm-ups, ten pairs, five of them with a control.
        self.assertEqual(31, len(result['runs'][0]['samples']))
        self.assertEqual(31, self.runs())
        (figure,) = result['verdict']['judgements']
        self.assertAlmostEqual(1, figure['machine']['ratio'], places=1)
        _, out, _ = self.run_('bench', 'report', '--data',
                              str(self.scratch / 'data'))
        self.assertIn('native against native in the same run, 5 pairs',
                      ' '.join(out.split()))
        self.assertIsNotNone(self.store().entries()[0].finished_at)

    def test_periodic_an_interrupted_run_says_what_goes_on(self):
        process = subprocess.Popen(
            [sys.executable, '-m', 'hpcvirt.cmd.main',
             *self.words(seconds=0.6)],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.wait_for_samples(3)
        process.send_signal(signal.SIGINT)
        err = process.communicate()[1].splitlines()
        self.assertEqual(130, process.returncode)
        self.assertIn('continues on its target', err[-1])
        self.assertIn('the same command continues the run', err[-1])
        self.result(*self.words(seconds=0.6), status=1)
        self.assertEqual(12, self.runs())

    def test_periodic_a_missing_program_ends_the_run_at_once(self):
        words = self.words()
        program = self.source / 'program.sh'
        good = program.read_text()
        program.write_text('#!/no/such/shell\n')
        status, out, err = self.run_(*words)
        self.assertEqual((2, ''), (status, out))
        line = err.splitlines()[-1]
        self.assertRegex(line, '^hpcvirt: local: npb-ep could not be started: '
                         '.*No such file .*; its outputs are in .*; finished '
                         'samples are kept, and the same command continues')
        outputs = pathlib.Path(re.search('outputs are in ([^;]*)', line)[1])
        self.assertIn('No such file', (outputs / 'stderr').read_text())
        program.write_text(good)
        result = self.result(*words, status=1)
        self.assertEqual('FAIL', result['verdict']['result'])

    def test_a_killed_run_is_continued(self):
        result = self.killed_and_resumed(self.words(seconds=0.3), 4, 12)
        self.assertEqual('FAIL', result['verdict']['result'])
        # The job that ran when its runner died was waited for.
        self.assertEqual(12, self.runs())

    def test_a_slow_guest_fails_and_a_broken_connection_loses_no_sample(self):
        words = self.words(seconds=0.2)
        process = subprocess.Popen(
            [sys.executable, '-m', 'hpcvirt.cmd.main', *words],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.wait_for_samples(2)
        self.server.cut()
        self.wait_for_samples(6)
        self.server.cut()
        out, _ = process.communicate()
        verdict = json.loads(out)['verdict']
        self.assertEqual('FAIL', verdict['result'])
        ratio = verdict['judgements'][0]['interval']['ratio']
        self.assertLess(ratio, 0.5)
        # A guest that cannot be relaunched is judged in this boot.
        self.assertIn('this boot of the guest alone', verdict['scope'])
        self.assertEqual(12, self.runs())

    def test_bad_input_is_one_line_and_leaves_no_trace(self):
        good = self.words()
        for change, message in (
                ({'npb-ep/serial': 'nonsense'}, 'no such benchmark'),
                ({'npb-ep/serial': 'npb-ep/cuda'}, 'no variant'),
                ({'class=S': 'klass=S'}, 'klass'),
                ({'class=S': 'class'}, 'KEY=VALUE'),
                ({'local': 'lokal'}, 'not a target'),
                ({'0': '0-x'}, 'not a CPU number')):
            with self.subTest(change=change):
                words = [change.get(word, word) for word in good]
                commands.check_refused(self, message, self.run_(*words))
        judged = [word for word in good if word != '--no-verdict']
        commands.check_refused(self, 'the guest cannot be rebooted',
                               self.run_(*judged))
        commands.check_refused(
            self, '5 pairs pass no guest; give --pairs 10, or --no-verdict',
            self.run_(*judged, '--this-launch'))
        self.assertFalse((self.scratch / 'data').exists())
        self.assertFalse(self.trace.exists())

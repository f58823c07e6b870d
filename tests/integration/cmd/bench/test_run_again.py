# SPDX-License-Identifier: Apache-2.0

"""A run that is repeated, or continued after something has changed."""

import json
import subprocess
import sys
from unittest import mock

from hpcvirt import exception
from hpcvirt.bench.results import store as stores
from tests.integration.bench import rebooting
from tests.integration.bench import run_case


def on_changed_machines():
    """Both machines have another kernel."""
    return rebooting.other_file('proc/sys/kernel/osrelease', '7.1')


class RunAgainTest(run_case.RunCase):
    def interrupted(self, words, samples):
        """Lose the store after so many samples."""
        add_sample = stores.Store.add_sample

        def add(store, run_id, sample):
            if sample.position == samples:
                raise exception.Unreachable('the store is gone')
            add_sample(store, run_id, sample)
        with mock.patch.object(stores.Store, 'add_sample', add):
            status, _, err = self.run_(*words)
        self.assertEqual(2, status, err)

    def test_a_further_run_continues_the_evidence(self):
        words = self.words(pairs=3)
        first = self.result(*words, status=1)
        self.assertEqual('INCONCLUSIVE', first['verdict']['result'])
        self.assertEqual([], first['verdict']['judgements'][0]['earlier'])
        second = self.result(*words, status=1)
        (figure,) = second['verdict']['judgements']
        self.assertEqual(('FAIL', 6, ['INCONCLUSIVE']), (
            figure['result'], figure['pairs'], figure['earlier']))
        # Both results are in the store, each with its own samples.
        self.assertEqual([8, 8], [len(result['runs'][0]['samples'])
                                  for result in (first, second)])
        (attempt,) = second['runs'][0]['earlier']
        self.assertEqual(first['runs'][0]['id'], attempt['id'])
        told = 'second attempt; the first was INCONCLUSIVE'
        report = self.run_('bench', 'report', '--data',
                           str(self.scratch / 'data'))[1]
        self.assertEqual(1, ' '.join(report.split()).count(told))
        # A result that was saved is judged by the same evidence.
        saved = self.scratch / 'second.json'
        saved.write_text(json.dumps(second))
        status, out, _ = self.run_('bench', 'compare', str(saved))
        self.assertEqual(1, status)
        self.assertIn('FAIL', out)
        self.assertIn(told, out)

    def test_periodic_stores_that_measure_at_the_same_time_keep_apart(self):
        words = self.words(seconds=0.2, pairs=3)
        other = [*words]
        other[other.index('--data') + 1] = str(self.scratch / 'other')
        process = subprocess.Popen(
            [sys.executable, '-m', 'hpcvirt.cmd.main', *other],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        mine = self.result(*words, status=1)
        theirs = json.loads(process.communicate()[0])
        self.assertEqual(16, self.runs())
        seen = set()
        for result in (mine, theirs):
            (run,) = result['runs']
            self.assertEqual([], run['earlier'])
            samples = [sample['started_at'] for sample in run['samples']]
            self.assertEqual((8, sorted(samples)), (len(samples), samples))
            # The program adds a checksum of its directory to each figure.
            seen |= {sample['outcome']['metrics']['mops_total']['value']
                     for sample in run['samples']}
            self.assertEqual([], self.list_left(run['id']))
        self.assertEqual(16, len(seen))

    def test_a_changed_host_is_not_judged_by_old_evidence(self):
        words = self.words(pairs=1)
        self.result(*words, status=1)
        with on_changed_machines():
            (figure,) = self.result(*words, status=1)['verdict']['judgements']
        self.assertEqual(('INCONCLUSIVE', 1, []), (
            figure['result'], figure['pairs'], figure['earlier']))

    def test_periodic_another_number_of_pairs_is_an_attempt_all_the_same(self):
        self.interrupted(self.words(pairs=5), 6)
        result = self.result(*self.words(pairs=3), status=1)
        # A warm-up and two pairs, then three pairs.
        self.assertEqual(5, result['verdict']['judgements'][0]['pairs'])

    def test_periodic_a_run_on_changed_machines_is_not_continued(self):
        words = self.words()
        self.interrupted(words, 5)
        with on_changed_machines():
            status, out, err = self.run_(*words)
        self.assertEqual(1, status, err)
        self.assertRegex(err, 'result .* is not continued, its samples are '
                         'kept: guest kernel was .* and is 7.1; .*native '
                         'kernel was ')
        (run,) = json.loads(out)['runs']
        self.assertEqual((12, []), (len(run['samples']), run['earlier']))
        # As soon as they are as they were, it is continued.
        result = self.result(*words, status=1)
        self.assertEqual(6 + 12 + 6, self.runs())
        self.assertEqual(12, len(result['runs'][0]['samples']))

    def test_periodic_a_run_with_another_binary_is_not_continued(self):
        words = self.words()
        self.interrupted(words, 5)
        kept = self.samples()
        program = self.source / 'program.sh'
        program.write_text(program.read_text() + '# version 2\n')
        status, _, err = self.run_(*words)
        self.assertEqual(1, status, err)
        self.assertRegex(err, 'is not continued, .*: binary ep.S.x changed')
        self.assertEqual(kept, self.samples())

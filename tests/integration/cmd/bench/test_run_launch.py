# SPDX-License-Identifier: Apache-2.0

"""``bench run --launch``, end to end: cold guests and warm ones."""

import unittest.mock

from hpcvirt import exception
from hpcvirt.bench.results import store as stores
from hpcvirt.bench.run import target
from hpcvirt.cmd.bench import targets
from tests.builders import commands
from tests.integration.bench import rebooting
from tests.integration.bench import run_case


class LaunchTest(run_case.RunCase):
    def setUp(self):
        super().setUp()
        self.guest = rebooting.Guest()
        find = targets.find

        def instead(args, text):
            if text == 'server:hpc-1':
                return target.Target(self.guest, 'hpc-1', 'hpc-1', 'n17',
                                     'hpc.2c', rebooter=self.guest)
            return find(args, text)
        self.enterContext(unittest.mock.patch.object(targets, 'find', instead))

    def words(self, *more, native='local', where='server:hpc-1', pairs=2):
        words = super().words(pairs=pairs, native=native)
        words[words.index('--where') + 1] = where
        return [*words, *more]

    def launches(self, run):
        return [(sample['side'], sample['warm_up'], sample['launch'])
                for sample in run['samples']]

    def test_cold_guests_are_not_warmed_up_and_native_ones_are(self):
        run = self.result(*self.words('--launch', 'cold'), status=1)['runs'][0]
        native, guest = ('native', False, None), ('guest', False, 'cold')
        self.assertCountEqual([('native', True, None), native, guest, guest,
                               native], self.launches(run))
        self.assertEqual('cold', run['launch'])
        self.assertEqual(['sync', 'reboot'] * 2, self.guest.done)

    def test_a_warm_guest_is_relaunched_and_warmed_up_for_each_boot(self):
        run = self.result(*self.words(), status=1)['runs'][0]
        pair = [('native', False, None), ('guest', False, 'warm')]
        found = self.launches(run)
        self.assertEqual([('native', True, None), ('guest', True, None)],
                         found[:2])
        self.assertCountEqual(pair, found[2:4])
        self.assertEqual(('guest', True, None), found[4])
        self.assertCountEqual(pair, found[5:])
        self.assertEqual(['sync', 'reboot'] * 2, self.guest.done)

    def test_periodic_a_run_over_boots_is_continued(self):
        add = stores.Store.add_sample

        def add_and_stop(store, run_id, sample):
            add(store, run_id, sample)
            if sample.position in (4, 14):
                raise exception.Unreachable('no power')
        words = self.words(pairs=16)
        with unittest.mock.patch.object(stores.Store, 'add_sample',
                                        add_and_stop):
            for _ in range(2):
                self.assertEqual(2, self.run_(*words)[0])
        result = self.result(*words, status=1)
        samples = result['runs'][0]['samples']
        self.assertEqual(list(range(len(samples))),
                         [sample['position'] for sample in samples])
        # How many boots there are depends on the time that they take here.
        boots = len({sample['launch_id'] for sample in samples
                     if sample['side'] == 'guest'})
        self.assertEqual(['sync', 'reboot'] * boots, self.guest.done)
        (figure,) = result['verdict']['judgements']
        self.assertEqual(('FAIL', boots),
                         (figure['result'], figure['launches']))
        self.assertEqual(16, figure['pairs'])
        self.assertGreaterEqual(boots, 8)
        # A warm-up in each boot and one natively, five controls.
        self.assertEqual(2 * figure['pairs'] + boots + 1 + 5, len(samples))
        self.assertIn(f'; {boots} were measured', result['verdict']['scope'])

    def test_a_guest_is_judged_as_it_runs_on_request(self):
        words = self.words('--this-launch', pairs=5)
        result = self.result(*words, status=1)
        self.assertEqual([], self.guest.done)
        self.assertIn('this boot of the guest alone',
                      result['verdict']['scope'])
        _, out, _ = self.run_('bench', 'report', '--data',
                              str(self.scratch / 'data'))
        self.assertIn('this boot of the guest alone', ' '.join(out.split()))
        page = self.scratch / 'page.html'
        self.run_('bench', 'report', '--data', str(self.scratch / 'data'),
                  '--html', str(page))
        self.assertIn('this boot of the guest alone', page.read_text())

    def test_both_are_two_runs_that_are_judged_together(self):
        result = self.result(*self.words('--launch', 'both', pairs=1),
                             status=1)
        self.assertEqual(['warm', 'cold'],
                         [run['launch'] for run in result['runs']])
        self.assertEqual(
            ['npb-ep serial hpc.2c warm', 'npb-ep serial hpc.2c cold'],
            [figure['label']
             for figure in result['verdict']['judgements']])
        # Reports distinguish them.
        _, out, err = self.run_('bench', 'report', '--data',
                                str(self.scratch / 'data'))
        self.assertIn('npb-ep serial hpc.2c cold', out, err)
        self.assertIn('npb-ep serial hpc.2c warm', out)
        self.assertIn('cold: the guest was relaunched before each', out)
        page = self.scratch / 'page.html'
        status, _, err = self.run_('bench', 'report', '--data',
                                   str(self.scratch / 'data'), '--html',
                                   str(page))
        self.assertEqual(0, status, err)
        text = page.read_text()
        self.assertIn('npb-ep serial hpc.2c cold', text)
        self.assertIn('relaunched before each', text)

    def test_a_guest_that_cannot_be_rebooted_is_refused(self):
        for words, message in (
                (self.words('--launch', 'cold', where=self.server.url),
                 'it is not given as server:'),
                (self.words('--launch', 'both', native='server:hpc-1'),
                 'the native place is the guest itself'),
                (self.words('--launch', 'cold', '--this-launch'),
                 'relaunches the guest, but only this launch')):
            with self.subTest(message=message):
                commands.check_refused(self, message, self.run_(*words))
        self.assertFalse((self.scratch / 'data').exists())

# SPDX-License-Identifier: Apache-2.0

import argparse
import dataclasses
import json
import math
import pathlib
import unittest
from unittest import mock

from hpcvirt import exception
from hpcvirt.cloud import migrations
from hpcvirt.cmd import hosts
from hpcvirt.cmd.fleet import drain
from hpcvirt.fleet import assemble
from hpcvirt.fleet import moving
from hpcvirt.fleet import state
from tests.builders import commands
from tests.builders import folders

ETC = pathlib.Path(__file__).parents[4] / 'etc' / 'hpcvirt'
FLEET = f'--fleet={ETC}/fleets/three-hosts.json'


class DrainHostsTest(unittest.TestCase):
    def answer(self, *words):
        status, text, error = commands.run('drain', FLEET, *words,
                                           '--format', 'json')
        self.assertNotIn('hpcvirt:', error)
        return status, json.loads(text)

    def test_the_order_of_the_moves_is_printed(self):
        status, document = self.answer('n1')
        self.assertEqual((0, True, True), (
            status, document['empty'], document['proven']))
        self.assertEqual({('ana', 'n3'), ('ben', 'n3')}, {
            (move['id'], move['to']) for move in document['moves']})

    def test_a_host_that_cannot_be_emptied_says_why(self):
        status, document = self.answer('n1', 'n2')
        self.assertEqual((1, False), (status, document['empty']))
        self.assertEqual([('cem', 'n2'), ('dora', 'n2')], [
            (one['id'], one['host']) for one in document['left']])
        for one in document['left']:
            self.assertIn('no host has room', one['reason'])
            self.assertEqual(['an empty host like n2'], one['helps'])

    def test_others_move_if_that_is_needed(self):
        status, document = self.answer('n2')
        self.assertEqual((0, True), (status, document['proven']))
        self.assertEqual(['ana', 'ben', 'cem', 'dora'], sorted(
            move['id'] for move in document['moves']))

    def test_waves_are_numbered(self):
        _, document = self.answer('--rolling', '1', 'n1', 'n3')
        self.assertEqual([['n1'], ['n3']], document['waves'])
        self.assertEqual({1, 2}, {
            move['wave'] for move in document['moves']})

    def test_wrong_arguments_are_refused_in_one_line(self):
        folder = folders.make(self)
        fleet = json.loads((ETC / 'fleets' / 'three-hosts.json').read_text())
        own = fleet['classes']['plain']
        own['aggregate'] = 'gpu, hpc'
        own['hosts'] = [host.replace('..', str(ETC)) for host in own['hosts']]
        path = folder / 'fleet.json'
        path.write_text(json.dumps(fleet))
        for words, message in (
                ((), 'no host is named'),
                (('n9',), 'host n9: is not in the fleet'),
                (('--aggregate', 'hcp'), "the aggregate 'hcp' has none"),
                (('n1', '--deadline', '5'), '--deadline: needs --apply'),
                (('n1', '--apply'), '--apply: needs the live cloud')):
            commands.check_refused(self, message, commands.run(
                'drain', f'--fleet={path}', *words))
        status, text, _ = commands.run(
            'drain', f'--fleet={path}', '--aggregate', 'hpc', '-f', 'json')
        self.assertEqual(1, status)
        self.assertEqual(6, len(json.loads(text)['left']))


class EmptyTest(unittest.TestCase):
    """A cloud whose migrations fail or not, as the test says."""

    def setUp(self):
        super().setUp()
        fleet, _ = assemble.make_fleet(hosts.read_fleet(FLEET[8:]))
        self.hosts = {host.name: dataclasses.replace(
            host, state=dataclasses.replace(
                host.state, closed='is drained' if host.name == 'n1'
                else None)) for host in fleet.hosts}
        for name in ('connect', 'connect_quarantine'):
            self.enterContext(mock.patch.object(
                drain.cloud_arguments, name, autospec=True))
        self.enterContext(mock.patch.object(
            drain.arguments, 'read', autospec=True, side_effect=self.read))

    def read(self, _args):
        return state.Fleet(tuple(self.hosts.values()), {}), []

    def empty(self, outcomes=(), end=math.inf):
        """Empty n1; returns the status, the outcomes and the text."""
        outcomes = iter(outcomes)

        def carry_out(_migrator, move):
            (instance,) = (each for each in self.hosts[move.source].instances
                           if each.id == move.id)
            why = next(outcomes, None)
            if why is None:
                moving.try_move(self.hosts, instance, move.target)
            return why
        args = argparse.Namespace(formatter='json', columns=[], cold=True)
        with mock.patch.object(migrations.Migrator, 'carry_out', autospec=True,
                               side_effect=carry_out):
            found = drain._empty(args, self.read(args)[0], ['n1'], ['n1'], end)
        return (found.status, [move.get('done') for move
                               in found.document['moves']], found.text())

    def test_plans_are_made_until_one_has_no_moves(self):
        self.assertEqual((0, [True, False, True], 'n1 is empty.\n'),
                         self.empty((None, 'it did not converge')))

    def test_a_cloud_in_which_every_move_fails_ends_the_drain(self):
        status, made, text = self.empty(['no valid host'] * 99)
        self.assertEqual((1, [False] * 4), (status, made))
        self.assertIn('did not move: no valid host', text)

    def test_moves_that_were_not_begun_are_left(self):
        for most, end in ((0, math.inf), (20, 0)):
            with mock.patch.object(drain, 'MAX_PLANS', most):
                status, made, text = self.empty(end=end)
            self.assertEqual((3, [None, None]), (status, made))
            self.assertIn('Not all moves were made.\nn1 is empty after 2 ',
                          text)

    def test_a_host_that_may_get_new_instances_is_not_emptied(self):
        host = self.hosts['n1']
        self.hosts['n1'] = dataclasses.replace(host, state=dataclasses.replace(
            host.state, closed=None))
        with self.assertRaisesRegex(exception.InvalidInput,
                                    'may get new instances'):
            self.empty()

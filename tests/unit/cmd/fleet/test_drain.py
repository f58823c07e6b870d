# SPDX-License-Identifier: Apache-2.0

import json
import pathlib
import unittest
from unittest import mock

from hpcvirt.cmd.fleet import execution
from hpcvirt.fleet import moving
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
        own['aggregate'] = 'hpc'
        own['hosts'] = [host.replace('..', str(ETC)) for host in own['hosts']]
        path = folder / 'fleet.json'
        path.write_text(json.dumps(fleet))
        for words, message in (
                ((), 'no host is named'),
                (('n9',), 'host n9: is not in the fleet'),
                (('--aggregate', 'hcp'), "the aggregate 'hcp' has none"),
                (('n1', '--deadline', '5'), '--deadline: needs --apply')):
            commands.check_refused(self, message, commands.run(
                'drain', f'--fleet={path}', *words))
        status, text, _ = commands.run(
            'drain', f'--fleet={path}', '--aggregate', 'hpc', '-f', 'json')
        self.assertEqual(1, status)
        self.assertEqual(6, len(json.loads(text)['left']))


class ExecutionTest(unittest.TestCase):
    """A cloud whose moves fail or not, as the test says."""

    def execution(self, outcomes, may_begin=lambda: True):
        made = execution.Execution(
            mock.Mock(connect=lambda: None, os_cloud=None), False, may_begin)
        outcomes = iter(outcomes)
        made._migrator = mock.Mock(carry_out=lambda _: next(outcomes))
        return made

    def moves(self, *ids):
        return [moving.Move(each, 'n1', 'n2', (0,)) for each in ids]

    def test_the_first_move_that_fails_is_the_last(self):
        made = self.execution([None, 'it is locked', None])
        self.assertFalse(made.carry_out(self.moves('a', 'b', 'c')))
        self.assertEqual([('a', None), ('b', 'it is locked')], [
            (each.move.id, each.failure) for each in made.attempts])

    def test_plans_are_made_until_one_has_no_moves(self):
        plans = iter([self.moves('a', 'b'), self.moves('b'), []])
        made = self.execution([None, 'no valid host', None])
        self.assertTrue(made.carry_out_plans(lambda: next(plans), 9))
        self.assertEqual(['a', 'b', 'b'], [
            each.move.id for each in made.attempts])

    def test_a_cloud_in_which_every_move_fails_ends_the_drain(self):
        made = self.execution(['no valid host'] * 9)
        self.assertFalse(made.carry_out_plans(lambda: self.moves('a'), 3))
        self.assertEqual(3, len(made.attempts))

    def test_no_move_begins_after_the_end(self):
        left = [True, True, False]
        made = self.execution([None] * 9, lambda: left.pop(0) if left
                              else False)
        self.assertFalse(made.carry_out_plans(
            lambda: self.moves('a', 'b', 'c'), 3))
        self.assertEqual(2, len(made.attempts))

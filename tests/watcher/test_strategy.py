# SPDX-License-Identifier: Apache-2.0

"""Audits with Watcher's own model, loaders and planner."""

import json
import logging
import pathlib
import shlex
import sys

import fixtures
from oslo_utils import uuidutils
from watcher import objects
from watcher.common import utils
from watcher.decision_engine.loading import default as loading
from watcher.decision_engine.model import element
from watcher.decision_engine.model import model_root
from watcher.decision_engine.strategy.strategies import base as strategies
from watcher.tests.unit.db import base
from watcher.tests.unit.db import utils as db_utils

from hpcvirt.watcher_strategy import strategy
from tests.builders import folders

ETC = pathlib.Path(__file__).parents[2] / 'etc' / 'hpcvirt'
HPCVIRT = [sys.executable, '-m', 'hpcvirt.cmd.main']


class StrategyTestCase(base.DbTestCase):
    """A strategy of hpcvirt, and the cluster of three hosts."""

    NAME = ''
    KIND = strategy.MigrationStrategy

    def setUp(self):
        super().setUp()
        folder = folders.make(self)
        fleet = json.loads((ETC / 'fleets' / 'three-hosts.json').read_text())
        hosts = fleet['classes']['plain']['hosts']
        hosts[:] = [host.replace('..', str(ETC)) for host in hosts]
        self.ids = {}
        self.model = self.model_of(fleet['instances'])
        path = folder / 'fleet.json'
        path.write_text(json.dumps(fleet))
        self.strategy = loading.DefaultStrategyLoader().load(self.NAME)
        self.assertIsInstance(self.strategy, self.KIND)
        self.strategy.config.command = shlex.join([
            *HPCVIRT, self.KIND.command.split()[1], f'--fleet={path}'])
        self.patch(strategies.BaseStrategy, 'compute_model', self.model)

    def patch(self, owner, name, value):
        self.useFixture(fixtures.MonkeyPatch(
            f'{owner.__module__}.{owner.__name__}.{name}', value))

    def model_of(self, instances):
        """Build Watcher's model, in which instances have UUIDs."""
        model = model_root.ModelRoot()
        nodes = {}
        for name in ('n1', 'n2', 'n3'):
            nodes[name] = element.ComputeNode(
                uuid=uuidutils.generate_uuid(), hostname=name,
                vcpus=32, memory=65536, disk=100)
            model.add_node(nodes[name])
        for item in instances:
            self.ids[item['id']] = uuidutils.generate_uuid()
            item['id'] = self.ids[item['id']]
            instance = element.Instance(
                uuid=item['id'], name='x', vcpus=item['flavor']['vcpus'],
                memory=item['flavor']['ram_mib'], disk=0)
            model.add_instance(instance)
            model.map_instance(instance, nodes[item['host']])
        return model

    def audit(self, **parameters):
        self.strategy.input_parameters = utils.Struct(parameters)
        return self.strategy.execute()

    def schedule(self, solution):
        """Return the actions that the planner makes of a solution."""
        goal = db_utils.create_test_goal(name='unclassified')
        own = db_utils.create_test_strategy(name=self.NAME, goal_id=goal.id)
        audit = db_utils.create_test_audit(
            uuid=uuidutils.generate_uuid(), strategy_id=own.id,
            goal_id=goal.id)
        planner = loading.DefaultPlannerLoader().load(
            solution.strategy.planner)
        planner.schedule(self.context, audit.id, solution)
        return objects.Action.list(self.context)

    def refusal(self, **parameters):
        return str(self.assertRaises(strategy.NoRoom, self.audit,
                                     **parameters))


class MakeRoomTest(StrategyTestCase):

    NAME = 'hpcvirt_make_room'
    KIND = strategy.MakeRoomStrategy

    def test_the_migrations_are_those_of_the_command(self):
        solution = self.audit(flavor='hpc.16c1n.2m')
        self.assertEqual([{
            'action_type': 'migrate',
            'input_parameters': {
                'migration_type': 'live', 'source_node': 'n1',
                'destination_node': 'n3', 'resource_name': 'x',
                'resource_id': self.ids['ana']}}], solution.actions)
        self.assertEqual([], self.audit_of_another('hpc.8c1n.2m').actions)

    def audit_of_another(self, flavor):
        again = loading.DefaultStrategyLoader().load('hpcvirt_make_room')
        again.config.command = self.strategy.config.command
        self.strategy = again
        return self.audit(flavor=flavor)

    def test_each_migration_waits_for_the_one_before_it(self):
        solution = self.audit(flavor='hpc.16c1n.2m', count=2)
        self.assertEqual(2, len(solution.actions))
        actions = self.schedule(solution)
        self.assertEqual(['migrate'] * 2, [
            action.action_type for action in actions])
        first, second = sorted(actions, key=lambda item: len(item.parents))
        self.assertEqual(([], [first.uuid]), (first.parents, second.parents))
        self.assertEqual(
            solution.actions[0]['input_parameters'], first.input_parameters)

    def test_what_watcher_must_not_move_ends_the_audit(self):
        ana = self.model.get_instance_by_uuid(self.ids['ana'])
        ana.locked = True
        self.assertIn('is locked', self.refusal(flavor='hpc.16c1n.2m'))
        ana.locked = False
        ana.watcher_exclude = True
        self.assertIn('excluded by the scope',
                      self.refusal(flavor='hpc.16c1n.2m'))
        ana.watcher_exclude = False
        self.model.migrate_instance(
            ana, self.model.get_node_by_name('n1'),
            self.model.get_node_by_name('n2'))
        self.assertIn('on n2, Nova on n1',
                      self.refusal(flavor='hpc.16c1n.2m'))
        self.model.remove_instance(ana)
        self.assertIn('not all in the scope',
                      self.refusal(flavor='hpc.16c1n.2m'))

    def test_why_there_is_no_plan_is_the_reason(self):
        self.assertIn("'x' is not a flavor of", self.refusal(flavor='x'))
        self.assertIn('would not after 0 moves either',
                      self.refusal(flavor='hpc.16c1n.2m', moves=0))
        self.strategy.config.command = 'true'
        self.assertIn('printed no plan', self.refusal(flavor='x'))
        self.strategy.config.command = '/absent/hpcvirt'
        self.assertIn('No such file', self.refusal(flavor='x'))


class DrainTest(StrategyTestCase):

    NAME = 'hpcvirt_drain'
    KIND = strategy.DrainStrategy

    def test_the_host_is_disabled_and_then_emptied(self):
        actions = self.schedule(self.audit(hosts=['n1']))
        first, second, third = sorted(
            actions, key=lambda item: item.action_type)
        self.assertEqual(('change_nova_service_state', 'n1', 'disabled', []), (
            first.action_type, first.input_parameters['resource_name'],
            first.input_parameters['state'], first.parents))
        self.assertEqual({self.ids['ana'], self.ids['ben']}, {
            action.input_parameters['resource_id']
            for action in (second, third)})
        chain = sorted((second, third), key=lambda item: (
            item.parents != [first.uuid]))
        self.assertEqual([[first.uuid], [chain[0].uuid]], [
            action.parents for action in chain])
        for action in (second, third):
            self.assertEqual('n3', action.input_parameters[
                'destination_node'])

    def test_what_stands_in_the_way_ends_the_audit(self):
        why = self.refusal(hosts=['n1', 'n2'])
        self.assertIn(f'{self.ids["cem"]} on n2: no host has room', why)
        self.assertIn('n9: is not in the fleet', self.refusal(hosts=['n9']))
        self.model.remove_node(self.model.get_node_by_name('n3'))
        self.assertIn('not all in the scope', self.refusal(hosts=['n1']))


class StandingRoomTest(StrategyTestCase):

    NAME = 'hpcvirt_standing_room'
    KIND = strategy.StandingRoomStrategy

    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger(level=logging.WARNING))
        folder = folders.make(self)
        path = folder / 'boots.csv'
        path.write_text(
            'created_at,deleted_at,vcpus,memory_mb,flavor,extra_specs\n'
            '1,2,16,28672,hpc.16c1n.2m,{}\n')
        self.strategy.config.command += f' --standing --requests={path}'

    def test_room_is_made_for_what_is_requested(self):
        (action,) = self.schedule(self.audit())
        self.assertEqual((self.ids['ana'], 'n3'), tuple(
            action.input_parameters[key]
            for key in ('resource_id', 'destination_node')))

    def test_a_pass_without_a_plan_does_not_fail(self):
        self.strategy.config.command += ' --moves=0'
        self.assertEqual([], self.audit().actions)
        self.assertEqual('', self.log.output)

    def test_a_pass_that_must_not_move_says_why_and_does_nothing(self):
        self.model.get_instance_by_uuid(self.ids['ana']).locked = True
        self.assertEqual([], self.audit().actions)
        self.assertIn('is locked', self.log.output)

    def test_a_cloud_that_cannot_be_read_does_not_end_the_audits(self):
        self.strategy.config.command = '/absent/hpcvirt'
        self.assertEqual([], self.audit().actions)
        self.assertIn('No such file', self.log.output)

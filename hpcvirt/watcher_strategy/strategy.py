# SPDX-License-Identifier: Apache-2.0

"""Strategies whose migrations are the moves of commands of hpcvirt.

Watcher's model of the cluster has no cells, pinned CPUs and pages. The
commands read them as nova-scheduler does, with the configuration of Nova,
which must not be mixed with that of Watcher in one process.
"""

import json
import shlex
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import ClassVar

from oslo_config import cfg
from oslo_log import log
from watcher.common import exception as watcher_exception
from watcher.decision_engine.planner import weight
from watcher.decision_engine.strategy.strategies import base

from hpcvirt import child_environment
from hpcvirt import child_process
from hpcvirt import exception as hpcvirt_exception

LOG = log.getLogger(__name__)

#: Seconds for reading the cloud and searching.
PATIENCE_S = 600

#: The most that the command may print.
MAX_PLAN_BYTES = 64 * 2 ** 20


class InOrder(weight.WeightPlanner):
    """Watcher's weight planner, with one migration after another.

    Watcher's own planners start two migrations at once.
    """

    @classmethod
    def get_config_opts(cls) -> list[cfg.Opt]:
        """Return the options of the weight planner, without parallelism."""
        return [cfg.DictOpt('weights', default=cls.action_weights,
                            help='As of the planner "weight".'),
                cfg.DictOpt('parallelization',
                            default=dict.fromkeys(cls.action_weights, 1),
                            help='As of the planner "weight".')]


class NoRoom(watcher_exception.WatcherException):
    """Raised when an audit fails because there is no plan."""

    msg_fmt = '%(reason)s'


class MigrationStrategy(base.UnclassifiedStrategy):
    """Makes the migrations of a command of hpcvirt.

    They are carried out one after another, because a migration may need the
    room that an earlier one leaves.

    :cvar command: the command that finds the moves
    :cvar title: the name for people
    """

    command: ClassVar[str]
    title: ClassVar[str]

    def __init__(self, config: Any, osc: Any = None) -> None:
        super().__init__(config, osc)
        self.planner = 'hpcvirt_in_order'

    @classmethod
    def get_name(cls) -> str:
        return cls.command.replace(' ', '_').replace('-', '_')

    @classmethod
    def get_display_name(cls) -> str:
        return cls.title

    get_translatable_display_name = get_display_name

    @classmethod
    def get_config_opts(cls) -> list[cfg.Opt]:
        return [*super().get_config_opts(), cfg.StrOpt(
            'command', default=cls.command,
            help='The command that finds the moves, with the arguments that '
            'describe the fleet, such as --config-file. Its Python needs Nova '
            'and must be able to read the databases of Nova.')]

    def list_words(self) -> list[str]:
        """Return the arguments of the command for an audit."""
        return []

    def explain(self, document: Mapping[str, Any]) -> str | None:  # noqa: ARG002
        """Say why the document of the command is no plan; None if it is."""
        return None

    def pre_execute(self) -> None:
        self._pre_execute()

    def do_execute(self, audit: Any = None) -> None:  # noqa: ARG002
        """Add the migrations to the solution.

        :raises NoRoom: if there is no plan, or if Watcher must not make one of
            its moves
        """
        hosts: dict[str, str] = {}
        for move in self._read_plan():
            self._add(*move, hosts)

    def _add(self, uuid: str, kind: str, here: str, there: str,
             hosts: dict[str, str]) -> None:
        """Add one migration.

        :param kind: ``live`` or ``cold``
        :param hosts: where the instances are after the migrations before it
        """
        model = self.compute_model
        try:
            instance = model.get_instance_by_uuid(uuid)
            before = model.get_node_by_instance_uuid(uuid).hostname
            source, target = map(model.get_node_by_name, (here, there))
        except watcher_exception.ComputeResourceNotFound as exc:
            raise NoRoom(reason=f'{uuid} would move from {here} to {there}, '
                         'which are not all in the scope of the audit',
                         ) from exc
        if instance.watcher_exclude or instance.locked:
            raise NoRoom(reason=f'{uuid} would move, which is '
                         + ('locked' if instance.locked else
                            'excluded by the scope of the audit'))
        if hosts.get(uuid, before) != here:
            raise NoRoom(reason=f'Watcher has {uuid} on {before}, Nova on '
                         f'{here}')
        hosts[uuid] = there
        self.add_action_migrate(instance, kind, source, target)

    def post_execute(self) -> None:
        """Do nothing: the solution is complete."""

    def _read_plan(self) -> Sequence[tuple[str, str, str, str]]:
        """Run the command that makes the plan.

        :returns: the instance, the kind, the source and the target of each
            migration
        :raises NoRoom: if the command fails, or has no plan
        """
        words = [*shlex.split(self.config.command), '--format', 'json',
                 *(['--cold'] if self.input_parameters.get('cold') else []),
                 *self.list_words()]
        try:
            status, stdout, stderr = child_process.run(
                words, where='hpcvirt', limit_s=PATIENCE_S,
                most_bytes=MAX_PLAN_BYTES,
                environment=child_environment.choose(*child_environment.SITE))
        except hpcvirt_exception.HpcvirtError as exc:
            raise NoRoom(reason=str(exc)) from exc
        if status not in (0, 1):
            said = stderr.decode('utf-8', 'replace').strip()
            raise NoRoom(reason=said or (
                f'{words[0]} ended with the status {status}'))
        try:
            document = json.loads(stdout)
            why = self.explain(document)
            moves = [(move['id'], move['kind'], move['from'], move['to'])
                     for move in document['moves']]
        except (KeyError, TypeError, ValueError) as exc:
            raise NoRoom(reason=f'{words[0]} printed no plan of '
                         f'{self.command} ({exc})') from exc
        if why is not None:
            raise NoRoom(reason=why)
        return moves


def _cold() -> dict[str, Any]:
    return {'type': 'boolean', 'default': False,
            'description': 'whether cold migrations are allowed'}


class MakeRoomStrategy(MigrationStrategy):
    """Make room for instances of a flavor with the fewest migrations."""

    command = 'hpcvirt make-room'
    title = 'Make room for instances of a flavor'

    @classmethod
    def get_schema(cls) -> dict[str, Any]:
        return {
            'properties': {
                'flavor': {'type': 'string', 'minLength': 1, 'description':
                           'the name of the flavor'},
                'count': {'type': 'integer', 'minimum': 1, 'default': 1,
                          'description': 'the number of instances that must '
                          'fit at once'},
                'moves': {'type': 'integer', 'minimum': 0, 'maximum': 2,
                          'default': 2, 'description': 'the most moves'},
                'cold': _cold(),
            },
            'required': ['flavor'],
        }

    def list_words(self) -> list[str]:
        given = self.input_parameters
        return ['--flavor', str(given['flavor']),
                '--count', str(given.get('count', 1)),
                '--moves', str(given.get('moves', 2))]

    def explain(self, document: Mapping[str, Any]) -> str | None:
        given = self.input_parameters
        return None if document['fits'] else (
            f'{given["flavor"]} does not fit, and would not after '
            f'{given.get("moves", 2)} moves either')


class StandingRoomStrategy(MigrationStrategy):
    """Keep room for what is usually requested, by a continuous audit.

    Without moves, there is room or none can be made. A continuous audit that
    fails is never run again, so a pass without a plan has no actions.
    """

    command = 'hpcvirt make-room --standing'
    title = 'Keep room for instances that are usually requested'

    @classmethod
    def get_name(cls) -> str:
        return 'hpcvirt_standing_room'

    def do_execute(self, audit: Any = None) -> None:
        """Add the migrations, all of them or none."""
        try:
            super().do_execute(audit)
        except NoRoom as exc:
            self.solution.actions.clear()
            LOG.warning('No room is made in this pass: %s', exc)


class DrainStrategy(MigrationStrategy):
    """Empty hosts by migrations, after their nova-compute is disabled."""

    command = 'hpcvirt drain'
    title = 'Empty hosts'

    @classmethod
    def get_schema(cls) -> dict[str, Any]:
        return {
            'properties': {
                'hosts': {'type': 'array', 'minItems': 1,
                          'items': {'type': 'string', 'minLength': 1},
                          'description': 'the names of the hosts'},
                'cold': _cold(),
            },
            'required': ['hosts'],
        }

    def list_words(self) -> list[str]:
        return ['--', *map(str, self.input_parameters['hosts'])]

    def explain(self, document: Mapping[str, Any]) -> str | None:
        return '; '.join(f'{one["id"]} on {one["host"]}: {one["reason"]}'
                         for one in document['left']) or None

    def do_execute(self, audit: Any = None) -> None:
        """Disable the hosts, which the planner does first, and move."""
        super().do_execute(audit)
        for name in self.input_parameters['hosts']:
            try:
                node = self.compute_model.get_node_by_name(name)
            except watcher_exception.ComputeResourceNotFound as exc:
                raise NoRoom(reason=f'{name} is not in the scope of the '
                             'audit') from exc
            self.solution.add_action(
                action_type='change_nova_service_state', resource_id=node.uuid,
                input_parameters={'state': 'disabled', 'resource_name': name,
                                  'disabled_reason': 'watcher_maintaining'})

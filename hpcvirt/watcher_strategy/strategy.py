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

"""``hpcvirt_make_room``: make room for instances of a flavor."""

from typing import Any

from oslo_config import cfg
from watcher.common import exception as watcher_exception
from watcher.decision_engine.strategy.strategies import base

from hpcvirt import exception
from hpcvirt.watcher_strategy import plan


class NoRoom(watcher_exception.WatcherException):
    """The audit fails, and this is its reason."""

    msg_fmt = '%(reason)s'


class MakeRoom(base.UnclassifiedStrategy):
    """Make room for instances of a flavor with the fewest migrations.

    The migrations are those of ``hpcvirt make-room``. They are carried out
    one after the other, because a later one may need the room that an earlier
    one leaves.
    """

    def __init__(self, config: Any, osc: Any = None) -> None:
        super().__init__(config, osc)
        self.planner = 'hpcvirt_in_order'

    @classmethod
    def get_name(cls) -> str:
        return 'hpcvirt_make_room'

    @classmethod
    def get_display_name(cls) -> str:
        return 'Make room for instances of a flavor'

    @classmethod
    def get_translatable_display_name(cls) -> str:
        return 'Make room for instances of a flavor'

    @classmethod
    def get_config_opts(cls) -> list[cfg.Opt]:
        return [*super().get_config_opts(), cfg.StrOpt(
            'command', default='hpcvirt make-room',
            help='The command that finds the moves, with the arguments that '
            'describe the fleet, such as --config-file. Its Python needs Nova '
            'and must be able to read the databases of Nova.')]

    @classmethod
    def get_schema(cls) -> dict[str, Any]:
        return {
            'properties': {
                'flavor': {'type': 'string', 'minLength': 1, 'description':
                           'the name of the flavor'},
                'count': {'type': 'integer', 'minimum': 1, 'default': 1,
                          'description': 'the number of instances that must '
                          'fit at once'},
                'moves': {'type': 'integer', 'minimum': 0, 'maximum': 3,
                          'default': 2, 'description': 'the most moves'},
                'cold': {'type': 'boolean', 'default': False, 'description':
                         'whether cold migrations are allowed'},
            },
            'required': ['flavor'],
        }

    def pre_execute(self) -> None:
        self._pre_execute()

    def do_execute(self, audit: Any = None) -> None:  # noqa: ARG002
        """Add the migrations to the solution.

        :raises NoRoom: if there is no plan, or it has a move that Watcher
            must not make
        """
        try:
            moves = plan.read(self.config.command, self.input_parameters)
        except exception.Unreachable as exc:
            raise NoRoom(reason=str(exc)) from exc
        hosts: dict[str, str] = {}
        for move in moves:
            self._add(move, hosts)

    def _add(self, move: plan.Move, hosts: dict[str, str]) -> None:
        """Add one migration.

        :param hosts: where the instances are after the migrations before it
        """
        model = self.compute_model
        try:
            instance = model.get_instance_by_uuid(move.id)
            source = model.get_node_by_instance_uuid(move.id)
            target = model.get_node_by_name(move.target)
        except watcher_exception.ComputeResourceNotFound as exc:
            raise NoRoom(reason=f'{move.id} would move from {move.source} to '
                         f'{move.target}, which are not all in the scope of '
                         'the audit') from exc
        if instance.watcher_exclude or instance.locked:
            raise NoRoom(reason=f'{move.id} would move, which is '
                         + ('locked' if instance.locked else
                            'excluded by the scope of the audit'))
        if hosts.get(move.id, source.hostname) != move.source:
            raise NoRoom(reason=f'Watcher has {move.id} on {source.hostname}, '
                         f'Nova on {move.source}')
        if move.id in hosts:
            source = model.get_node_by_name(move.source)
        hosts[move.id] = move.target
        self.add_action_migrate(instance, move.kind, source, target)

    def post_execute(self) -> None:
        """Do nothing: the solution is complete."""

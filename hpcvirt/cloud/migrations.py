# SPDX-License-Identifier: Apache-2.0

"""Migrate instances, live or cold, to the hosts that a plan names.

No migration is forced: the scheduler checks the host that a migration names,
and Nova refuses a move that its filters do not allow.
"""

import dataclasses
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

from novaclient import exceptions as nova_exceptions

from hpcvirt import exception
from hpcvirt import waiting
from hpcvirt.cloud import servers
from hpcvirt.cloud import session
from hpcvirt.fleet import moving

#: Seconds to wait for the end of one migration.
MIGRATION_S = 3600.0
#: Seconds to wait until a live migration is aborted.
ABORT_S = 120.0
PAUSE_S = 1.0

#: The statuses from which Nova migrates.
_LIVE = ('ACTIVE', 'PAUSED')
_COLD = ('ACTIVE', 'SHUTOFF')
_MOVED = 'VERIFY_RESIZE'


@dataclasses.dataclass(frozen=True)
class Migrator:
    """Carries out moves, one at a time.

    :ivar nova: a client of :func:`hpcvirt.cloud.session.compute`
    """

    nova: Any

    def carry_out_all(self, moves: Sequence[moving.Move],
                      may_begin: Callable[[], bool],
                      tell: Callable[[moving.MoveAttempt], object],
                      ) -> list[moving.MoveAttempt]:
        """Make moves until one fails or must not begin.

        :param may_begin: asked before each move
        :param tell: told of each move that was begun
        :returns: the moves that were begun
        """
        made: list[moving.MoveAttempt] = []
        for move in moves:
            if (made and made[-1].failure is not None) or not may_begin():
                break
            try:
                made.append(moving.MoveAttempt(move, self.carry_out(move)))
            except exception.Unreachable as exc:
                made.append(moving.MoveAttempt(move, str(exc)))
            tell(made[-1])
        return made

    def carry_out(self, move: moving.Move) -> str | None:
        """Make a move unless it was made before, and check the result.

        :returns: None if the instance is on the planned host and cells;
            otherwise the reason
        :raises Unreachable: if the cloud does not answer, or has no such
            instance
        """
        with session.one_line_errors():
            server = self._server(move)
            why = _obstacle(server, move)
            if why is not None:
                return why
            if servers.get_host(server) != move.target:
                try:
                    self._start(server, move)
                except (nova_exceptions.BadRequest,
                        nova_exceptions.Conflict) as exc:
                    return f'Nova refuses: {exc.message}'
                server = self._ended(move)
                if (servers.get_task(server) and not move.cold
                        and self._abort(move)):
                    return (f'it did not move within {MIGRATION_S:.0f} s, '
                            'and was aborted')
                why = self._outcome(server, move)
                if why is not None:
                    return why
            if server.status == _MOVED:
                self.nova.servers.confirm_resize(move.id)
                server = self._ended(move, also_not=_MOVED)
                if server.status not in _COLD or servers.get_task(server):
                    return (f'it is {server.status} with the task '
                            f'{servers.get_task(server)} after the migration '
                            'was confirmed')
            return self._misplaced(server, move)

    def _server(self, move: moving.Move) -> Any:
        try:
            return self.nova.servers.get(move.id)
        except nova_exceptions.NotFound as exc:
            raise exception.Unreachable(
                f'server {move.id}: the cloud has no such server') from exc

    def _start(self, server: Any, move: moving.Move) -> None:
        if move.cold:
            self.nova.servers.migrate(server.id, host=move.target)
        else:
            self.nova.servers.live_migrate(server.id, move.target, 'auto')

    def _ended(self, move: moving.Move, also_not: str = '',
               patience_s: float | None = None) -> Any:
        """Wait until the task has ended and the source is free."""
        return waiting.poll(
            lambda: self.nova.servers.get(move.id),
            lambda server: servers.get_task(server) is None
            and server.status not in ('MIGRATING', 'RESIZE', also_not)
            and not self._leaves(server),
            MIGRATION_S if patience_s is None else patience_s,
            PAUSE_S)

    def _abort(self, move: moving.Move) -> bool:
        """Abort a live migration that does not converge."""
        try:
            running = self.nova.server_migrations.list(move.id)
            for each in running:
                self.nova.server_migrations.live_migration_abort(
                    move.id, each.id)
        except (nova_exceptions.BadRequest, nova_exceptions.Conflict,
                nova_exceptions.Forbidden, nova_exceptions.NotFound):
            return False
        if not running:
            return False
        server = self._ended(move, patience_s=ABORT_S)
        return (servers.get_task(server) is None
                and servers.get_host(server) == move.source)

    def _leaves(self, server: Any) -> bool:
        """Whether a live migration still has to free the source."""
        try:
            return bool(self.nova.server_migrations.list(server.id))
        except nova_exceptions.Forbidden:
            return False

    def _outcome(self, server: Any, move: moving.Move) -> str | None:
        """Describe the failure of a migration."""
        if servers.get_task(server):
            return (f'it still has the task {servers.get_task(server)} after '
                    f'{MIGRATION_S:.0f} s')
        if servers.get_host(server) == move.target and server.status in (
                _MOVED, *_LIVE, *_COLD):
            return None
        why = self._why(move)
        return (f'it is {server.status} on {servers.get_host(server)}'
                + (f': {why}' if why else ''))

    def _why(self, move: moving.Move) -> str:
        """Read the error that Nova recorded; empty if it is not shown."""
        try:
            actions = self.nova.instance_action
            last = actions.list(move.id)[0]
            events = actions.get(move.id, last.request_id).events
        except (nova_exceptions.Forbidden, nova_exceptions.NotFound,
                AttributeError, IndexError):
            return ''
        return next((event['details'] for event in events
                     if event.get('result') == 'Error'
                     and event.get('details')), '')

    def _misplaced(self, server: Any, move: moving.Move) -> str | None:
        """Compare the cells with the plan, if Nova shows them to the user."""
        try:
            nodes = self.nova.servers.topology(server.id)['nodes']
        except (nova_exceptions.Forbidden, nova_exceptions.NotFound):
            return None
        cells = [node['host_node'] for node in nodes if 'host_node' in node]
        if not cells or sorted(cells) == sorted(move.cells):
            return None
        return (f'it is on {_cells(cells)} of {move.target}, not on '
                f'{_cells(move.cells)}')


def _obstacle(server: Any, move: moving.Move) -> str | None:
    """Say why an instance must not be migrated."""
    if server.locked:
        return 'it is locked'
    if servers.get_task(server):
        return f'it has the task {servers.get_task(server)}'
    if servers.get_host(server) not in (move.source, move.target):
        return f'it is on {servers.get_host(server)}, not on {move.source}'
    if server.status in (_COLD if move.cold else _LIVE) or (
            server.status == _MOVED and move.cold
            and servers.get_host(server) == move.target):
        return None
    return f'it is {server.status}'


def _cells(cells: Sequence[int]) -> str:
    return 'cells ' + ', '.join(map(str, sorted(cells)))

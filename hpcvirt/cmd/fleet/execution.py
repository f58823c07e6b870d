# SPDX-License-Identifier: Apache-2.0

"""Carry out the moves of a plan in a cloud, one after the other.

A move that does not succeed ends the plan. A command that can read the cloud
again makes a new plan from what it finds, and continues.
"""

import argparse
import dataclasses
import sys
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

from hpcvirt import exception
from hpcvirt.cmd import cloud_arguments
from hpcvirt.fleet import move_report
from hpcvirt.fleet import moving


@dataclasses.dataclass(frozen=True)
class MoveAttempt:
    """A move that was begun.

    :ivar failure: why it did not succeed; None if it did
    """

    move: moving.Move
    failure: str | None = None

    @property
    def document(self) -> dict[str, Any]:
        """The outcome, as keys for the document of the move."""
        return {'done': self.failure is None, 'failure': self.failure}


class Execution:
    """Carries out plans in one cloud.

    :ivar attempts: the moves that were begun, in their order
    """

    def __init__(self, args: argparse.Namespace, shown: bool,
                 may_begin: Callable[[], bool] = lambda: True) -> None:
        """Connect to the cloud.

        :param args: the arguments of :mod:`hpcvirt.cmd.cloud_arguments`
        :param shown: whether to print the progress
        :param may_begin: asked before each move; False ends the plan
        :raises Unreachable: if the cloud is not configured or refuses access
        """
        # The client libraries take half a second to load.
        from hpcvirt.cloud import migrations
        self._migrator = migrations.Migrator(cloud_arguments.connect(args))
        self._shown = shown
        self._may_begin = may_begin
        self.attempts: list[MoveAttempt] = []

    def carry_out(self, moves: Sequence[moving.Move]) -> bool:
        """Carry out moves until one fails or must not begin.

        :returns: whether all moves were made
        """
        return all(self._may_begin() and self._make(move) for move in moves)

    def carry_out_plans(
            self, plan: Callable[[], Sequence[moving.Move]],
            most: int) -> bool:
        """Carry out plans until one has no moves.

        :param plan: reads the cloud, and returns the moves that are needed
            after the attempts so far
        :param most: the most plans
        :returns: whether the last plan needed no more moves
        """
        for _ in range(most):
            moves = plan()
            if not moves:
                return True
            self.carry_out(moves)
            if not self._may_begin():
                break
        return not plan()

    def _make(self, move: moving.Move) -> bool:
        try:
            why = self._migrator.carry_out(move)
        except exception.Unreachable as exc:
            why = str(exc)
        self.attempts.append(MoveAttempt(move, why))
        if self._shown:
            sys.stdout.write(move_report.progress(move, why))
            sys.stdout.flush()
        return why is None

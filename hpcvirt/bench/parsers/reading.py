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

"""The result of a parser, before it is compared with the expectations."""

import dataclasses
from collections.abc import Mapping

from hpcvirt.bench.model import outcome

UP = outcome.Direction.UP
DOWN = outcome.Direction.DOWN


class Refused(Exception):
    """The output does not count.

    It never leaves the parsers: :func:`hpcvirt.bench.parsers.parser.parse`
    turns it into the reason of an outcome.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class Missing(Refused):
    """The output is incomplete; another line of it may say why."""


@dataclasses.dataclass(frozen=True)
class Reading:
    """An output that passed the program's own checks.

    :ivar parameters: what the program echoed, by the keys of ``--expect``
    :ivar exit_status: exit status of a program that writes this output
    :ivar ending: why the exit status is not 0
    """

    metrics: Mapping[str, outcome.Metric]
    parameters: Mapping[str, str]
    exit_status: int = 0
    ending: str = ''
    remarks: tuple[str, ...] = ()

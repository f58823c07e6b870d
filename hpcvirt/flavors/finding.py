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

"""What lint says of a flavor."""

import dataclasses
import enum


class Severity(enum.StrEnum):
    """How bad a finding is.

    ``error``: instances are refused, misplaced, or never fit. ``warning``:
    they run worse than they could. ``note``: worth knowing.
    """

    ERROR = 'error'
    WARNING = 'warning'
    NOTE = 'note'


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """One finding.

    :ivar code: its kind, stable
    :ivar key: the extra spec at fault, or ``ram``, ``vcpus``
    :ivar message: what is wrong, one sentence without a full stop
    :ivar advice: what to do
    """

    code: str
    severity: Severity
    flavor: str
    key: str
    message: str
    advice: str

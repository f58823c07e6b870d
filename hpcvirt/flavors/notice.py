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

"""What a plan has to say beside its figures: a code and a sentence."""

import dataclasses
import enum


class Code(enum.StrEnum):
    """The codes of notices; each value is part of the JSON document."""

    CELL_WITHOUT_CPUS = 'cell-without-cpus'
    CELL_WITHOUT_MEMORY = 'cell-without-memory'
    CELL_NOT_USED = 'cell-not-used'
    DEVICES_MISSING = 'devices-missing'
    HUGE_PAGES_GIVEN_BACK = 'huge-pages-given-back'
    HUGE_PAGES_UNEVEN = 'huge-pages-uneven'
    HUGE_PAGES_UNKNOWN = 'huge-pages-unknown'
    IRREGULAR_CORES = 'irregular-cores'
    LLC_NOT_SEEN = 'llc-not-seen'
    NO_HOUSEKEEPING = 'no-housekeeping'
    PACKAGE_SCOPE_NOT_HELD = 'package-scope-not-held'
    SIBLINGS_IDLE = 'siblings-idle'
    SMT_MIXED = 'smt-mixed'
    SIZE_NOT_PLACED = 'size-not-placed'


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Notice:
    """Something that the operator should know about a plan.

    :ivar message: one sentence without a full stop that names the host
    """

    code: Code
    message: str

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

"""What came of a replay."""

import dataclasses
import enum


class Cause(enum.StrEnum):
    """Why a request was refused.

    A request is refused for devices or pages if it would have been placed
    without needing them.
    """

    CAPACITY = 'capacity'
    FRAGMENTATION = 'fragmentation'
    DEVICES = 'devices'
    PAGES = 'pages'


@dataclasses.dataclass(frozen=True, slots=True)
class Sample:
    """The fleet at one time.

    :ivar time: in seconds from the start of the log
    :ivar busy_cpus: CPUs of the guests
    :ivar stranded_cpus: free CPUs that no guest of the smallest flavor that
        needs no device can use
    :ivar stranded_pages_mib: memory of pages of free cells likewise
    :ivar guests: running guests
    :ivar across_packages: guests whose cells are on more than one package
    """

    time: float
    busy_cpus: int
    stranded_cpus: int
    stranded_pages_mib: int
    guests: int
    across_packages: int


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The replay of all requests with one strategy.

    :ivar fates: for each arrival None if it was placed, or why not
    :ivar moves: number of moves of other guests
    :ivar seconds: time that the decisions took
    """

    strategy: str
    fates: tuple[Cause | None, ...]
    samples: tuple[Sample, ...] = ()
    moves: int = 0
    seconds: float = 0.0

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

"""What a host says about itself at one moment: counters and levels.

A frame is one line of JSON, so that a host can be recorded and replayed. What
the host does not say is None. Counters count since the host was booted; only
the difference of two frames means something (:mod:`hpcvirt.health.rates`).
"""

import dataclasses
from typing import Annotated
from typing import Any

from hpcvirt import serialization

SCHEMA_VERSION = 1

_Count = Annotated[int, serialization.whole(0, 1 << 64)]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class CpuTime:
    """Where the time of all CPUs has gone, in ticks of the same length.

    :ivar system: in the kernel, with interrupts
    :ivar total: with the time of guests, which user time includes
    """

    total: _Count
    system: _Count
    iowait: _Count
    steal: _Count


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class HugePages:
    """Huge pages of one size in one cell."""

    cell: int
    size_kib: int
    total: int
    free: int


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Frame:
    """A moment of a host.

    :ivar time: seconds since 1970; the clock may be set at any time
    :ivar boot_id: changes whenever the host is booted
    :ivar uptime_s: since then
    :ivar online: the CPUs that are online, as the kernel writes them
    :ivar cpus: how many these are
    :ivar shootdowns: TLB shoot-downs; some processors need no interrupts for
        them and do not count them
    :ivar strangers_s: CPU time of strangers on dedicated CPUs
    :ivar dedicated: the number of dedicated CPUs
    :ivar busiest: the stranger with the most time since the last frame
    :ivar throttles: how often the cores and packages of the CPUs were slowed
        down for heat, added up over the CPUs
    """

    schema_version: int = SCHEMA_VERSION
    time: float
    boot_id: str
    uptime_s: float
    online: str
    cpus: Annotated[int, serialization.whole(1, 1 << 16)]
    cpu_time: CpuTime | None = None
    interrupts: _Count | None = None
    shootdowns: _Count | None = None
    swapped_pages: _Count | None = None
    ksm_pages: _Count | None = None
    slab_kib: _Count | None = None
    memory_kib: _Count | None = None
    huge_pages: tuple[HugePages, ...] = ()
    strangers_s: float | None = None
    dedicated: int = 0
    busiest: str | None = None
    corrected_errors: _Count | None = None
    throttles: _Count | None = None


def read(plain: Any, where: str) -> Frame:
    """Read a frame.

    :param plain: what :func:`hpcvirt.serialization.to_plain` made of one
    :raises InvalidInput: if it is of another form
    """
    serialization.require_version(plain, SCHEMA_VERSION, where)
    return serialization.from_plain(Frame, plain, where)

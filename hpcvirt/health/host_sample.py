# SPDX-License-Identifier: Apache-2.0

"""A sample of a host: its counters and levels at one moment.

A sample is one line of JSON, so that a host can be recorded and replayed. A
value that the host does not report is None. Counters count since the host was
booted; only the difference between two samples has a meaning
(:mod:`hpcvirt.health.rates`).
"""

import dataclasses
from typing import Annotated
from typing import Any

from hpcvirt import serialization

SCHEMA_VERSION = 1

_Count = Annotated[int, serialization.whole(0, 1 << 64)]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class CpuTime:
    """The time of all CPUs by its use, in ticks of the same length.

    :ivar system: in the kernel, with interrupts
    :ivar total: with the time of guests, which user time includes
    """

    total: _Count
    system: _Count
    iowait: _Count
    steal: _Count


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class HugePageUsage:
    """Huge pages of one size in one cell."""

    cell: int
    size_kib: int
    total: int
    free: int


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class HostSample:
    """The state of a host at one moment.

    :ivar time: seconds since 1970; the clock may be set at any time
    :ivar boot_id: changes whenever the host is booted
    :ivar uptime_s: since then
    :ivar online: the CPUs that are online, as the kernel writes them
    :ivar cpus: how many these are
    :ivar shootdowns: TLB shoot-downs; some processors need no interrupts for
        them and do not count them
    :ivar foreign_tasks_s: CPU time of foreign tasks on dedicated CPUs
    :ivar dedicated: the number of dedicated CPUs
    :ivar busiest: the foreign task with the most time since the last sample
    :ivar throttles: how often the cores and sockets of the CPUs were slowed
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
    huge_pages: tuple[HugePageUsage, ...] = ()
    foreign_tasks_s: float | None = dataclasses.field(
        default=None, metadata=serialization.keep_key('strangers_s'))
    dedicated: int = 0
    busiest: str | None = None
    corrected_errors: _Count | None = None
    throttles: _Count | None = None


def read(plain: Any, where: str) -> HostSample:
    """Read a sample.

    :param plain: what :func:`hpcvirt.serialization.dump` made of one
    :raises InvalidInput: if it is of another form
    """
    serialization.require_version(plain, SCHEMA_VERSION, where)
    return serialization.load(HostSample, plain, where)

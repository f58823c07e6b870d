# SPDX-License-Identifier: Apache-2.0

"""A sample of a host: its counters and levels at one moment, unit by unit.

A unit is what can be slow by itself: a CPU, a guest, a memory controller, a
device. Sums over a whole host hide one slow unit among many.
"""

import dataclasses
import enum
from collections.abc import Mapping

#: The unit of what is known of the host as a whole.
HOST = ''


class Quantity(enum.StrEnum):
    """The quantities, with the units of their rates."""

    #: Fractions of the time of a CPU; of the host, a number of CPUs.
    BUSY = 'busy'
    SYSTEM = 'system'
    IOWAIT = 'iowait'
    STEAL = 'steal'
    #: What foreign tasks take of a dedicated CPU.
    FOREIGN_TASKS = 'foreign_tasks'
    #: In a second, on a CPU or the host.
    INTERRUPTS = 'interrupts'
    #: TLB shoot-downs. Some processors need no interrupts for them, and do
    #: not count them.
    SHOOTDOWNS = 'shootdowns'
    #: Pages that the host swapped in and out in a second.
    SWAPPED = 'swapped'
    #: Major page faults of a guest in a second.
    MAJOR_FAULTS = 'major_faults'
    #: Unreclaimable slab, as a fraction of the memory.
    SLAB = 'slab'
    #: How far the frequency of a busy CPU is below that which its maker
    #: promises, as a fraction. A sample holds the frequency as a fraction.
    SLOWDOWN = 'slowdown'
    #: Seconds for which a core or package was throttled in half an hour.
    THROTTLED_S = 'throttled_s'
    #: Corrected errors of a memory controller in half an hour.
    CORRECTED_ERRORS = 'corrected_errors'
    #: Uncorrected ones since the host was booted.
    UNCORRECTED_ERRORS = 'uncorrected_errors'
    #: What a PCIe link lacks of the bandwidth that both of its ends have.
    LINK_LOSS = 'link_loss'


#: The values of each unit. A quantity that the host does not report is
#: missing.
Values = Mapping[Quantity, Mapping[str, float]]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class HostSample:
    """The state of a host at one moment.

    :ivar time: seconds since 1970; the clock may be set at any time
    :ivar uptime_s: since the host was booted
    :ivar huge_pages: by cell and size in KiB, how many there are and how many
        are free
    :ivar values: counters, in seconds if they are of time, and levels
    """

    time: float
    uptime_s: float
    values: Values
    ksm_pages: int | None = None
    slab_kib: int | None = None
    huge_pages: Mapping[tuple[str, ...], tuple[int, int]] = (
        dataclasses.field(default_factory=dict))

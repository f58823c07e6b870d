# SPDX-License-Identifier: Apache-2.0

"""Read the facts about the hardware: PCIe links, EDAC, throttling."""

import dataclasses
import re
from collections.abc import Iterator
from collections.abc import Mapping

from hpcvirt.audit.reading import cpu
from hpcvirt.audit.reading import files as files_module
from hpcvirt.audit.reading.facts import Fact
from hpcvirt.audit.reading.facts import FactGroup
from hpcvirt.audit.reading.files import Files
from hpcvirt.topology import hardware_state


@dataclasses.dataclass(frozen=True, slots=True)
class MemoryController:
    """A memory controller that EDAC watches, with its errors since the boot.

    :ivar channels: (type of the memory, channel) -> its MiB; empty if the
        driver does not say
    """

    name: str
    corrected: int
    uncorrected: int
    channels: Mapping[tuple[str, str], int]


def _uptime_s(files: Files) -> int:
    match = re.match('([0-9]{1,12})[.]', files.need('proc/uptime'))
    if match is None:
        raise files_module.make_unknown('proc/uptime', 'is not a time')
    return int(match[1])


def _limits(files: Files) -> Mapping[int, frozenset[int]]:
    found: dict[int, frozenset[int]] = {}
    pstate = f'{hardware_state.CPU}/intel_pstate'
    share = (files.need_number(f'{pstate}/max_perf_pct')
             if files.exists(pstate) else 100)
    for here, cpus in cpu.policies(files):
        most = files.need_number(f'{here}/cpuinfo_max_freq')
        if files.need(f'{here}/scaling_driver') == 'acpi-cpufreq':
            # Its limits are states, and its maximum is the boost beyond them.
            most = max(map(int, re.findall('[0-9]{1,9}', files.need(
                f'{here}/scaling_available_frequencies'))), default=most)
        limit = min(files.need_number(f'{here}/scaling_max_freq'),
                    files.number(f'{here}/bios_limit', here) or most)
        percent = min(share, 100 * limit // max(1, most))
        found[percent] = found.get(percent, frozenset()) | cpus
    return found


def _throttled(files: Files) -> int | None:
    return max((count or 0 if time_ms is None else time_ms // 1000
                for _, count, time_ms in hardware_state.read_throttling(
                    files.setting, files.names)
                if count is not None or time_ms is not None), default=None)


def _controllers(files: Files) -> Iterator[MemoryController]:
    for name, corrected, uncorrected in hardware_state.read_memory_errors(
            files.setting, files.names):
        here = f'{hardware_state.EDAC}/{name}'
        if corrected is None or uncorrected is None:
            raise files_module.make_unknown(here, 'counts no errors')
        channels: dict[tuple[str, str], int] = {}
        for module in files.names(here, here):
            there = f'{here}/{module}'
            if re.fullmatch('(?:dimm|rank)[0-9]+', module):
                place = re.search('channel [0-9]+',
                                  files.need(f'{there}/dimm_location'))
                if place:
                    key = files.need(f'{there}/dimm_mem_type'), place[0]
                    channels[key] = channels.get(key, 0) + files.need_number(
                        f'{there}/size')
        yield MemoryController(name, corrected, uncorrected, channels)


class HardwareFacts(FactGroup):
    """How well the hardware does."""

    uptime_s = Fact(_uptime_s)
    #: The percentage of their highest frequency that CPUs may have -> CPUs.
    limits = Fact(_limits)
    #: The longest time since the boot for which a CPU was throttled, in
    #: seconds, or how often if the kernel only counts that; None if it does
    #: neither.
    throttled = Fact(_throttled)
    #: Of storage, network and display devices and accelerators.
    links = Fact(lambda files: tuple(hardware_state.read_links(
        files.setting, files.names)))
    #: Empty without a driver of EDAC.
    controllers = Fact(lambda files: tuple(_controllers(files)))

# SPDX-License-Identifier: Apache-2.0

"""Read the facts about the hardware: PCIe links, EDAC, throttling."""

import re
from collections.abc import Iterator
from collections.abc import Mapping

from hpcvirt.audit import facts
from hpcvirt.audit.fact import fact
from hpcvirt.audit.reading import cpu
from hpcvirt.audit.reading import files as files_module

Files = files_module.Files

_CPU = 'sys/devices/system/cpu'
_PCI = 'sys/bus/pci/devices'
_EDAC = 'sys/devices/system/edac'

_BRIDGE = '0604'
#: Base classes of devices: storage, network, display, accelerator.
_KINDS = ('01', '02', '03', '12')


def read(files: Files) -> facts.HardwareFacts:
    """Read the hardware."""
    return facts.HardwareFacts(
        uptime_s=fact(lambda: _uptime_s(files)),
        limits=fact(lambda: _limits(files)),
        throttled=fact(lambda: _throttled(files)),
        links=fact(lambda: tuple(_links(files))),
        controllers=fact(lambda: tuple(_controllers(files))))


def _uptime_s(files: Files) -> int:
    match = re.match('([0-9]{1,12})[.]', files.need('proc/uptime'))
    if match is None:
        raise files_module.make_unknown('proc/uptime', 'is not a time')
    return int(match[1])


def _limits(files: Files) -> Mapping[int, frozenset[int]]:
    found: dict[int, frozenset[int]] = {}
    pstate = f'{_CPU}/intel_pstate'
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
    worst = None
    for name in files.names(_CPU, _CPU):
        here = f'{_CPU}/{name}/thermal_throttle'
        if re.fullmatch('cpu[0-9]+', name) and files.exists(here):
            for part in ('core', 'package'):  # some have only the first
                count = files.number(f'{here}/{part}_throttle_count', here)
                if count is None and part == 'core':
                    raise files_module.make_unknown(here, 'has no count')
                time_ms = files.number(
                    f'{here}/{part}_throttle_total_time_ms', here)
                worst = max(worst or 0, (count or 0) if time_ms is None
                            else time_ms // 1000)
    return worst


def _links(files: Files) -> Iterator[facts.Link]:
    kinds = {address: files.need(f'{_PCI}/{address}/class').removeprefix('0x')
             for address in files.names(_PCI, 'sys')}
    ports = {}
    for address, kind in kinds.items():
        bus = (files.setting(f'{_PCI}/{address}/secondary_bus_number')
               if kind.startswith(_BRIDGE) else None)
        if bus and re.fullmatch('[0-9]{1,3}', bus):
            below = f'{address.partition(":")[0]}:{int(bus):02x}'
            ports[below] = _link(files, f'{_PCI}/{address}/max')
    for address, kind in kinds.items():
        if kind[:2] in _KINDS:
            now, card = (_link(files, f'{_PCI}/{address}/{which}')
                         for which in ('current', 'max'))
            slot = ports.get(address.rpartition(':')[0])
            if now and card and slot:  # chips on a root bus have no link
                yield facts.Link(address.lower(), kind[:2], now, card, slot)


def _link(files: Files, place: str) -> tuple[float, int] | None:
    """Read a speed and a width; None without a link, as virtual functions."""
    speed = re.match(r'([0-9]{1,3}(?:\.[0-9])?) GT/s',
                     files.setting(f'{place}_link_speed') or '')
    lanes = files.setting(f'{place}_link_width') or ''
    return ((float(speed[1]), int(lanes)) if speed and re.fullmatch(
        '[1-9]|[12][0-9]|3[0-2]', lanes) else None)


def _controllers(files: Files) -> Iterator[facts.MemoryController]:
    for name in files.names(f'{_EDAC}/mc', 'sys'):
        here = f'{_EDAC}/mc/{name}'
        if not re.fullmatch('mc[0-9]+', name):
            continue
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
        yield facts.MemoryController(
            name, files.need_number(f'{here}/ce_count'),
            files.need_number(f'{here}/ue_count'), channels)

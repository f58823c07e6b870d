# SPDX-License-Identifier: Apache-2.0

"""Watch the hardware of a host while benchmarks load it.

Clocks and links must be above the limits of ``hpcvirt host watch``, and error
counters must not grow. What a host does not report is named, and nothing
follows from it.
"""

import collections
import contextlib
import pathlib
import re
import statistics
import time
from collections.abc import Iterator

from hpcvirt import exception
from hpcvirt import words
from hpcvirt.acceptance import acceptance
from hpcvirt.bench.execute import environment
from hpcvirt.bench.execute import executor
from hpcvirt.bench.execute import machine_facts
from hpcvirt.health import sampler
from hpcvirt.health import signature
from hpcvirt.health.signature import Quantity
from hpcvirt.model import cpuset
from hpcvirt.topology import hardware_state

#: Seconds between two looks.
LOOK_S = 15.0

_PCI = 'sys/bus/pci/devices'
_CPU = 'sys/devices/system/cpu'
_EDAC = 'sys/devices/system/edac/mc'
_NET = 'sys/class/net/*/device/net'
_IB = 'sys/class/infiniband/*/ports/*'
#: The files that are watched.
_FILES = (
    'proc/uptime', f'{_PCI}/*/class', f'{_PCI}/*/secondary_bus_number',
    f'{_PCI}/*/*_link_speed', f'{_PCI}/*/*_link_width',
    f'{_PCI}/*/aer_dev_*', 'sys/block/*/device/ioerr_cnt',
    f'{_EDAC}/mc*/[cu]e_count', f'{_EDAC}/mc*/*/size', f'{_IB}/rate',
    f'{_IB}/counters/link_downed', f'{_IB}/counters/port_rcv_errors',
    f'{_IB}/counters/symbol_error', f'{_NET}/*/speed',
    f'{_NET}/*/carrier_changes', f'{_NET}/*/statistics/[rt]x_errors',
    f'{_CPU}/cpu*/acpi_cppc/nominal_freq',
    f'{_CPU}/cpu*/cpufreq/base_frequency',
    f'{_CPU}/cpu*/cpufreq/scaling_cur_freq',
    f'{_CPU}/cpu*/thermal_throttle/*_time_ms', machine_facts.SIBLINGS,
    'proc/stat:^cpu', 'proc/interrupts:^ *MCE:')
_NAMES = 'proc/[0-9]*/comm'
_GUESTS = ('qemu', 'cloud-hyper')

#: What may be low by less than the limit of its sign: the name of its check,
#: and what it is compared with.
_LOW = {Quantity.SLOWDOWN: ('clock', 'its nominal frequency'),
        Quantity.LINK_LOSS: ('PCIe links', 'what both of its ends support')}
#: How much counters may grow, and their files: firmware and drivers count
#: single errors that mean nothing.
_FEW = 9
_COUNTERS = {
    'milliseconds of throttling': (36_000, (
        'core_throttle_total_time_ms', 'package_throttle_total_time_ms')),
    'corrected memory errors': (_FEW, ('ce_count',)),
    'uncorrected memory errors': (0, ('ue_count',)),
    'machine checks': (0, ('interrupts',)),
    'uncorrected PCIe errors': (0, ('aer_dev_fatal', 'aer_dev_nonfatal')),
    'corrected PCIe errors and replays': (_FEW, ('aer_dev_correctable',)),
    'disk errors': (_FEW, ('ioerr_cnt',)),
    'losses of a network link': (0, ('carrier_changes', 'link_downed')),
    'network errors': (_FEW, ('rx_errors', 'tx_errors', 'port_rcv_errors',
                              'symbol_error'))}
#: Facts of a machine, and the files that they are from.
_PARTS = {'memory modules in MiB': 'size', 'network links in Mb/s': 'speed',
          'InfiniBand ports': 'rate'}

_DMI = 'sys/class/dmi/id'
#: Fact to its file of DMI.
_OF_FIRMWARE = {'vendor': 'sys_vendor', 'product': 'product_name',
                'serial number': 'product_serial', 'firmware': 'bios_version',
                'firmware date': 'bios_date', 'board': 'board_name'}
#: Fact to its name in the environment of a sample.
_OF_ENVIRONMENT = {
    'CPU': 'cpu.model', 'microcode': 'cpu.microcode',
    'CPUs online': 'cpu.online', 'SMT': 'cpu.smt', 'kernel': 'kernel',
    'kernel command line': 'kernel.cmdline'}


def count_guests(place: executor.Executor) -> int:
    """Count the guests that run on a machine.

    :raises Unreachable: if the machine does not answer
    """
    found = machine_facts.read(place, _NAMES)
    return sum(found.line(name).startswith(_GUESTS) for name in found)


class HardwareWatch(sampler.HostSampler):
    """Watches the hardware of a machine, from now on.

    :raises Unreachable: if it does not answer
    """

    def __init__(self, place: executor.Executor) -> None:
        super().__init__(pathlib.Path(place.name))
        self._place = place
        self._first = self._last = self.take()
        self._before = self._files
        self._rates: list[signature.Values] = []
        self._looked = time.monotonic()

    def take(self) -> signature.HostSample:
        """Read the files, and take a sample of them."""
        self._files = machine_facts.read(self._place, *_FILES)
        return super().take()

    def _text(self, name: str) -> str:
        return self._files.text(name)

    def _names(self, name: str) -> list[str]:
        return self._files.names(name)

    def glance(self) -> None:
        """Look now and then; a machine that is busy need not answer."""
        if time.monotonic() - self._looked >= LOOK_S:
            self._looked = time.monotonic()
            with contextlib.suppress(exception.Unreachable):
                self.look()

    def look(self) -> None:
        """Look at the machine.

        :raises Unreachable: if it does not answer
        """
        now = self.take()
        self._rates.append(
            signature.compute_rates(self._first, self._last, now))
        self._last = now

    def find_cores(self) -> frozenset[int]:
        """Return the first CPU of each core; none if they are unknown."""
        return frozenset(min(cpuset.parse(text)) for _, text in self._find(
            'thread_siblings_list'))

    def describe(self) -> dict[str, str]:
        """Describe the machine to its vendor: facts, the memory, the links.

        Facts that the firmware does not state are left out; only root can read
        the serial number.

        :raises Unreachable: if it does not answer
        """
        firmware = machine_facts.read(self._place, *(
            f'{_DMI}/{name}' for name in _OF_FIRMWARE.values()))
        facts = environment.facts(self._place)
        found = {
            **{name: firmware.line(f'{_DMI}/{file}')
               for name, file in _OF_FIRMWARE.items()},
            **{name: facts.get(key, '')
               for name, key in _OF_ENVIRONMENT.items()}}
        kinds = {kind: [text for _, text in self._find(last)]
                 for kind, last in _PARTS.items()}
        kinds['PCIe links'] = [
            f'class {link.kind} {link.now[0]:g} GT/s x{link.now[1]}'
            for link in hardware_state.read_links(self._text, self._names)]
        return {name: text for name, text in found.items() if text} | {
            kind: ', '.join(f'{count} x {what}' for what, count in sorted(
                collections.Counter(each).items()))
            for kind, each in kinds.items() if each}

    def check(self) -> Iterator[acceptance.GateCheck]:
        """Check what was seen since the beginning."""
        yield _report('reboots', ['the host has rebooted'] if (
            self._last.uptime_s < self._first.uptime_s) else [], 1, 'none')
        for sign in signature.SIGNS:
            for quantity, limit in sign.limits.items():
                if quantity in _LOW:
                    yield self._check_low(quantity, limit)
        for what, (most, names) in _COUNTERS.items():
            grown: dict[str, int] = {}
            for name in names:
                for folder, text in self._find(name):
                    counter = f'{folder}/{name}'
                    before = self._before.text(counter)
                    grown[counter] = _count(text) - _count(before)
            yield _report(what, [
                f'{counter}: {growth}' for counter, growth in grown.items()
                if growth > most], len(grown), f'{most} at most')

    def _check_low(self, quantity: Quantity,
                   limit: float) -> acceptance.GateCheck:
        name, usual = _LOW[quantity]
        seen = [rates[quantity] for rates in self._rates if quantity in rates]
        levels = {unit: statistics.median(
            rates.get(unit, 0.0) for rates in seen)
            for unit in (seen[-1] if seen else ())}
        return _report(name, [
            f'{unit}: {level:.0%} below {usual}'
            for unit, level in levels.items() if level >= limit], len(levels),
            f'less than {limit:.0%} below {usual}')

    def _find(self, last: str) -> Iterator[tuple[str, str]]:
        """Yield the folders of the files with a name, and their texts."""
        for name in self._files:
            folder, _, own = name.rpartition('/')
            if own == last:
                yield folder, self._files.text(name)


def _count(text: str) -> int:
    """Read a counter: the sum of a row, or the total in the last line."""
    return sum(int(word, 0) for word in re.findall(
        r'\b(?:0x[0-9a-f]{1,16}|0|[1-9][0-9]{0,17})\b',
        text.rpartition('\n')[2]))


def _report(name: str, faults: list[str], known: int,
            expected: str) -> acceptance.GateCheck:
    """Report a check of several units; the host may report only some."""
    return acceptance.GateCheck(
        name, not faults if known else None, words.join_names(
            faults, 'faults') or (f'{known} good' if known else
                                  'not reported'), expected)

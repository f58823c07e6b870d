# SPDX-License-Identifier: Apache-2.0

"""Watch the hardware of a host while benchmarks load it.

A shell script reads the files of the kernel, so that the host needs no Python.
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
from hpcvirt.health import sampler
from hpcvirt.health import signature
from hpcvirt.health.signature import Quantity
from hpcvirt.model import cpuset
from hpcvirt.topology import hardware_state

#: Seconds between two looks.
LOOK_S = 15.0

#: Prints the lines of files, each after the name of its file and "=".
_READ = """
cd /
pci=sys/bus/pci/devices cpu=sys/devices/system/cpu
mc=sys/devices/system/edac/mc net=sys/class/net ib=sys/class/infiniband
for file in proc/uptime $pci/*/class $pci/*/secondary_bus_number \\
  $pci/*/*_link_speed $pci/*/*_link_width $pci/*/aer_dev_* \\
  sys/block/*/device/ioerr_cnt $mc/mc*/[cu]e_count $mc/mc*/*/size \\
  $ib/*/ports/*/rate $ib/*/ports/*/counters/link_downed \\
  $ib/*/ports/*/counters/port_rcv_errors \\
  $ib/*/ports/*/counters/symbol_error \\
  $net/*/device/net/*/speed $net/*/device/net/*/carrier_changes \\
  $net/*/device/net/*/statistics/[rt]x_errors \\
  $cpu/cpu*/acpi_cppc/nominal_freq $cpu/cpu*/cpufreq/base_frequency \\
  $cpu/cpu*/cpufreq/scaling_cur_freq $cpu/cpu*/thermal_throttle/*_time_ms \\
  $cpu/cpu*/topology/thread_siblings_list; do
  [ -f "$file" ] && [ -r "$file" ] || continue
  while IFS= read -r line || [ -n "$line" ]; do
    printf '%s=%s\\n' "$file" "$line"
  done < "$file" 2>/dev/null
done
sed -n 's|^cpu|proc/stat=cpu|p' proc/stat
sed -n 's|^ *MCE:|proc/interrupts/MCE=|p' proc/interrupts
"""
_GUESTS = 'grep -lsE "^(qemu|cloud-hyper)" /proc/[0-9]*/comm || :'

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
    'machine checks': (0, ('MCE',)),
    'uncorrected PCIe errors': (0, ('aer_dev_fatal', 'aer_dev_nonfatal')),
    'corrected PCIe errors and replays': (_FEW, ('aer_dev_correctable',)),
    'disk errors': (_FEW, ('ioerr_cnt',)),
    'losses of a network link': (0, ('carrier_changes', 'link_downed')),
    'network errors': (_FEW, ('rx_errors', 'tx_errors', 'port_rcv_errors',
                              'symbol_error'))}
#: Facts of a machine, and the files that they are from.
_PARTS = {'memory modules in MiB': 'size', 'network links in Mb/s': 'speed',
          'InfiniBand ports': 'rate'}

_READ_DMI = """
cd /sys/class/dmi/id && grep -s '' sys_vendor product_name product_serial \\
  bios_version bios_date board_name | sed s/:/=/
"""
#: Fact to its file of DMI, or to its name in the environment of a sample.
_FACTS = {'vendor': 'sys_vendor', 'product': 'product_name',
          'serial number': 'product_serial', 'firmware': 'bios_version',
          'firmware date': 'bios_date', 'board': 'board_name',
          'CPU': 'cpu.model', 'microcode': 'cpu.microcode',
          'CPUs online': 'cpu.online', 'SMT': 'cpu.smt', 'kernel': 'kernel',
          'kernel command line': 'kernel.cmdline'}


def count_guests(place: executor.Executor) -> int:
    """Count the guests that run on a machine.

    :raises Unreachable: if the machine does not answer
    """
    return len(place.run(['sh', '-c', _GUESTS]).stdout.split())


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
        printed = self._place.run(['sh', '-c', _READ]).stdout
        lines: dict[str, list[str]] = {}
        for line in printed.decode('utf-8', 'replace').splitlines():
            name, _, text = line.partition('=')
            lines.setdefault(name, []).append(text)
        self._files = {name: '\n'.join(each).strip()
                       for name, each in lines.items()}
        return super().take()

    def _text(self, name: str) -> str:
        return self._files.get(name, '')

    def _names(self, name: str) -> list[str]:
        return sorted({
            path.removeprefix(f'{name}/').partition('/')[0]
            for path in self._files if path.startswith(f'{name}/')})

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
        facts = environment.facts(self._place) | environment.parse(
            self._place.run(['sh', '-c', _READ_DMI]).stdout)
        kinds = {kind: [text for _, text in self._find(last)]
                 for kind, last in _PARTS.items()}
        kinds['PCIe links'] = [
            f'class {link.kind} {link.now[0]:g} GT/s x{link.now[1]}'
            for link in hardware_state.read_links(self._text, self._names)]
        return {name: facts[key] for name, key in _FACTS.items()
                if facts.get(key)} | {
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
            grown = {f'{folder}/{name}': _count(text) - _count(
                self._before.get(f'{folder}/{name}', '')) for name in names
                for folder, text in self._find(name)}
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
        for name, text in self._files.items():
            folder, _, own = name.rpartition('/')
            if own == last:
                yield folder, text


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

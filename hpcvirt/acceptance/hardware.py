# SPDX-License-Identifier: Apache-2.0

"""Watch the hardware of a host while benchmarks load it.

The files of the kernel are read by a shell script, so that the host needs no
Python. The signs of a slow host and their limits are those of ``hpcvirt host
watch``. In addition, error counters must not grow. What a host does not report
is named, and nothing follows from it.
"""

import collections
import pathlib
import re
import statistics
import time
from collections.abc import Iterator

from hpcvirt import exception
from hpcvirt.acceptance import gate
from hpcvirt.bench.execute import environment
from hpcvirt.bench.execute import executor
from hpcvirt.health import host_sample
from hpcvirt.health import sampler
from hpcvirt.health import signature
from hpcvirt.model import cpuset
from hpcvirt.topology import hardware_state

#: Seconds between two looks.
LOOK_S = 15.0

_CPU = f'{hardware_state.CPU}/cpu*'
#: Folders, and the files in them.
_FILES = f"""
proc uptime
sys/bus/pci/devices/* aer_dev_correctable aer_dev_fatal aer_dev_nonfatal class
sys/bus/pci/devices/* current_link_speed current_link_width max_link_speed
sys/bus/pci/devices/* max_link_width secondary_bus_number
sys/block/*/device ioerr_cnt
sys/class/infiniband/*/ports/* rate
sys/class/infiniband/*/ports/*/counters link_downed port_rcv_errors
sys/class/infiniband/*/ports/*/counters symbol_error
sys/class/net/*/device/net/* carrier_changes speed
sys/class/net/*/device/net/*/statistics rx_errors tx_errors
{_CPU}/acpi_cppc nominal_freq
{_CPU}/cpufreq base_frequency scaling_cur_freq
{_CPU}/thermal_throttle core_throttle_total_time_ms
{_CPU}/thermal_throttle package_throttle_total_time_ms
{_CPU}/topology thread_siblings_list
{hardware_state.EDAC}/mc* ce_count ue_count
{hardware_state.EDAC}/mc*/* size
"""
_READ = """
cd /
for file in FILES; do
  [ -f "$file" ] && [ -r "$file" ] || continue
  while IFS= read -r line || [ -n "$line" ]; do
    printf '%s=%s\\n' "$file" "$line"
  done < "$file" 2>/dev/null
done
sed -n 's|^cpu|proc/stat=cpu|p' proc/stat
sed -n 's|^ *MCE:|proc/interrupts/MCE=|p' proc/interrupts
""".replace('FILES', ' '.join(
    f'{folder}/{name}' for folder, *names in map(
        str.split, _FILES.strip().splitlines()) for name in names))
_GUESTS = 'grep -lsE "^(qemu|cloud-hyper)" /proc/[0-9]*/comm || :'

#: Sign to the name of its check, and what is found.
_SIGNS = {
    'frequency': ('clock', '{:.0%} below its nominal frequency'),
    'throttling': ('throttling', '{:.0f} s of throttling'),
    'memory-errors': ('corrected memory errors', '{:.0f} errors'),
    'uncorrected-errors': ('uncorrected memory errors', '{:.0f} errors'),
    'link': ('PCIe links', '{:.0%} below what both of its ends support')}
#: What counters count, and how much they may grow: firmware and drivers count
#: single errors that mean nothing.
_FEW = 9
_COUNTERS = {
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

_DMI = {'vendor': 'sys_vendor', 'product': 'product_name',
        'serial number': 'product_serial', 'firmware': 'bios_version',
        'firmware date': 'bios_date', 'board': 'board_name'}
_READ_DMI = """
for name; do
  read -r value 2>/dev/null < "/sys/class/dmi/id/$name" &&
    echo "$name=$value"
done
:
"""
#: Fact to its name in the environment of a sample.
_FACTS = {'CPU': 'cpu.model', 'microcode': 'cpu.microcode',
          'CPUs online': 'cpu.online', 'SMT': 'cpu.smt', 'kernel': 'kernel',
          'kernel command line': 'kernel.cmdline'}


def read_machine(place: executor.Executor) -> dict[str, str]:
    """Read the facts that identify a machine to its vendor.

    Facts that the firmware does not state are left out; only root can read the
    serial number.

    :raises Unreachable: if the machine does not answer
    """
    dmi = environment.parse(place.run(
        ['sh', '-c', _READ_DMI, 'dmi', *_DMI.values()]).stdout)
    facts = environment.facts(place)
    return {name: source[key] for names, source in ((_DMI, dmi),
                                                    (_FACTS, facts))
            for name, key in names.items() if source.get(key)}


def count_guests(place: executor.Executor) -> int:
    """Count the guests that run on a machine.

    :raises Unreachable: if the machine does not answer
    """
    return len(place.run(['sh', '-c', _GUESTS]).stdout.split())


class _RemoteSampler(sampler.HostSampler):
    """Takes samples of another machine.

    :ivar files: what was read for the last sample: path to text
    """

    def __init__(self, place: executor.Executor) -> None:
        super().__init__(pathlib.Path(place.name))
        self._place = place
        self.files: dict[str, str] = {}

    def take(self) -> host_sample.HostSample:
        printed = self._place.run(['sh', '-c', _READ]).stdout
        lines: dict[str, list[str]] = {}
        for line in printed.decode('utf-8', 'replace').splitlines():
            name, _, text = line.partition('=')
            lines.setdefault(name, []).append(text)
        self.files = {name: '\n'.join(each).strip()
                      for name, each in lines.items()}
        return super().take()

    def _text(self, name: str) -> str:
        return self.files.get(name, '')

    def _names(self, name: str) -> list[str]:
        return sorted({
            path.removeprefix(f'{name}/').partition('/')[0]
            for path in self.files if path.startswith(f'{name}/')})

    def links(self) -> list[str]:
        """Describe the PCIe links."""
        return [f'class {link.kind} {link.now[0]:g} GT/s x{link.now[1]}'
                for link in hardware_state.read_links(self._text,
                                                      self._names)]


class HardwareWatch:
    """Watches the hardware of a machine, from now on.

    :raises Unreachable: if it does not answer
    """

    def __init__(self, place: executor.Executor) -> None:
        self._sampler = _RemoteSampler(place)
        self._first = self._last = self._sampler.take()
        self._before = self._sampler.files
        self._rates: list[host_sample.Values] = []
        self._looked = time.monotonic()

    def look(self, *, at_once: bool = False) -> None:
        """Look at the machine, unless the last look was just before.

        :param at_once: look in any case, and raise Unreachable if the machine
            does not answer; a busy machine need not
        """
        if not at_once and time.monotonic() - self._looked < LOOK_S:
            return
        self._looked = time.monotonic()
        try:
            now = self._sampler.take()
        except exception.Unreachable:
            if at_once:
                raise
            return
        self._rates.append(
            host_sample.compute_rates(self._first, self._last, now))
        self._last = now

    def find_cores(self) -> frozenset[int]:
        """Return the first CPU of each core; none if they are unknown."""
        return frozenset(min(cpuset.parse(text)) for _, text in self._find(
            'thread_siblings_list'))

    def describe(self) -> dict[str, str]:
        """Describe the memory and the links."""
        kinds = {name: [text for _, text in self._find(last)
                        if text not in ('-1', '0')]
                 for name, last in _PARTS.items()}
        kinds['PCIe links'] = self._sampler.links()
        return {kind: ', '.join(f'{count} x {what}' for what, count in sorted(
            collections.Counter(each).items()))
            for kind, each in kinds.items() if each}

    def check(self) -> Iterator[gate.GateCheck]:
        """Check what was seen since the beginning."""
        yield _report('reboots', ['the host has rebooted'] if (
            self._last.uptime_s < self._first.uptime_s) else [], 1, 'none')
        for sign in signature.SIGNS:
            if sign.name in _SIGNS:
                yield self._check_sign(sign)
        for what, (most, names) in _COUNTERS.items():
            grown = {f'{folder}/{name}': _count(text) - _count(
                self._before.get(f'{folder}/{name}', '')) for name in names
                for folder, text in self._find(name)}
            yield _report(what, [
                f'{counter}: {growth}' for counter, growth in grown.items()
                if growth > most], len(grown), f'{most} at most')

    def _check_sign(self, sign: signature.Sign) -> gate.GateCheck:
        name, words = _SIGNS[sign.name]
        ((quantity, limit),) = sign.limits.items()
        known = [rates[quantity] for rates in self._rates
                 if quantity in rates]
        levels = known[-1] if known else {}
        if sign.name == 'frequency':
            # It is of a moment; all others count from the beginning.
            levels = {unit: statistics.median(
                rates.get(unit, 0.0) for rates in known) for unit in levels}
        return _report(name, [
            f'{unit}: {words.format(level)}' for unit, level in levels.items()
            if level >= limit], len(levels), 'less than '
            + words.format(limit))

    def _find(self, last: str) -> Iterator[tuple[str, str]]:
        """Yield the folders of the files with a name, and their texts."""
        for name, text in self._sampler.files.items():
            folder, _, own = name.rpartition('/')
            if own == last:
                yield folder, text


def _count(text: str) -> int:
    """Read a counter: the sum of a row, or the total in the last line."""
    return sum(int(word, 0) for word in re.findall(
        r'\b(?:0x[0-9a-f]{1,16}|0|[1-9][0-9]{0,17})\b',
        text.rpartition('\n')[2]))


def _report(name: str, faults: list[str], known: int,
            expected: str) -> gate.GateCheck:
    """Report a check of several units; the host may report only some."""
    found = '; '.join(faults[:4]) + (
        f'; {len(faults) - 4} more' if len(faults) > 4 else '')
    return gate.GateCheck(
        name, not faults if known else None,
        found or (f'{known} good' if known else 'not reported'), expected)

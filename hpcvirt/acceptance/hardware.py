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
from collections.abc import Iterator
from collections.abc import Mapping

from hpcvirt.acceptance import gate
from hpcvirt.bench.execute import environment
from hpcvirt.bench.execute import executor
from hpcvirt.health import host_sample
from hpcvirt.health import sampler
from hpcvirt.health import signature
from hpcvirt.model import cpuset
from hpcvirt.topology import hardware_state

_CPU = f'{hardware_state.CPU}/cpu*'
_BOOT = 'proc/sys/kernel/random/boot_id'
#: Folders, and the files in them.
_FILES = f"""
proc uptime
proc/sys/kernel/random boot_id
sys/bus/pci/devices/* aer_dev_correctable aer_dev_fatal aer_dev_nonfatal class
sys/bus/pci/devices/* current_link_speed current_link_width max_link_speed
sys/bus/pci/devices/* max_link_width secondary_bus_number
sys/block/*/device ioerr_cnt
sys/class/infiniband/*/ports/* rate state
sys/class/infiniband/*/ports/*/counters link_downed port_rcv_errors
sys/class/infiniband/*/ports/*/counters symbol_error
sys/class/net/*/device/net/* carrier_changes speed
sys/class/net/*/device/net/*/statistics rx_crc_errors rx_errors tx_errors
{_CPU}/acpi_cppc nominal_freq
{_CPU}/cpufreq base_frequency scaling_cur_freq
{_CPU}/thermal_throttle core_throttle_count core_throttle_total_time_ms
{_CPU}/thermal_throttle package_throttle_count package_throttle_total_time_ms
{_CPU}/topology thread_siblings_list
{hardware_state.EDAC}/mc* ce_count ue_count
{hardware_state.EDAC}/mc*/* dimm_mem_type size
"""
_READ = """
cd /
for file in %s; do
  [ -f "$file" ] && [ -r "$file" ] || continue
  while IFS= read -r line || [ -n "$line" ]; do
    printf '%%s=%%s\\n' "$file" "$line"
  done < "$file" 2>/dev/null
done
sed -n 's|^cpu|proc/stat=cpu|p' proc/stat
sed -n 's|^ *MCE:|proc/interrupts/MCE=|p' proc/interrupts
""" % ' '.join(f'{folder}/{name}' for folder, *names in map(
    str.split, _FILES.strip().splitlines()) for name in names)
_GUESTS = 'grep -lsE "^(qemu|cloud-hyper)" /proc/[0-9]*/comm || :'

#: Sign to the name of its check, and what is found.
_SIGNS = {
    'frequency': ('clock', '{:.0%} below its nominal frequency'),
    'throttling': ('throttling', 'throttled for {:.0f} s'),
    'memory-errors': ('corrected memory errors', '{:.0f} errors'),
    'uncorrected-errors': ('uncorrected memory errors', '{:.0f} errors'),
    'link': ('PCIe links', '{:.0%} below what both of its ends support')}
#: Name of a counter to what it counts, and how much it may grow: firmware and
#: drivers count single errors that mean nothing.
_FEW = 9
_COUNTERS = {
    'MCE': ('machine checks', 0),
    'aer_dev_fatal': ('fatal PCIe errors', 0),
    'aer_dev_nonfatal': ('uncorrected PCIe errors', 0),
    'aer_dev_correctable': ('corrected PCIe errors and replays', _FEW),
    'ioerr_cnt': ('disk errors', _FEW),
    'carrier_changes': ('losses of a network link', 0),
    'rx_crc_errors': ('network errors', _FEW),
    'rx_errors': ('network errors', _FEW),
    'tx_errors': ('network errors', _FEW),
    'link_downed': ('losses of an InfiniBand link', 0),
    'port_rcv_errors': ('InfiniBand errors', _FEW),
    'symbol_error': ('InfiniBand errors', _FEW)}

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


class HardwareWatch:
    """Watches the hardware of a machine, from now on.

    :raises Unreachable: also by :meth:`look`, if it does not answer
    """

    def __init__(self, place: executor.Executor) -> None:
        self._sampler = _RemoteSampler(place)
        self._first = self._last = self._sampler.take()
        self._before = self._sampler.files
        self._rates: list[host_sample.Values] = []
        self._clocks: list[Mapping[str, float]] = []

    def look(self) -> None:
        """Look at the machine, under load or at the end."""
        now = self._sampler.take()
        self._rates.append(
            host_sample.compute_rates(self._first, self._last, now))
        self._clocks.append(now.values.get(host_sample.Quantity.SLOWDOWN, {}))
        self._last = now

    def find_cores(self) -> frozenset[int]:
        """Return the first CPU of each core; none if they are unknown."""
        return frozenset(min(cpuset.parse(text)) for _, text in self._find(
            'thread_siblings_list'))

    def describe(self) -> dict[str, str]:
        """Describe what may differ between hosts: memory, links, clocks."""
        files = self._sampler.files
        kinds = {
            'memory modules': [
                f'{files.get(f"{folder}/dimm_mem_type", "")} {text} MiB'
                for folder, text in self._find('size') if text != '0'],
            'PCIe links': [
                f'class {link.kind} {link.now[0]:g} GT/s x{link.now[1]}'
                for link in hardware_state.read_links(
                    files.get, self._sampler._names)],
            'network links': [f'{text} Mb/s' for _, text in self._find('speed')
                              if text.isdecimal()],
            'InfiniBand ports': [
                f'{text} {files.get(f"{folder}/state", "")}'
                for folder, text in self._find('rate')]}
        found = {kind: ', '.join(f'{count} x {what}' for what, count in sorted(
            collections.Counter(each).items()))
            for kind, each in kinds.items() if each}
        clocks = [level for each in self._clocks for level in each.values()]
        if clocks:
            found['clock'] = (f'{statistics.median(clocks):.2f} of the '
                              'nominal frequency')
        return found

    def check(self) -> Iterator[gate.GateCheck]:
        """Check what was seen since the beginning."""
        if self._before.get(_BOOT) != self._sampler.files.get(_BOOT):
            yield gate.GateCheck('reboot', False, 'the host rebooted',
                                'no reboot')
        for sign in signature.SIGNS:
            if sign.name in _SIGNS:
                yield self._check_sign(sign)
        grown: dict[str, list[tuple[int, str]]] = {}
        for name in self._sampler.files:
            folder, _, last = name.rpartition('/')
            if last in _COUNTERS:
                grown.setdefault(_COUNTERS[last][0], []).append((
                    self._count(self._sampler.files, name)
                    - self._count(self._before, name), _unit(folder)))
        for what, most in dict(_COUNTERS.values()).items():
            yield _report(what, [
                f'{unit}: {growth}' for growth, unit in grown.get(what, ())
                if growth > most], len(grown.get(what, ())),
                f'{most} at most')

    def _check_sign(self, sign: signature.Sign) -> gate.GateCheck:
        name, words = _SIGNS[sign.name]
        ((quantity, limit),) = sign.limits.items()
        known = [rates[quantity] for rates in self._rates
                 if quantity in rates]
        last = known[-1] if known else {}
        # Frequencies are of a moment; all others count from the beginning.
        levels = {unit: statistics.median(
            rates.get(unit, 0.0) for rates in known)
            for unit in last} if sign.name == 'frequency' else last
        return _report(name, [
            f'{unit}: {words.format(level)}' for unit, level in levels.items()
            if level >= limit], len(levels), f'less than '
            f'{words.format(limit)}')

    def _find(self, last: str) -> Iterator[tuple[str, str]]:
        for name, text in self._sampler.files.items():
            folder, _, own = name.rpartition('/')
            if own == last:
                yield folder, text

    @staticmethod
    def _count(files: Mapping[str, str], name: str) -> int:
        """Read a counter: the sum of a row, or the total in the last line."""
        last = files.get(name, '').rpartition('\n')[2]
        return sum(int(word, 0) for word in re.findall(
            r'\b(?:0x[0-9a-f]{1,16}|0|[1-9][0-9]{0,17})\b', last))


def _report(name: str, faults: list[str], known: int,
            expected: str) -> gate.GateCheck:
    """Report a check of several units.

    :param known: how many units the host reports
    """
    if not faults:
        return gate.GateCheck(name, True if known else None,
                             f'{known} good' if known else 'not reported',
                             expected)
    more = f' and {len(faults) - 4} more' if len(faults) > 4 else ''
    return gate.GateCheck(name, False, '; '.join(faults[:4]) + more, expected)


def _unit(folder: str) -> str:
    words = [word for word in folder.split('/') if word not in (
        'statistics', 'counters', 'device', 'ports')]
    return ' '.join(words[-2:] if 'infiniband' in words else words[-1:])

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

"""Probe the size of the machine that a benchmark is sized for."""

from hpcvirt import exception
from hpcvirt.bench.catalogue import sizing
from hpcvirt.bench.execute import executor

#: Prints the CPUs that a process may use, the memory in KiB, the NUMA cells
#: with CPUs, and the caches of the CPUs, one "name value" a line.
PROBE = """
echo cpus "$(nproc)"
sed -n 's/^MemTotal: *\\([0-9]*\\).*/memory_kib \\1/p' /proc/meminfo
cells=0
for node in /sys/devices/system/node/node[0-9]*; do
  [ -n "$(cat "$node/cpulist" 2>/dev/null)" ] && cells=$((cells + 1))
done
echo cells "$cells"
for cache in /sys/devices/system/cpu/cpu*/cache/index*; do
  [ -r "$cache/size" ] || continue
  [ "$(cat "$cache/type")" = Instruction ] && continue
  echo cache "$(cat "$cache/level")" "$(cat "$cache/size")" \
    "$(cat "$cache/shared_cpu_list")"
done | sort -u
"""


def probe(place: executor.Executor) -> sizing.Machine:
    """Count the CPUs, memory, cells and last-level caches of a machine.

    :raises Unreachable: if it does not answer, or its answer lacks them
    """
    printed = place.run(['sh', '-c', PROBE]).stdout.decode('ascii', 'replace')
    try:
        return parse(printed)
    except (ValueError, KeyError) as exc:
        raise exception.Unreachable(
            f'{place.name}: cannot count its CPUs and memory') from exc


def parse(printed: str) -> sizing.Machine:
    """Read what the script prints."""
    values: dict[str, int] = {}
    caches: dict[int, dict[str, int]] = {}
    for line in printed.splitlines():
        name, *rest = line.split()
        if name == 'cache':
            level, size, cpus = rest
            caches.setdefault(int(level), {})[cpus] = _kib(size)
        else:
            values[name] = int(rest[0])
    last = caches[max(caches)] if caches else {}
    return sizing.Machine(
        cpus=values['cpus'], memory_mib=values['memory_kib'] // 1024,
        cells=max(1, values['cells']), llc_kib=sum(last.values()) or None)


def _kib(size: str) -> int:
    factor = {'K': 1, 'M': 1024, 'G': 1024 ** 2}[size[-1]]
    return int(size[:-1]) * factor

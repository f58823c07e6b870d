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

"""How large the place is that a benchmark is sized for."""

from hpcvirt import exception
from hpcvirt.bench.catalogue import sizing
from hpcvirt.bench.execute import executor

#: Prints CPUs that a process may use, KiB of memory, cells with CPUs, and
#: KiB of all last-level caches behind these CPUs, one "name value" a line.
ASK = """
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


def observe(place: executor.Executor) -> sizing.Machine:
    """Ask a place for its CPUs, memory, cells and last-level caches.

    :raises Unreachable: if it does not answer, or not in these terms
    """
    printed = place.run(['sh', '-c', ASK]).stdout.decode('ascii', 'replace')
    try:
        return parse(printed)
    except (ValueError, KeyError) as exc:
        raise exception.Unreachable(
            f'{place.name}: cannot tell its CPUs and memory') from exc


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

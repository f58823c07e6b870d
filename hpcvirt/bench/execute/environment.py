# SPDX-License-Identifier: Apache-2.0

"""Capture with every sample what its figures depend on besides the program.

One shell script prints ``name=value`` lines. It needs a POSIX shell, /proc
and /sys only, and leaves out what the place does not have. It captures what
is compared between the sides and what explains a slow figure: CPU model and
microcode, kernel and its command line, mitigations, hypervisor, pages, KSM,
governor, NUMA layout, load and stolen time, the program and the libraries that
it is linked with.
"""

from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.bench.execute import executor

#: The longest value that is kept; CPU flags are about 1,500 characters.
LONGEST = 4000

#: Takes the words of a command, and records those that are programs. The shell
#: itself reads wherever possible: starting a program takes long in an emulated
#: guest.
FACTS = """
fact() { [ -z "$2" ] || printf '%s=%s\\n' "$1" "$2"; }
file() {
  [ -r "$2" ] || return
  value=; IFS= read -r value 2>/dev/null < "$2"; fact "$1" "$value"
}
flags=
while IFS= read -r line; do
  case $line in
  'model name'*) fact cpu.model "${line#*: }" ;;
  microcode*) fact cpu.microcode "${line#*: }" ;;
  flags*|Features*) flags=${line#*: }; fact cpu.flags "$flags" ;;
  '') break ;;
  esac
done < /proc/cpuinfo
file cpu.online /sys/devices/system/cpu/online
file cpu.smt /sys/devices/system/cpu/smt/active
file kvm.ept /sys/module/kvm_intel/parameters/ept
file kvm.npt /sys/module/kvm_amd/parameters/npt
file cpu.governor /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor
file cpu.no_turbo /sys/devices/system/cpu/intel_pstate/no_turbo
file cpu.boost /sys/devices/system/cpu/cpufreq/boost
for bug in /sys/devices/system/cpu/vulnerabilities/*; do
  file "mitigation.${bug##*/}" "$bug"
done
file clocksource \
  /sys/devices/system/clocksource/clocksource0/current_clocksource
file kernel /proc/sys/kernel/osrelease
file kernel.version /proc/version
file kernel.cmdline /proc/cmdline
file kernel.numa_balancing /proc/sys/kernel/numa_balancing
file boot_id /proc/sys/kernel/random/boot_id
file host /proc/sys/kernel/hostname
case " $flags " in
*' hypervisor '*) fact virtual yes ;;
*) fact virtual no ;;
esac
file virtual.vendor /sys/class/dmi/id/sys_vendor
file virtual.product /sys/class/dmi/id/product_name
file pages.thp /sys/kernel/mm/transparent_hugepage/enabled
file pages.thp_defrag /sys/kernel/mm/transparent_hugepage/defrag
file pages.ksm /sys/kernel/mm/ksm/run
read -r name value unit < /proc/meminfo
[ "$name" = MemTotal: ] && fact memory.total_kib "$value"
for pool in /sys/kernel/mm/hugepages/hugepages-*; do
  file "pages.${pool##*-}" "$pool/nr_hugepages"
done
for node in /sys/devices/system/node/node[0-9]*; do
  file "numa.${node##*/}" "$node/cpulist"
done
fact arch "$(uname -m)"
fact libc "$(getconf GNU_LIBC_VERSION 2>/dev/null)"
for program in gcc gfortran mpirun; do
  command -v $program > /dev/null 2>&1 &&
    $program --version 2>/dev/null |
    { IFS= read -r value; fact $program "$value"; }
done
for word; do
  program=$(command -v "$word" 2>/dev/null) || continue
  [ -f "$program" ] && [ -x "$program" ] || continue
  sum=$(sha256sum < "$program") && fact "program.${word##*/}" "${sum%% *}"
  ldd "$program" 2>/dev/null | while read -r name arrow path rest; do
    case $name in *blas*|*lapack*|*mkl*|*mpi*|*fftw*|*gomp*)
      [ -r "$path" ] && fact "library.$name" \
        "$(readlink -f "$path") $(wc -c < "$path") bytes" ;;
    esac
  done
done
:
"""

#: Values of :data:`LOAD` that only grow.
_COUNTERS = frozenset({'ticks', 'read_kib'})

#: What changes while a sample runs; captured before and after it.
LOAD = """
read load rest < /proc/loadavg && echo "load=$load"
read name ticks < /proc/stat && echo "ticks=$ticks"
sed -n 's/^SwapFree: *\\([0-9]*\\).*/swap_free_kib=\\1/p' /proc/meminfo
read seconds rest < /proc/uptime && echo "uptime_s=$seconds"
read one five fifteen running rest < /proc/loadavg &&
  echo "running=${running%/*}"
while read -r name value; do
  [ "$name" = pgpgin ] && echo "read_kib=$value" && break
done < /proc/vmstat
:
"""


def facts(place: executor.Executor,
          command: Sequence[str] = ()) -> dict[str, str]:
    """Capture what stays the same during a sample.

    :param command: its programs are recorded, with their libraries
    :raises Unreachable: if the place does not answer
    """
    return parse(place.run(['sh', '-c', FACTS, 'facts', *command]).stdout)


def load(place: executor.Executor) -> dict[str, str]:
    """Capture the present load.

    :raises Unreachable: if the place does not answer
    """
    return parse(place.run(['sh', '-c', LOAD]).stdout)


def parse(printed: bytes) -> dict[str, str]:
    """Read what the scripts print; lines of another form are ignored."""
    values: dict[str, str] = {}
    for line in printed.decode('utf-8', 'replace').splitlines():
        name, equals, value = line.partition('=')
        if equals and name and not name.startswith(' '):
            values[name] = ' '.join(value.split())[:LONGEST]
    return values


def describe_load(before: Mapping[str, str],
                  after: Mapping[str, str]) -> dict[str, str]:
    """Describe the load before, during and after a sample.

    :param before: from :func:`load`
    :param after: from :func:`load`
    :returns: ``load.before``, ``load.after``, ``uptime_s.before``, what was
        read from disks meanwhile (``disk_read_mib``), and the shares of CPU
        time in percent that were stolen (``steal_percent``) or spent waiting
        for I/O (``iowait_percent``)
    """
    change = {f'{name}.before': value for name, value in before.items()
              if name not in _COUNTERS}
    change.update({f'{name}.after': value for name, value in after.items()
                   if name not in _COUNTERS})
    read = [now.get('read_kib', '') for now in (before, after)]
    if all(number.isdigit() for number in read):
        change['disk_read_mib'] = str((int(read[1]) - int(read[0])) // 1024)
    spent = [late - early for early, late in
             zip(_ticks(before), _ticks(after), strict=False)]
    # Guest time is counted in user time as well: the first eight columns
    # of /proc/stat are disjoint (proc(5)).
    total = sum(spent[:8])
    if total > 0 and len(spent) >= 8:
        change['iowait_percent'] = f'{100 * spent[4] / total:.2f}'
        change['steal_percent'] = f'{100 * spent[7] / total:.2f}'
    return change


def _ticks(load_now: Mapping[str, str]) -> list[int]:
    words = load_now.get('ticks', '').split()
    return [int(word) for word in words if word.isdigit()]

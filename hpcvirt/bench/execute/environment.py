# SPDX-License-Identifier: Apache-2.0

"""Capture the environment of a sample, on which its figures depend.

A shell script prints ``name=value`` lines. It needs only a POSIX shell, /proc
and /sys, and leaves out what the machine does not have. It captures what must
be equal on both sides and what explains a slow figure: CPU model and
microcode, kernel and its command line, mitigations, hypervisor, page sizes,
KSM, governor, NUMA layout, load and steal time, the program and the libraries
that it is linked with.
"""

from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import words
from hpcvirt.bench.execute import executor

#: Longer values are cut; CPU flags are about 1,500 characters.
LONGEST = 4000

#: Its arguments are the words of a command; it records those that are
#: programs. It uses builtins of the shell where possible, since starting a
#: program takes long in an emulated guest.
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
for device in /sys/class/infiniband/*; do
  file "link.${device##*/}" "$device/ports/1/rate"
done
for device in /sys/class/net/*; do
  [ -e "$device/device" ] && file "link.${device##*/}" "$device/speed"
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

#: Prints what changes while a sample runs; it runs before and after a sample.
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
    """Capture the facts that do not change during a sample.

    :param command: the programs in it are recorded, with their libraries
    :raises Unreachable: if the machine does not answer
    """
    return parse(place.run(['sh', '-c', FACTS, 'facts', *command]).stdout)


def load(place: executor.Executor) -> dict[str, str]:
    """Capture the current load.

    :raises Unreachable: if the machine does not answer
    """
    return parse(place.run(['sh', '-c', LOAD]).stdout)


def parse(printed: bytes) -> dict[str, str]:
    """Parse the output of the scripts; lines of another form are ignored."""
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
    :returns: ``load.before``, ``load.after``, ``uptime_s.before`` and so on,
        ``disk_read_mib`` for the sample, and ``steal_percent`` and
        ``iowait_percent`` of its CPU time
    """
    change = {f'{name}.before': value for name, value in before.items()
              if name not in _COUNTERS}
    change.update({f'{name}.after': value for name, value in after.items()
                   if name not in _COUNTERS})
    read_before, read_after = (words.read_whole(now.get('read_kib', ''))
                               for now in (before, after))
    if read_before is not None and read_after is not None:
        change['disk_read_mib'] = str((read_after - read_before) // 1024)
    spent = [late - early for early, late in
             zip(_ticks(before), _ticks(after), strict=False)]
    # The first eight columns of /proc/stat are disjoint; user time includes
    # guest time (proc(5)).
    total = sum(spent[:8])
    if total > 0 and len(spent) >= 8:
        change['iowait_percent'] = f'{100 * spent[4] / total:.2f}'
        change['steal_percent'] = f'{100 * spent[7] / total:.2f}'
    return change


def _ticks(load_now: Mapping[str, str]) -> list[int]:
    columns = map(words.read_whole, load_now.get('ticks', '').split())
    return [ticks for ticks in columns if ticks is not None]

# SPDX-License-Identifier: Apache-2.0

"""Change the state of this machine, and check the findings of an audit.

It runs as root on an emulated machine; flips.py starts it.
"""

import subprocess
import sys

from hpcvirt.audit import audit
from hpcvirt.audit.reading import host

_MM = '/sys/kernel/mm'
_NODE = '/sys/devices/system/node'
_POOL = 'hugepages/hugepages-2048kB/nr_hugepages'
_WORK = '/sys/devices/virtual/workqueue/cpumask'
_CONF = '/etc/nova/nova.conf'
_RULE = '/etc/udev/rules.d/70-vfs.rules'


def _edit(before: str, after: str) -> tuple[str, str]:
    """Change a line of nova.conf, and change it back."""
    return (f"sed -i 's/^{before}$/{after}/' {_CONF}",
            f"sed -i 's/^{after}$/{before}/' {_CONF}")


def _interrupts(cpus: str) -> str:
    """Move the interrupts of the file systems; they move when they occur."""
    return (f'for f in /proc/irq/*/*-requests; do echo {cpus} > '
            '$(dirname $f)/smp_affinity_list; done; '
            'for i in 1 2 3 4; do echo 3 > /proc/sys/vm/drop_caches; '
            'ls /usr/share/doc > /dev/null; echo > /job/touched; done')


def _program(name: str) -> tuple[str, str]:
    """Run a program of this name, and stop it."""
    return ((f'cp /usr/bin/sleep /run/{name}; /run/{name} 999 > /dev/null & '
            f'echo $! > /run/{name}.pid; sleep 0.2'),
            f'kill $(cat /run/{name}.pid) 2> /dev/null')


#: (the code of a rule, commands that cause a finding, commands that undo them)
INTEL = (
    ('ksm', f'echo 1 > {_MM}/ksm/run', f'echo 2 > {_MM}/ksm/run'),
    ('ksm', *_program('ksmtuned')),
    ('thp', f'echo always > {_MM}/transparent_hugepage/defrag',
     f'echo madvise > {_MM}/transparent_hugepage/defrag'),
    ('huge-pages-even', f'echo 0 > {_NODE}/node1/{_POOL}',
     f'echo 32 > {_NODE}/node1/{_POOL}'),
    ('thp', (f'echo never > {_MM}/transparent_hugepage/enabled; '
     f'for f in {_NODE}/node*/{_POOL}; do echo 0 > $f; done'),
     (f'echo madvise > {_MM}/transparent_hugepage/enabled; '
     f'for f in {_NODE}/node*/{_POOL}; do echo 32 > $f; done')),
    ('khugepaged', (f'echo 0 > {_MM}/transparent_hugepage/khugepaged/defrag; '
     f'for f in {_NODE}/node*/{_POOL}; do echo 0 > $f; done'),
     (f'echo 1 > {_MM}/transparent_hugepage/khugepaged/defrag; '
     f'for f in {_NODE}/node*/{_POOL}; do echo 32 > $f; done')),
    ('zone-reclaim', 'sysctl -q vm.zone_reclaim_mode=1',
     'sysctl -q vm.zone_reclaim_mode=0'),
    ('numa-balancing', 'sysctl -q kernel.numa_balancing=1',
     'sysctl -q kernel.numa_balancing=0'),
    ('swappiness', 'sysctl -q vm.swappiness=60', 'sysctl -q vm.swappiness=1'),
    ('numad', *_program('numad')),
    ('isolation', 'taskset -apc 0-7 1',
     ("for i in $(grep -l VmSize /proc/[0-9]*/status | tr -dc '0-9\\n'); do "
      'taskset -apc 0-1,4-5 $i; done')),
    ('kernel-threads', f'echo ff > {_WORK}',
     (f'echo 33 > {_WORK}; for i in $(grep -L VmSize /proc/[0-9]*/status | '
      "tr -dc '0-9\\n'); do taskset -pc 0-1,4-5 $i; done")),
    ('kernel-threads', 'taskset -pc 0-7 2', 'taskset -pc 0-1,4-5 2'),
    ('irq-affinity', _interrupts('2'), _interrupts('0-1,4-5')),
    ('irqbalance', *_program('irqbalance')),
    ('smt', 'echo 0 > /sys/devices/system/cpu/cpu1/online',
     'echo 1 > /sys/devices/system/cpu/cpu1/online'),
    ('nova-cpu-sets', 'echo 0 > /sys/devices/system/cpu/cpu7/online',
     'echo 1 > /sys/devices/system/cpu/cpu7/online'),
    ('persistent-functions', f'mv {_RULE} /run/rule', f'mv /run/rule {_RULE}'),
    ('tuned', 'echo balanced > /etc/tuned/active_profile',
     'echo site > /etc/tuned/active_profile'),
    ('nova-cpu-sets', *_edit('cpu_shared_set = 0-1,4-5',
                             'cpu_shared_set = 0-2,4-5')),
    ('nova-siblings', *_edit('cpu_dedicated_set = 2-3,6-7',
                             'cpu_dedicated_set = 2-3,6')),
    ('emulator-threads', *_edit('cpu_shared_set = 0-1,4-5', '# none')),
    ('nova-memory', *_edit('reserved_host_memory_mb = 1024',
                           'reserved_host_memory_mb = 512')),
)

AMD = (
    ('nested-paging', 'rmmod kvm_amd; modprobe -d {root} kvm_amd npt=0',
     'rmmod kvm_amd; modprobe -d {root} kvm_amd npt=1'),
    ('nx-huge-pages', 'echo force > /sys/module/kvm/parameters/nx_huge_pages',
     'echo off > /sys/module/kvm/parameters/nx_huge_pages'),
    ('kvm', 'rmmod kvm_amd', 'modprobe -d {root} kvm_amd'),
)


def _codes() -> set[str]:
    return {item.code for item in audit.audit(host.read()).findings}


def main(machine: str, root: str) -> int:
    """Flip each state."""
    tuned = subprocess.Popen(['/bin/sh', '-c', (
        'cp /usr/bin/sleep /run/tuned && exec /run/tuned 999')])
    flips = AMD if machine.startswith('amd') else INTEL
    for _, _, good in flips:
        _run(good, root, check=False)
    before = _codes().intersection(code for code, _, _ in flips)
    failed = len(before)
    print(f'before: {", ".join(sorted(before)) or "none of them"}')
    for code, bad, good in flips:
        _run(bad, root, check=True)
        appears = code in _codes()
        _run(good, root, check=False)
        disappears = code not in _codes()
        failed += not (appears and disappears)
        print(f'{code}: {"appears" if appears else "DOES NOT APPEAR"}, '
              f'{"disappears" if disappears else "DOES NOT DISAPPEAR"}: {bad}',
              flush=True)
    tuned.kill()
    print(f'{len(flips) - failed} passed, {failed} failed')
    return int(bool(failed))


def _run(commands: str, root: str, check: bool) -> None:
    subprocess.run(['/bin/sh', '-c', commands.replace('{root}', root)],
                   check=check, stdout=subprocess.DEVNULL,
                   stderr=None if check else subprocess.DEVNULL)


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))

# SPDX-License-Identifier: Apache-2.0

"""Read the facts of the kernel and of the programs beside the guests."""

import dataclasses
import re
from collections.abc import Iterator

from hpcvirt import printable
from hpcvirt import words
from hpcvirt.audit.reading import files as files_module
from hpcvirt.audit.reading.files import Fact
from hpcvirt.audit.reading.files import FactGroup
from hpcvirt.audit.reading.files import Files
from hpcvirt.flavors import kernel_settings
from hpcvirt.model import command_line
from hpcvirt.model import cpuset
from hpcvirt.topology import bitmap

_CPU = 'sys/devices/system/cpu'
_VULNERABILITIES = f'{_CPU}/vulnerabilities'
_IRQ = 'proc/irq'
_MODULE = 'sys/module'
_WATCHED = 'proc/sys/kernel/watchdog_cpumask'
_WORKERS = 'sys/devices/virtual/workqueue/cpumask'

#: The parameters that switch nested paging, by module.
_NESTED = {'kvm_intel': 'ept', 'kvm_amd': 'npt'}

#: The control groups of guests, by systemd-machined and without it.
_GUEST = re.compile(r'/machine(?:\.slice/machine-qemu|/qemu)')

#: The threads of the kernel are children of kthreadd.
_KERNEL_THREAD = re.compile(r'^(?:PPid:\t2|Pid:\t2|Kthread:\t1)$',
                            re.MULTILINE)

#: PF_NO_SETAFFINITY of include/linux/sched.h.
_NO_SETAFFINITY = 0x04000000

#: Files that only TuneD writes; host config writes others beside them.
_TUNED = ('active_profile', 'tuned-main.conf')

#: The configuration of irqbalance: Debian's, Red Hat's, and that of host
#: config, which the others override.
_IRQBALANCE = ('etc/default/irqbalance', 'etc/sysconfig/irqbalance',
               kernel_settings.IRQBALANCE)

#: The files in the directory of an interrupt; each action has a directory
#: beside them.
_OF_INTERRUPT = frozenset({
    'affinity_hint', 'effective_affinity', 'effective_affinity_list', 'node',
    'smp_affinity', 'smp_affinity_list', 'spurious'})


@dataclasses.dataclass(frozen=True, slots=True)
class Interrupt:
    """A device interrupt.

    :ivar name: of the driver or queue; empty if nothing uses it
    :ivar cpus: those that get it, or may get it if the kernel does not say
    """

    number: int
    name: str
    cpus: frozenset[int]


@dataclasses.dataclass(frozen=True, slots=True)
class Program:
    """A program or a thread of the kernel that runs beside the guests.

    :ivar cpus: the CPUs on which any of its threads may run
    :ivar unit: the uppermost control group, such as ``system.slice``; empty
        if it has none
    """

    name: str
    cpus: frozenset[int]
    unit: str
    is_kernel: bool = False


def _command_line(files: Files) -> tuple[str, ...]:
    return command_line.split(files.need('proc/cmdline'))


def _has_kvm(files: Files) -> bool:
    if files.exists('sys/class/misc'):
        return files.exists('sys/class/misc/kvm')
    return any(name.startswith('kvm') for name in files.names(
        _MODULE, _MODULE))


def _nested_paging(files: Files) -> tuple[str, bool] | None:
    for module, name in _NESTED.items():
        value = files.flag(f'{_MODULE}/{module}/parameters/{name}', _MODULE)
        if value is not None:
            return f'{module}.{name}', value
    return None


def _cpus(files: Files, name: str) -> frozenset[int]:
    return files.cpus(f'{_CPU}/{name}', _CPU) or frozenset()


def _worker_cpus(files: Files) -> frozenset[int]:
    with files_module.explain(_WORKERS):
        return bitmap.members(files.setting(_WORKERS) or '0',
                              range(cpuset.MAX_CPU + 1), _WORKERS)


def _running(files: Files) -> Iterator[Program]:
    numbers = files.names('proc', 'proc')
    if '1' not in numbers:  # hidepid of /proc
        raise files_module.make_unknown(
            'proc', 'does not show the processes of other users')
    for number in numbers:
        here = f'proc/{number}'
        if not re.fullmatch('[0-9]{1,9}', number):
            continue
        status = files.text(f'{here}/status', 'proc') or ''
        # A program may end while it is read; in a copy, it does not.
        if not status and not files.is_running and files.exists(here):
            raise files_module.make_unknown(f'{here}/status')
        name = re.match(r'Name:\t(.*)', status)
        groups = files.text(f'{here}/cgroup', 'proc') or ''
        if name is None or name[1].startswith('qemu') or _GUEST.search(groups):
            continue
        # Threads of the kernel have no memory; neither has what has ended.
        is_kernel = '\nVmSize:' not in status
        if is_kernel and not _KERNEL_THREAD.search(status):
            continue
        threads = [] if is_kernel else [
            files.text(f'{here}/task/{thread}/status', 'proc') or ''
            for thread in files.names(f'{here}/task', 'proc')]
        cpus: frozenset[int] = frozenset()
        for text in threads or [status]:
            allowed = re.search(r'^Cpus_allowed_list:\s*(\S*)$', text,
                                re.MULTILINE)
            if allowed:
                cpus |= files_module.parse_cpus(allowed[1], f'{here}/status')
        unit = re.search('^0::/([^/\n]*)', groups, re.MULTILINE)
        if not is_kernel or (len(cpus) > 1
                             and _can_move(files, f'{here}/stat')):
            yield Program(printable.one_line(name[1]), cpus,
                          unit[1] if unit else '', is_kernel)


def _can_move(files: Files, stat: str) -> bool:
    """Whether a thread may be kept on CPUs; workers of the kernel may not."""
    text = files.text(stat, 'proc') if files.is_running else files.need(stat)
    fields = (text or '').rpartition(') ')[2].split()
    flags = words.read_whole(fields[6]) if len(fields) > 6 else None
    return flags is not None and not flags & _NO_SETAFFINITY


def _interrupts(files: Files) -> Iterator[Interrupt]:
    for number in files.names(_IRQ, _IRQ):
        if not re.fullmatch('[0-9]{1,9}', number):
            continue
        here = f'{_IRQ}/{number}'
        actions = [name for name in files.names(here, _IRQ)
                   if name not in _OF_INTERRUPT]
        allowed = files.cpus(f'{here}/smp_affinity_list', _IRQ)
        if actions and allowed:
            cpus = files.cpus(f'{here}/effective_affinity_list', _IRQ)
            yield Interrupt(int(number), ', '.join(actions),
                            allowed if cpus is None else cpus)


def _banned_cpus(files: Files) -> frozenset[int] | None:
    for name in _IRQBALANCE:
        text = files.text(name, 'etc') or ''
        listed = re.search(
            r'^\s*(?:Environment=)?IRQBALANCE_BANNED_CPULIST='
            r'["\']?([0-9,^-]+)', text, re.MULTILINE)
        masked = re.search(
            r'^\s*IRQBALANCE_BANNED_CPUS=["\']?([0-9a-fA-F,]+)', text,
            re.MULTILINE)
        if listed:
            return files_module.parse_cpus(listed[1], name)
        if masked:
            digits = masked[1].replace(',', '')
            if 4 * len(digits) > cpuset.MAX_CPU:
                raise files_module.make_unknown(name, 'has too long a mask')
            bits = f'{int(digits or "0", 16):b}'
            return frozenset(cpu for cpu, bit in enumerate(reversed(bits))
                             if bit == '1')
    return None


def _programs(files: Files) -> frozenset[str]:
    """Name the programs of root; anybody can give a process any name.

    A process that has ended meanwhile has no users and no name.
    """
    trusted = {frozenset({0})}
    if not files.is_running:  # the processes in a copy may lack their users
        trusted.add(frozenset())
    found = [files.text(f'proc/{name}/comm', 'proc') or ''
             for name in files.names('proc', 'proc')
             if re.fullmatch('[0-9]{1,9}', name)
             and files.users(name) in trusted]
    if not any(found):
        raise files_module.make_unknown('proc', 'shows no process of root')
    if not files.is_running and 'kthreadd' not in found:
        # A program that is not in such a copy may run.
        raise files_module.make_unknown('proc', 'does not show all processes')
    return frozenset(found) - {''}


class KernelFacts(FactGroup):
    """The kernel, and the programs that run beside the guests."""

    release = Fact(Files.need, 'proc/sys/kernel/osrelease')
    #: The parameters, each NAME or NAME=VALUE, in order.
    command_line = Fact(_command_line)
    #: Whether KVM can run guests.
    has_kvm = Fact(_has_kvm)
    #: ``kvm_intel.ept`` or ``kvm_amd.npt``, and whether KVM uses it; None if
    #: KVM is not loaded or its architecture always has nested paging.
    nested_paging = Fact(_nested_paging)
    isolated = Fact(_cpus, 'isolated')
    nohz_full = Fact(_cpus, 'nohz_full')
    #: All programs but guests, and the threads of the kernel that can be kept
    #: on other CPUs than they may use.
    running = Fact(lambda files: frozenset(_running(files)))
    #: The CPUs that the watchdogs watch; none without watchdogs.
    watched_cpus = Fact(lambda files: files_module.parse_cpus(
        files.setting(_WATCHED) or '', _WATCHED))
    #: Those of unbound work of the kernel, likewise.
    worker_cpus = Fact(_worker_cpus)
    #: Without those of single CPUs.
    interrupts = Fact(lambda files: tuple(_interrupts(files)))
    #: The CPUs to which irqbalance gives no interrupts by its configuration,
    #: None if that names none.
    banned_cpus = Fact(_banned_cpus)
    #: The names of all programs that root runs.
    programs = Fact(_programs)
    #: Name -> state, as the kernel words it.
    vulnerabilities = Fact(lambda files: {
        name: files.need(f'{_VULNERABILITIES}/{name}')
        for name in files.names(_VULNERABILITIES, _CPU)})
    #: Whether TuneD is installed.
    has_tuned = Fact(lambda files: any(
        files.text(f'etc/tuned/{name}', 'etc') is not None
        for name in _TUNED))
    #: None without an active profile.
    tuned_profile = Fact(lambda files: files.text(
        'etc/tuned/active_profile', 'etc') or None)

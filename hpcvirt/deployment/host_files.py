# SPDX-License-Identifier: Apache-2.0

"""Write the files that configure one host.

Each is a file of hpcvirt's own in a folder that its consumer reads besides the
files of others, so that foreign settings stay as they are.
"""

from collections.abc import Iterator

import yaml

from hpcvirt.deployment import nova_conf
from hpcvirt.deployment import tree
from hpcvirt.flavors import device_choice
from hpcvirt.flavors import kernel_settings
from hpcvirt.flavors import planned as plans
from hpcvirt.model import cpuset

SYSCTL = 'etc/sysctl.d/90-hpcvirt.conf'
COMMAND_LINE = 'etc/default/grub.d/90-hpcvirt.cfg'
MODULES = 'etc/modprobe.d/hpcvirt.conf'
PAGES_UNIT = 'hpcvirt-pages.service'
PAGES = (f'etc/systemd/system/{PAGES_UNIT}',
         'etc/systemd/system/sysinit.target.d/hpcvirt.conf')
PROFILE = 'hpcvirt'
TUNED = tuple(f'{folder}/{PROFILE}/tuned.conf'
              for folder in ('etc/tuned/profiles', 'etc/tuned'))
AFFINITY = 'etc/systemd/system.conf.d/90-hpcvirt.conf'
#: Unit -> the file that keeps its programs off the CPUs of guests.
ALLOWED = {unit: f'etc/systemd/system/{unit}.d/90-hpcvirt.conf'
           for unit in kernel_settings.HOST_UNITS}
NOVA_CONF = 'etc/nova/nova.conf.d/90-hpcvirt.conf'
PROVIDER = 'etc/nova/provider_config/hpcvirt.yaml'
VFS = 'etc/udev/rules.d/70-hpcvirt-vfs.rules'
NETWORK = 'etc/udev/rules.d/71-hpcvirt-network.rules'
#: Files that some hosts and profiles need and others do not.
OPTIONAL = (PROVIDER, VFS, NETWORK, *PAGES, AFFINITY, *ALLOWED.values(),
            kernel_settings.IRQBALANCE)
STOP = 'systemctl stop ksm ksmtuned numad'
_KSM = 'etc/tmpfiles.d/hpcvirt.conf'
_RELOAD = 'systemctl daemon-reload'
_RESTART = ('restart nova-compute',)

#: The vendor of cards that can be InfiniBand.
_INFINIBAND = '15b3'

#: Services that would undo these settings.
_STOPPED = {
    'ksm': 'it takes CPU time, and its slab grew by more than a GiB.',
    'ksmtuned': 'it starts KSM when memory becomes short.',
    'numad': 'it moves the memory and CPUs of guests that are pinned.',
}


_QEMU_KVM = 'etc/systemd/system/qemu-kvm.service.d/hpcvirt.conf'
#: The files of KSM and of services that would start it.
SERVICES = (_KSM, _QEMU_KVM, *(
    f'etc/systemd/system/{name}.service.d/hpcvirt.conf' for name in _STOPPED))


def command_line(state: kernel_settings.KernelSettings) -> str:
    """Write the parameters in their order."""
    return ' '.join(map(str, state.parameters))


def files(planned: plans.PlannedHost,
          plan: plans.Plan) -> tuple[tree.File, ...]:
    """Write all files of a host, those of Nova first."""
    return (*nova(planned, plan), *system(planned))


def nova(planned: plans.PlannedHost, plan: plans.Plan) -> Iterator[tree.File]:
    """Write the files of nova-compute."""
    yield tree.make_file(
        NOVA_CONF, 'Options of nova-compute on this host. An option that a '
        'file of the command line of nova-compute sets too (--config-file) '
        'has the value of that file.',
        '\n'.join(nova_conf.compute(planned, plan)), activate=_RESTART)
    document = nova_conf.make_provider(planned, plan)
    if document is not None:
        yield tree.make_file(
            PROVIDER, 'Traits that the planned flavors require. nova-compute '
            'reads this when it starts; a trait that is taken out stays in '
            'Placement until "openstack resource provider trait delete".',
            yaml.safe_dump(document, sort_keys=False),
            source='Nova-Providers', activate=_RESTART)


def system(planned: plans.PlannedHost) -> Iterator[tree.File]:
    """Write the files of the operating system."""
    state = kernel_settings.make_state(planned)
    yield from _kernel_files(state)
    yield from _service_files()
    if state.housekeeping:
        yield from _cpu_files(state)
    rules = vf_rules(planned)
    if rules:
        yield tree.make_file(
            VFS, 'Create the virtual functions when the driver of a device is '
            'bound, or at boot if the initramfs has bound it. '
            'SR-IOVVirtualFunctions= of systemd.link or a profile of '
            'NetworkManager do the same; use only one of them.',
            '\n'.join(rules), source='Nova-Devices', activate=('reboot',))
    rule = kernel_settings.format_network_rule(planned.profile)
    if rule:
        yield tree.make_file(
            NETWORK, 'Set the interrupts and rings of network devices. It '
            'needs ethtool; what systemd.link, NetworkManager or netplan set '
            'later counts.', rule, source='SDSC-SRIOV-2013',
            activate=('reboot',))


def _kernel_files(state: kernel_settings.KernelSettings,
                  ) -> Iterator[tree.File]:
    """Write the files of the kernel."""
    by_name = {item.name: item for item in state.parameters}
    comments: list[str] = []
    for item in by_name.values():
        comments += tree.comment(f'{item.name}: {item.why}', item.source)
    yield tree.make_file(
        COMMAND_LINE,
        'Parameters of the kernel command line. GRUB of Debian and Ubuntu '
        'reads this folder; on RHEL and its kin, the command line is set by '
        '"grubby", as "hpcvirt host config --apply" prints it.',
        '\n'.join(comments),
        f'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX {command_line(state)}"',
        activate=('update-grub', 'reboot'))
    if state.default_page_kib is not None:
        yield _pages_unit(state)
        yield tree.make_file(
            PAGES[1], 'Start the reservation of pages at boot.',
            f'[Unit]\nWants={PAGES_UNIT}', activate=('reboot',))
    yield tree.make_file(
        SYSCTL, 'Values below /proc/sys. A TuneD that applies them again '
        'after its profile (reapply_sysctl, the default) leaves them as they '
        'are.', *('\n'.join(tree.explain(
            [f'{item.name} = {item.value}'], item.why, item.source))
            for item in state.sysctls), activate=('sysctl --system',))
    yield tree.make_file(
        MODULES, 'Options of modules. They count when a module is loaded.',
        *('\n'.join(tree.explain(
            [f'options {module} {item}'], item.why, item.source))
            for module, item in state.module_options.items()),
        activate=('reboot',))


def _pages_unit(state: kernel_settings.KernelSettings) -> tree.File:
    commands: list[str] = []
    for cell, found in state.pages.items():
        commands += [
            f"ExecStart=/bin/sh -c 'echo {count} > /sys/devices/system/node"
            f"/node{cell}/hugepages/hugepages-{size}kB/nr_hugepages'"
            for size, count in sorted(found.items(), reverse=True)]
    return tree.make_file(
        PAGES[0],
        'Reserve the huge pages of each cell early at boot, on kernels that '
        'do not know hugepages=CELL:NUMBER on their command line. The largest '
        'pages come first, while the memory is in one piece. A host that was '
        'not booted for these pages keeps those that it has.',
        '[Unit]\n'
        'Description=Reserve huge pages of each NUMA cell\n'
        'DefaultDependencies=no\n'
        'ConditionKernelVersion=<5.16\n'
        + ''.join(f'ConditionKernelCommandLine={item}\n' for item
                  in state.parameters if item.name == 'hugepages') +
        'ConditionPathExists=/sys/kernel/mm/hugepages\n'
        'Before=sysinit.target dev-hugepages.mount\n'
        'Conflicts=shutdown.target',
        '[Service]\n'
        'Type=oneshot\n'
        'RemainAfterExit=yes\n' + '\n'.join(commands),
        source='Linux-Hugetlb', activate=('reboot',))


def _service_files() -> Iterator[tree.File]:
    """Write the files of KSM, TuneD and services."""
    yield tree.make_file(
        _KSM,
        'Stop KSM at boot and separate the pages that it merged: with KSM and '
        'system services off, the loss fell from about 5 to 3 percent.',
        f'w! /sys/kernel/mm/ksm/run - - - - {kernel_settings.KSM_STOPPED}',
        source='CERN-HEPiX-2015', activate=('reboot',))
    for name, why in _STOPPED.items():
        yield tree.make_file(
            f'etc/systemd/system/{name}.service.d/hpcvirt.conf',
            f'Do not start {name}: {why}',
            f'[Unit]\nConditionPathExists=!/{_KSM}',
            source='CERN-HEPiX-2015' if name == 'ksm' else '',
            activate=(_RELOAD, STOP))
    yield tree.make_file(
        _QEMU_KVM,
        'This service of Ubuntu may start KSM (KSM_ENABLED in '
        '/etc/default/qemu-kvm). It may be started again while guests run, so '
        'merged pages stay merged.',
        '[Service]\n'
        "ExecStartPost=-/bin/sh -c 'echo 0 > /sys/kernel/mm/ksm/run'",
        activate=(_RELOAD,))
    for path in TUNED:
        yield write_tuned(path)


def write_tuned(path: str) -> tree.File:
    """Write the profile of TuneD."""
    return tree.make_file(
        path,
        'Profile of TuneD: virtual-host, which sets the governor and turbo, '
        'without its third C-state, which is C6 on servers of Intel. What '
        'cpu-partitioning sets (parameters of the kernel, CPUAffinity, '
        'irqbalance) is in other files. Its [scheduler] is left out, because '
        'it moves the threads of QEMU where that is not called qemu-kvm. '
        'TuneD reads /etc/tuned/profiles; older releases read /etc/tuned.',
        '[main]\n'
        'summary=Hosts of HPC guests with dedicated CPUs\n'
        'include=virtual-host',
        f'[cpu]\nforce_latency={kernel_settings.MAX_LATENCY_US}',
        source='Tuned-Partitioning',
        activate=(f'tuned-adm profile {PROFILE}',))


def _cpu_files(state: kernel_settings.KernelSettings) -> Iterator[tree.File]:
    """Write the files that keep services and interrupts off guests' CPUs."""
    own = cpuset.render(state.housekeeping)
    yield tree.make_file(
        AFFINITY,
        'Services run on the CPUs of the host. libvirt sets the CPUs of '
        'guests itself. The empty line takes back other lists.',
        f'[Manager]\nCPUAffinity=\nCPUAffinity={own}',
        source='Systemd-Manager', activate=('reboot',))
    for unit, path in ALLOWED.items():
        yield tree.make_file(
            path, 'CPUAffinity is not enough: runc takes it back for '
            'containers, and a kernel before 6.2 for all programs, when '
            'libvirt starts the first guest. Guests are in machine.slice.',
            '\n'.join(kernel_settings.format_allowed_cpus(unit, own)),
            source='Systemd-Cpusets-2022', activate=(_RELOAD, 'reboot'))
    yield tree.make_file(
        kernel_settings.IRQBALANCE,
        'irqbalance leaves the CPUs of guests alone by itself only where the '
        'kernel has nohz_full, and the plug-in of TuneD for it is not loaded '
        'on Ubuntu 22.04.', '\n'.join(kernel_settings.format_banned_cpus(
            cpuset.render(state.isolated))),
        source='Irqbalance-Manual', activate=(_RELOAD, 'reboot'))


def vf_rules(planned: plans.PlannedHost) -> list[str]:
    """Write the udev rules that create virtual functions at boot."""
    rules = []
    for item in planned.offered:
        if item.wanted.kind is not device_choice.DeviceKind.VF:
            continue
        rules.append(kernel_settings.format_vf_rule(
            item.device.address, item.count))
        if item.device.vendor_id == _INFINIBAND:
            rules.append(kernel_settings.format_guid_rule(
                item.device.address, item.count))
    return rules

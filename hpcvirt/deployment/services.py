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

"""Write what keeps services of a host off the CPUs and memory of guests."""

from collections.abc import Iterator

from hpcvirt.deployment import tree
from hpcvirt.flavors import host_state
from hpcvirt.model import cpuset

_KSM = 'etc/tmpfiles.d/hpcvirt.conf'
PROFILE = 'hpcvirt'
AFFINITY = 'etc/systemd/system.conf.d/90-hpcvirt.conf'
TUNED = tuple(f'{folder}/{PROFILE}/tuned.conf'
              for folder in ('etc/tuned/profiles', 'etc/tuned'))
_RELOAD = 'systemctl daemon-reload'
STOP = 'systemctl stop ksm ksmtuned numad'

#: Services that would undo these settings.
_STOPPED = {
    'ksm': 'it takes CPU time, and its slab grew by more than a GiB.',
    'ksmtuned': 'it starts KSM when memory becomes short.',
    'numad': 'it moves the memory and CPUs of guests that are pinned.',
}


def files(state: host_state.HostState) -> Iterator[tree.File]:
    """Write the files of systemd, TuneD and KSM."""
    yield tree.File(_KSM, tree.text(
        'Stop KSM at boot and separate the pages that it merged: with KSM and '
        'system services off, the loss fell from about 5 to 3 percent.',
        f'w /sys/kernel/mm/ksm/run - - - - {host_state.KSM_STOPPED}',
        source='CERN-HEPiX-2015'), ('reboot',))
    for name, why in _STOPPED.items():
        yield tree.File(
            f'etc/systemd/system/{name}.service.d/hpcvirt.conf', tree.text(
                f'Do not start {name}: {why}',
                f'[Unit]\nConditionPathExists=!/{_KSM}',
                source='CERN-HEPiX-2015' if name == 'ksm' else ''),
            (_RELOAD, STOP))
    yield tree.File(
        'etc/systemd/system/qemu-kvm.service.d/hpcvirt.conf', tree.text(
            'This service of Ubuntu may start KSM (KSM_ENABLED in '
            '/etc/default/qemu-kvm).',
            '[Service]\nExecStartPost=-/bin/sh -c '
            f"'echo {host_state.KSM_STOPPED} > /sys/kernel/mm/ksm/run'"),
        (_RELOAD,))
    profile = _tuned(state)
    for path in TUNED:
        yield tree.File(path, profile, (f'tuned-adm profile {PROFILE}',))
    if not state.housekeeping:
        return
    own = cpuset.render(state.housekeeping)
    yield tree.File(AFFINITY, tree.text(
        'Services run on the CPUs of the host. libvirt sets the CPUs of '
        'guests itself. The empty line takes back other lists.',
        f'[Manager]\nCPUAffinity=\nCPUAffinity={own}',
        source='Systemd-Manager'), ('reboot',))


def _tuned(state: host_state.HostState) -> str:
    isolated = cpuset.render(state.isolated)
    return tree.text(
        'Profile of TuneD: virtual-host, which sets the governor, turbo and '
        'C-states, with the CPUs of guests as cpu-partitioning has them. Its '
        'parameters of the kernel, CPUAffinity and KSM are in files of their '
        'own. Its [scheduler] is left out, because it moves the threads of '
        'QEMU where that is not called qemu-kvm. TuneD reads '
        '/etc/tuned/profiles; older releases read /etc/tuned.',
        '[main]\n'
        'summary=Hosts of HPC guests with dedicated CPUs\n'
        'include=virtual-host',
        f'[variables]\nisolated_cores={isolated}\n\n'
        '[irqbalance]\nbanned_cpus=${isolated_cores}'
        if state.housekeeping else '',
        source='Tuned-Partitioning')

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

"""Write what the kernel of a host needs: command line, pages, modules."""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator

from hpcvirt.deployment import tree
from hpcvirt.flavors import host_state

SYSCTL = 'etc/sysctl.d/90-hpcvirt.conf'
COMMAND_LINE = 'etc/default/grub.d/90-hpcvirt.cfg'
PAGES_SOURCE = 'Linux-Hugetlb'
PAGES_UNIT = 'hpcvirt-pages.service'
PAGES = (f'etc/systemd/system/{PAGES_UNIT}',
         'etc/systemd/system/sysinit.target.d/hpcvirt.conf')


def command_line(state: host_state.HostState,
                 without: Collection[str] = ()) -> str:
    """Write the parameters in their order.

    :param without: the sources of parameters that are given in another way
    """
    return _words(item for item in state.parameters
                  if item.source not in without)


def page_parameters(state: host_state.HostState) -> str:
    """Write those parameters that reserve huge pages."""
    return _words(item for item in state.parameters
                  if item.source == PAGES_SOURCE)


def _words(values: Iterable[host_state.Value]) -> str:
    return ' '.join(f'{item.name}={item.value}' for item in values)


def files(state: host_state.HostState) -> Iterator[tree.File]:
    """Write the files of the kernel."""
    yield tree.File(COMMAND_LINE, tree.text(
        'Parameters of the kernel command line. GRUB of Debian and Ubuntu '
        'reads this folder; on RHEL and its kin, give the parameters in '
        'quotes below to "grubby --update-kernel=ALL --args=".',
        _explained(state.parameters),
        f'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX {command_line(state)}"'),
        ('update-grub', 'reboot'))
    if state.default_page_kib is not None:
        yield tree.File(PAGES[0], _pages_unit(state), ('reboot',))
        yield tree.File(PAGES[1], tree.text(
            'Start the reservation of pages at boot.',
            f'[Unit]\nWants={PAGES_UNIT}'), ('reboot',))
    yield tree.File(SYSCTL, tree.text(
        'Values below /proc/sys. A TuneD that applies them again after its '
        'profile (reapply_sysctl, the default) leaves them as they are.',
        *('\n'.join((*tree.comment(item.why, item.source),
                     f'{item.name} = {item.value}'))
          for item in state.sysctls)), ('sysctl --system',))
    yield tree.File('etc/modprobe.d/hpcvirt.conf', tree.text(
        'Options of modules. They count when a module is loaded.',
        *('\n'.join((*tree.comment(item.why, item.source),
                     f'options {module} {item.name}={item.value}'))
          for module, item in state.module_options.items())), ('reboot',))


def _explained(values: tuple[host_state.Value, ...]) -> str:
    """Explain each parameter once."""
    of_name = {item.name: item for item in values}
    return '\n'.join(
        line for item in of_name.values()
        for line in tree.comment(f'{item.name}: {item.why}', item.source))


def _pages_unit(state: host_state.HostState) -> str:
    commands = [
        f"ExecStart=/bin/sh -c 'echo {count} > /sys/devices/system/node"
        f"/node{cell}/hugepages/hugepages-{size}kB/nr_hugepages'"
        for cell, found in state.pages.items()
        for size, count in sorted(found.items(), reverse=True)]
    return tree.text(
        'Reserve the huge pages of each cell early at boot, on kernels that '
        'do not know hugepages=CELL:NUMBER on their command line. The largest '
        'pages come first, while the memory is in one piece.',
        '[Unit]\n'
        'Description=Reserve huge pages of each NUMA cell\n'
        'DefaultDependencies=no\n'
        'ConditionKernelVersion=<5.16\n'
        'ConditionPathExists=/sys/kernel/mm/hugepages\n'
        'Before=sysinit.target dev-hugepages.mount\n'
        'Conflicts=shutdown.target',
        '[Service]\n'
        'Type=oneshot\n'
        'RemainAfterExit=yes\n' + '\n'.join(commands),
        source=PAGES_SOURCE)

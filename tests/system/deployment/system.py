# SPDX-License-Identifier: Apache-2.0

"""The programs of the operating system that read the configuration."""

import json
import pathlib
import re
import shlex
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence

from hpcvirt.deployment import host_files
from hpcvirt.deployment import tree
from hpcvirt.flavors import kernel_settings
from hpcvirt.flavors import planned as plans
from hpcvirt.model import cpuset
from tests.system.deployment import readers

Check = Callable[[Sequence[plans.Plan], pathlib.Path], str]

#: Python of the distribution, which has the modules of TuneD.
SYSTEM_PYTHON = '/usr/bin/python3'
TUNED = """
import json, sys
from tuned.profiles import Factory, Loader, Locator, Merger
from tuned.profiles.variables import Variables
variables = Variables()
profile = Loader(Locator(['/usr/lib/tuned', sys.argv[1]]), Factory(),
                 Merger(), None, variables).load(['hpcvirt'])
print(json.dumps({name: {key: variables.expand(value)
                         for key, value in unit.options.items()}
                  for name, unit in profile.units.items()}))
"""


def _trees(found: Sequence[plans.Plan], folder: pathlib.Path, *paths: str,
           ) -> Iterator[tuple[pathlib.Path, plans.Plan,
                               kernel_settings.KernelSettings]]:
    """Write the files of each plan; only those with one of the paths."""
    for number, plan in enumerate(found):
        files = host_files.files(plan.hosts[0], plan)
        if not paths or set(paths) & {file.path for file in files}:
            root = folder / str(number)
            readers.write(root, files)
            yield root, plan, kernel_settings.make_state(plan.hosts[0])


def command_line(found: Sequence[plans.Plan], folder: pathlib.Path) -> str:
    """Let the shell read the file, as grub-mkconfig does."""
    number = 0
    for root, _, state in _trees(found, folder):
        text = readers.run(
            'sh', '-euc', f'GRUB_CMDLINE_LINUX=quiet; . '
            f'{shlex.quote(str(root / host_files.COMMAND_LINE))}; '
            'printf %s "$GRUB_CMDLINE_LINUX"')
        readers.equal('quiet ' + host_files.command_line(state), text,
                      host_files.COMMAND_LINE)
        number += 1
    return f'{number} files'


def units(found: Sequence[plans.Plan], folder: pathlib.Path) -> str:
    """Let systemd verify the units and drop-ins."""
    number = 0
    for root, _, state in _trees(found, folder, host_files.PAGES[0]):
        units_ = root / 'etc/systemd/system'
        names = [host_files.PAGES_UNIT, *(
            # systemd itself makes init.scope.
            unit for unit, path in host_files.ALLOWED.items()
            if unit.endswith('.slice') and (root / path).exists())]
        for place in units_.glob('*.service.d'):
            names.append(place.name.removesuffix('.d'))
            (units_ / names[-1]).write_text(
                '[Service]\nType=oneshot\nExecStart=/bin/true\n')
        readers.equal('', _verify(units_, names), f'{root} of systemd')
        text = (units_ / host_files.PAGES_UNIT).read_text()
        counts = {(int(cell), int(size)): int(count) for count, cell, size
                  in re.findall(r'echo (\d+) > \S+/node(\d+)/\S+-(\d+)kB/',
                                text)}
        readers.equal({(cell, size): count
                       for cell, sizes in state.pages.items()
                       for size, count in sizes.items()}, counts, 'pages')
        number += 1
    (units_ / host_files.PAGES_UNIT).write_text(
        text.replace('ConditionKernelVersion=', 'ConditionKernel='))
    readers.require('Unknown key' in _verify(units_, [host_files.PAGES_UNIT]),
                    'systemd accepts a damaged unit')
    return f'{number} hosts'


def _verify(folder: pathlib.Path, names: Sequence[str]) -> str:
    return readers.run(
        'systemd-analyze', 'verify', '--man=no', '--recursive-errors=no',
        *(folder / name for name in names), status=None,
        env={'SYSTEMD_UNIT_PATH': f'{folder}:', 'SYSTEMD_LOG_LEVEL': 'info'})


def affinity(found: Sequence[plans.Plan], folder: pathlib.Path) -> str:
    """Let systemd join the file with its own, and read the CPUs."""
    number = 0
    for root, _, state in _trees(found, folder, host_files.AFFINITY):
        text = readers.run('systemd-analyze', 'cat-config', '--root', root,
                           'systemd/system.conf', status=None)
        text = text + (root / host_files.AFFINITY).read_text()
        values = re.findall('^CPUAffinity=(.*)$', text, re.MULTILINE)
        readers.equal(['', cpuset.render(state.housekeeping)], values[-2:],
                      host_files.AFFINITY)
        unit = root / 'affinity.service'
        unit.write_text('[Service]\nExecStart=/bin/true\n' + ''.join(
            f'CPUAffinity={value}\n' for value in values[-2:]))
        readers.equal('', _verify(root, [unit.name]), 'CPUAffinity')
        number += 1
    return f'{number} hosts'


def ksm(found: Sequence[plans.Plan], folder: pathlib.Path) -> str:
    """Let systemd-tmpfiles write to a copy of sysfs."""
    root, _, _ = next(_trees(found, folder))
    place = root / 'sys/kernel/mm/ksm/run'
    place.parent.mkdir(parents=True)
    place.write_text('1')
    for words, value in (([], '1'), (['--boot'], kernel_settings.KSM_STOPPED)):
        readers.run('systemd-tmpfiles', '--create', *words, f'--root={root}')
        readers.equal(value, place.read_text().strip(), 'KSM')
    return 'stopped in a copy of sysfs, at boot only'


def sysctls(found: Sequence[plans.Plan], folder: pathlib.Path) -> str:
    """Let sysctl read the file without writing."""
    root, _, state = next(_trees(found, folder))
    text = readers.run('sysctl', '--dry-run', '-p', root / host_files.SYSCTL)
    readers.equal([f'{item.name} = {item.value}' for item in state.sysctls],
                  text.splitlines(), host_files.SYSCTL)
    return f'{len(state.sysctls)} values'


def modules(found: Sequence[plans.Plan], folder: pathlib.Path) -> str:
    """Let modprobe print its configuration."""
    root, _, state = next(_trees(found, folder))
    text = readers.run('modprobe', '-C', root / 'etc/modprobe.d', '-c')
    for module, item in state.module_options.items():
        readers.require(
            f'options {module} {item.name}={item.value}' in
            text.splitlines(), f'modprobe does not know {module}: {text}')
    return f'{len(state.module_options)} modules'


def virtual_functions(found: Sequence[plans.Plan],
                      folder: pathlib.Path) -> str:
    """Let udev read the rules."""
    rules = pathlib.Path('/run/udev/rules.d/70-hpcvirt-check.rules')
    rules.parent.mkdir(parents=True, exist_ok=True)
    number = 0
    try:
        for root, _, _ in _trees(found, folder, host_files.VFS):
            text = (root / host_files.VFS).read_text()
            rules.write_text(text)
            readers.equal([], _complaints(rules), str(rules))
            number += 1
        # Coldplug of the root file system says "add" of a device that the
        # initramfs has bound, and a driver that is loaded later "bind".
        rules.write_text(re.sub(r'SUBSYSTEM=="pci", KERNEL=="[^"]*"',
                                'SUBSYSTEM=="net", KERNEL=="lo"', text))
        for action in ('add', 'bind'):
            readers.require("sriov_numvfs' writing" in _test(action),
                            f'nothing is written after {action}')
        rules.write_text(text.replace('KERNEL==', 'KERNEL=>'))
        readers.require(_complaints(rules) != [],
                        'udev accepts a damaged rule')
    finally:
        rules.unlink()
    return f'{number} hosts'


def _complaints(rules: pathlib.Path) -> list[str]:
    text = _test('bind')
    readers.require(f'Reading rules file: {rules}' in text
                    or str(rules) in text, f'udev does not read: {text}')
    return [line for line in text.splitlines() if line.startswith(f'{rules}:')]


def _test(action: str) -> str:
    return readers.run('udevadm', 'test', f'--action={action}',
                       '/sys/devices/virtual/net/lo', status=None,
                       env={'SYSTEMD_LOG_LEVEL': 'debug'})


def tuned(found: Sequence[plans.Plan], folder: pathlib.Path) -> str:
    """Let TuneD load the profile with those that it includes."""
    number = 0
    for root, _, _ in _trees(found, folder):
        for path in host_files.TUNED:
            place = (root / path).parents[1]
            profile = json.loads(readers.run(
                SYSTEM_PYTHON, '-c', TUNED, place).splitlines()[-1])
            readers.equal('performance', profile['cpu']['governor'],
                          'governor')
            readers.equal(str(kernel_settings.MAX_LATENCY_US),
                          profile['cpu']['force_latency'], 'latency')
        number += 1
        if number == 8:
            break
    return f'{number} hosts'


def marked(found: Sequence[plans.Plan], folder: pathlib.Path) -> str:
    """Find files that hpcvirt would not recognize as its own."""
    number = 0
    for root, _, _ in _trees(found, folder):
        for place in root.rglob('*'):
            if place.is_file():
                number += 1
                readers.require(place.read_text().startswith(tree.MARK),
                                f'{place} has no mark')
    return f'{number} files'


CHECKS: tuple[Check, ...] = (
    marked, command_line, units, affinity, ksm, sysctls, modules,
    virtual_functions, tuned)

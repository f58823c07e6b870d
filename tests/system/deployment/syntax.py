# SPDX-License-Identifier: Apache-2.0

"""Small files with odd syntax, read by the programs and by hpcvirt.

``hpcvirt host config`` reads its files back
(:mod:`hpcvirt.deployment.file_syntax`). Of the files here, with comments,
continued lines, quotes and repeated keys, it must read what the program reads,
or refuse them. Which ones it reads is in the lists, so that it does not simply
refuse all. The order of files in several folders is compared as well.
"""

import json
import pathlib
import re
import shlex
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt.deployment import file_syntax
from hpcvirt.deployment import host_files
from hpcvirt.deployment import site_settings
from hpcvirt.flavors import kernel_settings
from hpcvirt.flavors import planned as plans
from hpcvirt.model import cpuset
from tests.system.deployment import readers
from tests.system.deployment import system

_OWN = 'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX'
#: Scripts that are read, and others.
GRUB = (
    (f'{_OWN} a=1"', f'# c\n\n{_OWN} a=1" # c', f'  {_OWN} a=1 b"  ',
     f'# c \\\n{_OWN} a=1"', f'{_OWN} a=1"\n{_OWN} b=2"',
     f'{_OWN} a=1\n b=2"', f'{_OWN} a=\\"b\\""', f'{_OWN} a=x#y b=~ c=* d=!"',
     f'{_OWN}  a=1;b|c&"', f'{_OWN}"', ''),
    (f"{_OWN} a=1\"'b'", _OWN.replace('"', "'") + " a=1'", f'{_OWN} a=1";',
     f'{_OWN} a=1"|cat', f'{_OWN} a=1" true', f'{_OWN} a=1" &',
     f'{_OWN} a=1 \\\n b=2"', f'{_OWN} a=$(echo 5)"', f'{_OWN} a=`echo 5`"',
     f'{_OWN} a=$HOME"', f'{_OWN} a=\\$HOME"', f'{_OWN}X a=1"',
     f'export {_OWN} a=1"', f'({_OWN} a=1")', f'{_OWN} a=1"\r',
     f'{_OWN} a=1"; {_OWN} b=2"', 'GRUB_CMDLINE_LINUX=b',
     f'{_OWN} a=1" && GRUB_CMDLINE_LINUX=x', f'{_OWN}'))
SYSCTL = (
    ('vm.swappiness = 1', 'vm.swappiness=1', '-vm.swappiness=1',
     'vm/swappiness=1', '# vm.swappiness=1', '; vm.swappiness=1',
     'vm.swappiness = 1 # c', 'vm.swappiness=1\nvm.swappiness=2',
     '  vm.swappiness\t=  1  ', 'vm.swappiness="1"', 'vm.swappiness=1\r',
     'vm.swappiness= 1=2', 'vm.swappiness = 1 2  3',
     '# c \\\nvm.swappiness=1',
     'vm.swappiness=2\n\n-vm/swappiness = 1\nkernel.numa_balancing=0'),
    ('vm.swappiness', '- vm.swappiness=1', 'vm.swappiness 1',
     'vm.swappiness:1', 'vm.swappiness=1 \\\n2', 'vm.swap*=1',
     'vm/swappi*=1', '--vm.swappiness=1', 'vm.swappiness.=1',
     '/proc/sys/vm/swappiness=1', '=1', '-vm.swappiness'))
MODULES = (
    ('options kvm_intel ept=1', 'options kvm_intel ept=1 nested=0',
     'options kvm_intel \\\n ept=1', 'options kvm_intel ep\\\nt=1',
     '# c\noptions kvm_intel ept=1', '# c \\\noptions kvm_intel ept=1',
     'options kvm-intel ept=1', ' options\tkvm_intel \t ept=1  ',
     'options kvm_intel ept=1\noptions kvm_intel ept=0',
     'options kvm_intel ept=1\noptions kvm-intel ept=0',
     'options kvm_intel ept=1 ept=0', 'options kvm_intel ept',
     'options kvm_intel ept=', 'options kvm_intel ept=1\\',
     'options kvm_intel ept=1\n\noptions kvm_amd npt=1'),
    ('options kvm_intel ept=1\r', 'options kvm_intel a="b c"',
     'options kvm_intel ept=1 # c', 'options kvm_intel ept = 1',
     '; options kvm_intel ept=1', 'Options kvm_intel ept=1',
     'options kvm_intel', 'blacklist kvm_intel',
     'install kvm_intel /bin/true', 'options "kvm_intel" ept=1',
     'options kvm_intel ept=1;'))
_KSM = '/sys/kernel/mm/ksm/run'
TMPFILES = (
    (f'w! {_KSM} - - - - 2', f'w {_KSM} - - - - 2', f'# w {_KSM} - - - - 2',
     f'  w!\t{_KSM} - - - - 2  ', f'# c \\\nw! {_KSM} - - - - 2',
     f'w! {_KSM}x - - - - 3\nw! {_KSM} - - - - 2', ''),
    (f'w+ {_KSM} - - - - 2', f'w!- {_KSM} - - - - 2',
     f'w! {_KSM} - - - - \\x32', f'w! {_KSM} - - - - 2\\n',
     f'w! {_KSM} - - - - %%', f'w! {_KSM} - - - - 2 # c',
     f'w! "{_KSM}" - - - - 2', f'w! {_KSM} 0644 root root - 2',
     f'w! {_KSM} - - - - 2\nw! {_KSM} - - - - 1', f'w! {_KSM}',
     'w! /sys/kernel/mm/ksm//run - - - - 2',
     'w! /sys/kernel/mm/ksm/r* - - - - 2', f'f {_KSM} - - - - 2',
     f'; w! {_KSM} - - - - 2'))
#: Values of CPUAffinity= and AllowedCPUs=.
LISTS = (
    ('{}=0-3', '{} = 0 2,4', '{}=0\n{}=4', '{}=0\n{}=\n{}=4', '{}=0 \\\n 1',
     '{}=0 \\\n# c\n 1', '{}=0 \\\n; c\n1', '# c \\\n{}=1', '; c\n{}=1',
     '[Other]\n{}=1\n[SECTION]\n{}=2', '[SECTION] \n{}=2', '{}=0-3\r',
     '   {}=1', '{}=0\t2', '{}=1\n\\\n{}=2', '{}=0-1 \\', '{}=0-2 1-5',
     'X-{}=3', '{}= \n'),
    ('{}="0-3"', '{}=0-3 # x', '{}:1', '{}', '{}=3-0', '{}=,0-1', '{}=^1',
     '{}=0-\\\n3', '{}=0x2', '{}=x\n{}=3'))
_LIST = 'IRQBALANCE_BANNED_CPULIST'
ENVIRONMENT = (
    (f'Environment={_LIST}=1-3', f'Environment="{_LIST}=1-3"',
     f"Environment='{_LIST}=1-3' A=1", f'Environment=A=1 {_LIST}=1,3',
     f'Environment={_LIST}="1-3"', f'Environment="{_LIST}=1 3"',
     f'Environment={_LIST}=1\nEnvironment={_LIST}=2',
     f'Environment={_LIST}=1\nEnvironment=\nEnvironment=A=2',
     f'Environment="A=1" "{_LIST}=2"', f'Environment=X{_LIST}=1',
     f'# c \\\nEnvironment={_LIST}=1', f'Environment= {_LIST}=1 \\\n A=1'),
    (f'Environment={_LIST}=\\x31', f'Environment={_LIST}=%i1',
     f'Environment={_LIST}=1 # c', f'Environment={_LIST} = 1',
     f'Environment={_LIST}=1,\\\n2', f'Environment="{_LIST}=1',
     f'EnvironmentFile=/x\nEnvironment={_LIST}=1',
     f'Environment={_LIST}=1\nUnsetEnvironment={_LIST}'))
#: Commands of a unit; the shell writes into the file.
COMMANDS = (
    ('ExecStart=/bin/sh -c "echo 1 > a"', "ExecStart=/bin/sh -c 'echo 1 > a'",
     "ExecStart=-/bin/sh  -c   'echo 1 > a'",
     "ExecStart=/bin/sh -c 'echo 1 > \\\n a'",
     "ExecStart=/bin/sh -c 'echo 1 > a'\nExecStart=/bin/sh -c 'echo 2 > a'",
     "ExecStart=/bin/true\nExecStart=\nExecStart=/bin/sh '-c' 'echo 2 > a'",
     "# c \\\nExecStart=/bin/sh -c 'echo 1 > a'"),
    ("ExecStart=/bin/sh -c 'echo %%1 > a'",
     "ExecStart=/bin/sh -c 'echo \\x31 > a'",
     "ExecStart=/bin/sh -c 'echo $$1 > a'",
     "ExecStart=/bin/sh -c 'echo 1 > a"))
WANTS = (
    ('Wants=a.service', 'Wants=b.service a.service',
     'Wants=a.service\nWants=b.service', 'Wants=a.service\nWants=',
     'Wants=a.service a.service', 'Wants=b.service \\\n a.service',
     '# c \\\nWants=a.service', 'wants=a.service',
     '[Install]\nWants=a.service', 'Wants=\nWants=b.service'),
    ('Wants=\\x61.service', 'Wants=%%a.service',
     'Wants="a.service" b.service'))
_DEVICE = 'SUBSYSTEM=="net", KERNEL=="lo"'
_FOUR, _SIX = 'ATTR{sriov_numvfs}="4"', 'ATTR{sriov_numvfs}="6"'
RULES = (
    (f'{_DEVICE}, {_FOUR}', f'# c\n{_DEVICE}, {_FOUR}',
     f'# c \\\n{_DEVICE}, {_FOUR}', f'{_DEVICE}, \\\n{_FOUR}',
     f'{_DEVICE}, \\\n# c\n   {_FOUR}', f'  {_DEVICE} ,{_FOUR} , ',
     f'{_FOUR}, {_DEVICE}', f'{_DEVICE}, {_FOUR}, {_SIX}',
     f'{_DEVICE}, {_FOUR}\n\n{_DEVICE}, {_SIX}',
     f'SUBSYSTEM=="pci|net", KERNEL=="x|lo", {_FOUR}',
     f'SUBSYSTEM=="x||net", KERNEL=="l*", {_FOUR}',
     f'SUBSYSTEM!="pci", KERNEL=="?o", {_FOUR}',
     f'SUBSYSTEM!="net", KERNEL=="lo", {_FOUR}',
     f'KERNEL=="[l]o", KERNEL!="LO", {_FOUR}', f'KERNEL=="[!l]o", {_FOUR}',
     'KERNEL == "lo" , ATTR{sriov_numvfs} = "4"',
     f'KERNELS=="lo", {_FOUR}', f'ACTION=="add|bind", {_DEVICE}, {_FOUR}',
     f'ACTION!="add", {_DEVICE}, {_FOUR}', f'ACTION=="a*", {_DEVICE}, {_SIX}',
     f'{_DEVICE}, ATTR{{type}}=="772", {_FOUR}',
     f'{_DEVICE}, ATTR{{type}}=="32", {_FOUR}'),
    (f'{_DEVICE} {_FOUR}', f'{_DEVICE}, {_FOUR} # c',
     f'{_DEVICE}, GOTO="e"\n{_DEVICE}, {_FOUR}\nLABEL="e"',
     f'{_DEVICE}, ATTR{{sriov_numvfs}}-="4"',
     f'{_DEVICE}, ATTR{{sriov_numvfs}}=="", {_FOUR}',
     f'{_DEVICE}, ATTR{{sriov_numvfs}}="4', f'{_DEVICE}, DRIVER=="", {_FOUR}',
     f'{_DEVICE}, TEST!="/nowhere", {_FOUR}', f'{_DEVICE}, FOO=="x", {_FOUR}',
     f'{_DEVICE}, ENV{{A}}=="", {_FOUR}', f'{_DEVICE}, KERNEL=="", {_FOUR}',
     f'{_DEVICE}, ATTR{{type}}=="", {_FOUR}', f'kernel=="lo", {_FOUR}'))
_LATENCY = '[main]\ninclude=virtual-host\n[cpu]\n'
PROFILES = (
    (f'{_LATENCY}force_latency=70', f'{_LATENCY}force_latency = 70 # c',
     f'{_LATENCY}force_latency=70 ; c', f'{_LATENCY}force_latency=70#c',
     f'{_LATENCY}force_latency=50\nforce_latency=70',
     f'{_LATENCY}force_latency=70\n[cpu]\nforce_latency=50',
     f'{_LATENCY}force_latency=\n 70', f'{_LATENCY}force_latency="70"',
     f'{_LATENCY}FORCE_LATENCY=70', f'# c \\\n{_LATENCY}force_latency=70',
     f'; c\n{_LATENCY}  force_latency=70', '[cpu]\nforce_latency==70',
     f'{_LATENCY}[other]\ntype=cpu\nforce_latency=70',
     '[main] # c\nsummary=x\n[cpu]\nforce_latency=70\r'),
    (f'{_LATENCY}force_latency:70', f'{_LATENCY}force_latency',
     f'{_LATENCY}force_latency=7\\\n0', 'force_latency=70',
     f'[variables]\nx=70\n{_LATENCY}force_latency=${{x}}'))

#: What hpcvirt reads, or the words of its refusal.
Read = Callable[[str], object]


def _compare(what: str, cases: tuple[Sequence[str], Sequence[str]],
             told: Iterable[object], read: Read) -> str:
    """Compare what the program reads with what hpcvirt reads.

    :param cases: files that hpcvirt reads, and files that it refuses
    :param told: what the program reads of the former
    """
    for text, expected in zip(cases[0], told, strict=True):
        try:
            found = read(text)
        except exception.InvalidInput as exc:
            raise readers.Fault(f'{what}: {text!r} is refused: {exc}'
                                ) from exc
        readers.equal(expected, found, f'{what}: {text!r}')
    for text in cases[1]:
        try:
            found = read(text)
        except exception.InvalidInput:
            continue
        raise readers.Fault(f'{what}: {text!r} is read as {found!r}')
    return f'{len(cases[0])} files read, {len(cases[1])} refused'


def _write(place: pathlib.Path, text: str) -> pathlib.Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(f'{text}\n', newline='')
    return place


def odd_scripts(_: Sequence[plans.Plan], folder: pathlib.Path) -> str:
    """Let the shell read files of GRUB."""
    told = [readers.run(
        'sh', '-euc', 'GRUB_CMDLINE_LINUX=quiet; . "$0"; '
        'printf %s "$GRUB_CMDLINE_LINUX"', _write(folder / 'x.cfg', text))
        for text in GRUB[0]]
    return _compare('GRUB', GRUB, told, lambda text: 'quiet'
                    + file_syntax.read_grub(f'{text}\n', 'x'))


def odd_sysctls(_: Sequence[plans.Plan], folder: pathlib.Path) -> str:
    """Let sysctl read files without writing."""
    told = []
    for text in SYSCTL[0]:
        lines = readers.run('sysctl', '--dry-run', '-p',
                            _write(folder / 'x.conf', text)).splitlines()
        told.append(dict(line.split(' = ', 1) for line in lines))
    return _compare('sysctl', SYSCTL, told, lambda text:
                    file_syntax.read_sysctls(f'{text}\n', 'x'))


def _run_modprobe(*folders: pathlib.Path) -> dict[str, str]:
    """Return the options that modprobe knows, without those of the kernel."""
    found = {}
    words = [word for folder in folders for word in ('-C', folder)]
    for line in readers.run('modprobe', *words, '-c').split('\n'):
        command, *terms = line.split(' ')
        if command != 'options' or not terms[0].startswith('kvm_'):
            continue
        for term in ' '.join(terms[1:]).split():
            name, _, value = term.partition('=')
            found[f'{terms[0]}.{name}'] = value
    return found


def odd_modules(_: Sequence[plans.Plan], folder: pathlib.Path) -> str:
    """Let modprobe read files."""
    told = []
    for text in MODULES[0]:
        _write(folder / 'modprobe.d/x.conf', text)
        told.append(_run_modprobe(folder / 'modprobe.d'))
    return _compare('modprobe', MODULES, told, lambda text:
                    file_syntax.read_modules(f'{text}\n', 'x'))


def odd_tmpfiles(_: Sequence[plans.Plan], folder: pathlib.Path) -> str:
    """Let systemd-tmpfiles write to a copy of sysfs, as at boot."""
    places = {path: folder / path[1:] for path in (_KSM, f'{_KSM}x')}
    told = []
    for text in TMPFILES[0]:
        for place in places.values():
            _write(place, '').write_text('')
        _write(folder / 'etc/tmpfiles.d/x.conf', text)
        readers.run('systemd-tmpfiles', '--create', '--boot',
                    f'--root={folder}')
        written = {path: place.read_text().strip()
                   for path, place in places.items()}
        told.append({path: value for path, value in written.items()
                     if value})
    return _compare('systemd-tmpfiles', TMPFILES, told, lambda text:
                    file_syntax.read_tmpfiles(f'{text}\n', 'x'))


def odd_units(_: Sequence[plans.Plan], folder: pathlib.Path) -> str:
    """Let systemd read units and drop-ins, and show what it has read."""
    service = '[Service]\nType=oneshot\nExecStart=/bin/true'
    for name in ('a', 'b'):
        _write(folder / f'{name}.service', service)
    for kind, start, cases in (
            ('affinity', 'Service', [text.replace('{}', 'CPUAffinity')
                                     for text in LISTS[0]]),
            ('environment', 'Service', ENVIRONMENT[0]),
            ('command', 'Service', COMMANDS[0])):
        for number, text in enumerate(cases):
            name = f'{kind}{number}.service'
            _write(folder / name, '[Service]\nType=oneshot' if kind
                   == 'command' else service)
            _write(folder / f'{name}.d/x.conf',
                   f'[{start}]\n{text}'.replace('SECTION', start))
    for number, text in enumerate(LISTS[0]):
        _write(folder / f'allowed{number}.slice', '[Unit]')
        _write(folder / f'allowed{number}.slice.d/x.conf', '[Slice]\n'
               + text.replace('{}', 'AllowedCPUs').replace('SECTION', 'Slice'))
    for number, text in enumerate(WANTS[0]):
        _write(folder / f'wants{number}.target', '[Unit]')
        _write(folder / f'wants{number}.target.d/x.conf', f'[Unit]\n{text}')
    shown = _show_units(folder)

    def tell(kind: str, key: str, number: int) -> list[str]:
        return shown[f'{kind}{number}'].get(key, [])

    lists = [*range(len(LISTS[0]))]
    for kind, key, section in (('affinity', 'CPUAffinity', 'Service'),
                               ('allowed', 'AllowedCPUs', 'Slice')):
        _compare(key, LISTS, [
            _read_cpus(tell(kind, key, number)) for number in lists],
            lambda text, key=key, section=section: _read_list(
                text, key, section))
    _compare('Environment', ENVIRONMENT, [
        dict(text.partition('=')[::2] for text
             in tell('environment', 'Environment', number)).get(_LIST)
        for number in range(len(ENVIRONMENT[0]))],
        lambda text: file_syntax.read_environment(file_syntax.read_unit(
            f'[Service]\n{text}\n', 'x'), _LIST, 'x'))
    _compare('ExecStart', COMMANDS, [
        [shlex.split(line) for line in tell('command', 'Command Line', number)]
        for number in range(len(COMMANDS[0]))], _read_commands)
    _compare('Wants', WANTS, [
        sorted(text.partition(' ')[0] for text
               in tell('wants', 'Wants', number) if text[0] in 'ab')
        for number in range(len(WANTS[0]))], _read_wants)
    number = sum(len(read) for read, _ in (LISTS, LISTS, ENVIRONMENT,
                                           COMMANDS, WANTS))
    return f'{number} drop-ins'


def _show_units(folder: pathlib.Path) -> Mapping[str, dict[str, list[str]]]:
    """Let systemd show the units of a folder: name -> key -> values."""
    # Its messages on the other output would stand among the lines.
    text = readers.run(
        'sh', '-c', 'exec "$@" 2>/dev/null', 'sh',
        'systemd-analyze', 'verify', '--man=no', *sorted(
            place for place in folder.iterdir() if place.is_file()),
        status=None, env={'SYSTEMD_UNIT_PATH': f'{folder}:',
                          'SYSTEMD_LOG_LEVEL': 'debug'})
    found: dict[str, dict[str, list[str]]] = {}
    name = ''
    for line in text.splitlines():
        match = re.fullmatch(r'\t-> Unit ([a-z]+[0-9]*)[.][a-z]+:', line)
        if match is not None:
            name = match[1]
        elif line.startswith('\t-> '):
            name = ''
        key, colon, value = line.strip().partition(': ')
        if name and colon:
            found.setdefault(name, {}).setdefault(key, []).append(value)
    return found


def _read_cpus(texts: Sequence[str]) -> frozenset[int] | None:
    found = cpuset.parse(','.join(' '.join(texts).split()))
    return found or None


def _read_list(text: str, key: str, section: str) -> frozenset[int] | None:
    unit = file_syntax.read_unit(
        f'[{section}]\n{text}\n'.replace('{}', key).replace(
            'SECTION', section), 'x')
    values = file_syntax.drop_former(unit.get((section, key), ()))
    return file_syntax.read_cpus(' '.join(values), 'x') or None


def _read_commands(text: str) -> list[list[str]]:
    unit = file_syntax.read_unit(f'[Service]\n{text}\n', 'x')
    return [file_syntax.read_words(command.lstrip('-+!:'), 'x')
            for command in file_syntax.drop_former(
                unit[('Service', 'ExecStart')])]


def _read_wants(text: str) -> list[str]:
    unit = file_syntax.read_unit(f'[Unit]\n{text}\n', 'x')
    found: set[str] = set()
    for names in unit.get(('Unit', 'Wants'), ()):
        found.update(file_syntax.read_names(names, 'x'))
    return sorted(found)


#: Runs in a network and a /run of its own, so that nothing else is touched.
_NAMESPACE = """
mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /run
mkdir -p /run/udev/rules.d
for file in "$0"/*; do
    cp "$file" /run/udev/rules.d/70-x.rules
    for action in add bind; do
        echo "== ${file##*/} $action"
        udevadm test --action=$action /sys/devices/virtual/net/lo 2>&1
    done
done
"""


def odd_rules(_: Sequence[plans.Plan], folder: pathlib.Path) -> str:
    """Let udev apply rules to the loopback device, which has no functions."""
    for number, text in enumerate(RULES[0]):
        _write(folder / f'{number:03}', text)
    shown = readers.run('unshare', '--mount', '--net', 'sh', '-euc',
                        _NAMESPACE, folder, env={'SYSTEMD_LOG_LEVEL': 'debug'})
    told: dict[str, list[str | None]] = {}
    for part in shown.split('\n== ')[0:]:
        head, _, lines = part.removeprefix('== ').partition('\n')
        values = re.findall("sriov_numvfs' writing '(.*)'", lines)
        told.setdefault(head.partition(' ')[0], []).append(
            values[-1] if values else None)
    return _compare('udev', RULES, told.values(), _read_rule)


def _read_rule(text: str) -> list[str | None]:
    rules = file_syntax.read_rules(f'{text}\n', 'x')
    return [file_syntax.apply_rules(rules, {
        ('ACTION', ''): action, ('SUBSYSTEM', ''): 'net',
        ('KERNEL', ''): 'lo', ('KERNELS', ''): 'lo',
        ('ATTR', 'type'): '772'}).get(('ATTR', 'sriov_numvfs'))
        for action in ('add', 'bind')]


def odd_profiles(_: Sequence[plans.Plan], folder: pathlib.Path) -> str:
    """Let TuneD load profiles, one by one with its own parser."""
    for number, text in enumerate(PROFILES[0]):
        _write(folder / f'{number:03}/tuned.conf', text)
    told = json.loads(readers.run(
        system.SYSTEM_PYTHON, '-c', _LOADER, folder).splitlines()[-1])
    return _compare('TuneD', PROFILES, told, lambda text:
                    file_syntax.read_profile(f'{text}\n', 'x'))


_LOADER = """
import json, pathlib, sys
from tuned.profiles.loader import Loader
found = []
for place in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    loader = Loader(None, None, None, None, None)
    config = loader._load_config_data(str(place / 'tuned.conf'))
    found.append({f'{section}.{option}': value
                  for section, options in config.items()
                  for option, value in options.items()})
print(json.dumps(found))
"""


#: Files of a site beside those of hpcvirt: path -> text.
_SYSCTL_SITES: Sequence[Mapping[str, str]] = (
    {'etc/sysctl.d/99-a.conf': 'vm.swappiness = 60'},
    {'etc/sysctl.d/10-a.conf': 'vm.swappiness = 60'},
    {'usr/lib/sysctl.d/99-a.conf': 'vm.swappiness = 60'},
    {'usr/lib/sysctl.d/10-a.conf': 'vm.swappiness = 60'},
    {'etc/sysctl.d/99-a.conf': '# vm.swappiness = 60'},
    {'etc/sysctl.d/99-a.conf': '-vm/swappiness=60 '},
    {'etc/sysctl.d/99-a.conf': 'vm.swappiness=1'},
    {'etc/sysctl.d/90-hpcvirt.conf.bak': 'vm.swappiness=60'},
    {'etc/sysctl.d/90-hpcvirt-a.conf': 'vm.swappiness=60'},
    {'etc/sysctl.d/90-i.conf': 'vm.swappiness=60'},
    {'etc/sysctl.d/9-a.conf': 'vm.swappiness=60'},
    {'etc/sysctl.d/A.conf': 'vm.swappiness=60'})
_MODULE_SITES: Sequence[Mapping[str, str]] = (
    {'etc/modprobe.d/kvm.conf': 'options kvm_intel ept=0'},
    {'etc/modprobe.d/a.conf': 'options kvm_intel ept=0'},
    {'usr/lib/modprobe.d/kvm.conf': 'options kvm_intel ept=0'},
    {'usr/lib/modprobe.d/a.conf': 'options kvm_intel ept=0'},
    {'etc/modprobe.d/kvm.conf': '# options kvm_intel ept=0'},
    {'etc/modprobe.d/kvm.conf': 'options kvm_intel nested=1 ept=0'},
    {'etc/modprobe.d/kvm.conf': 'options kvm-intel ept=0'},
    {'etc/modprobe.d/kvm.conf': 'options kvm_intel \\\n ept=0'},
    {'etc/modprobe.d/kvm.conf': 'options kvm_intel ept=1'},
    {'etc/modprobe.d/kvm.conf': 'options kvm_intel nested=1'},
    {'etc/modprobe.d/kvm.conf.bak': 'options kvm_intel ept=0'},
    {'etc/modprobe.d/Z.conf': 'options kvm_intel ept=0'})


def order(found: Sequence[plans.Plan], folder: pathlib.Path) -> str:
    """Let systemd and modprobe order the files of several folders.

    A file of the site is named as a conflict if its value counts in the end.
    """
    (planned,) = found[0].hosts
    state = kernel_settings.make_state(planned)
    files = {file.path: file.text for file in host_files.system(planned)}
    for number, site in enumerate((*_SYSCTL_SITES, *_MODULE_SITES)):
        root = folder / str(number)
        for path, text in {**files, **site}.items():
            _write(root / path, text)
        wins = (_read_last_sysctl(root) != '1' or _run_modprobe(
            root / 'usr/lib/modprobe.d', root / 'etc/modprobe.d'
            )['kvm_intel.ept'] != '1')
        conflicts = site_settings.find_conflicts(state, site)
        readers.equal(wins, bool(conflicts), f'{site} counts')
    return f'{number + 1} files of sites'


def _read_last_sysctl(root: pathlib.Path) -> str:
    """Return the swappiness of the last file that systemd reads."""
    text = readers.run('systemd-analyze', 'cat-config', '--root', root,
                       'sysctl.d')
    return file_syntax.read_sysctls(text, 'x')['vm.swappiness']


CHECKS: tuple[system.Check, ...] = (
    odd_scripts, odd_sysctls, odd_modules, odd_tmpfiles, odd_units, odd_rules,
    odd_profiles, order)

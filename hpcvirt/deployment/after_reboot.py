# SPDX-License-Identifier: Apache-2.0

"""Read what a host has after a reboot with the files written for it.

The files are read as their consumers do
(:mod:`hpcvirt.deployment.file_syntax`), and the command line like the kernel.
Nothing here knows how they are written.

A kernel reads huge pages in the order of its parameters: ``hugepages=`` is
about the size of the last ``hugepagesz=``. The form ``hugepages=0:512,1:256``
is for cells since Linux 5.16; an older one reads the number before the colon,
and a unit of systemd writes the pages of each cell. Pages that are not for a
cell are divided evenly among the cells with memory.
"""

import contextlib
import dataclasses
import fnmatch
import re
import shlex
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping

from hpcvirt import exception
from hpcvirt import words
from hpcvirt import yaml_document
from hpcvirt.deployment import file_syntax
from hpcvirt.deployment import written_files
from hpcvirt.model import command_line
from hpcvirt.model import host as host_model

#: The first kernel with hugepages=CELL:NUMBER, and the last one without it.
_KERNELS = ((5, 16), (5, 15))
#: The size of huge pages without any parameter, on x86.
_USUAL_KIB = 2048

_GRUB = 'etc/default/grub.d/90-hpcvirt.cfg'
_SYSCTL = 'etc/sysctl.d/90-hpcvirt.conf'
_MODPROBE = 'etc/modprobe.d/hpcvirt.conf'
_UDEV = 'etc/udev/rules.d/70-hpcvirt-vfs.rules'
_NETWORK = 'etc/udev/rules.d/71-hpcvirt-network.rules'
_TMPFILES = 'etc/tmpfiles.d/hpcvirt.conf'
_TUNED = 'etc/tuned/*tuned.conf'
#: What starts and stops KSM.
KSM = '/sys/kernel/mm/ksm/run'
_SYSTEM = 'etc/systemd/system'
#: Options of a unit that start others, and conditions of its own start.
_STARTING = ('Wants', 'Requires', 'BindsTo', 'Upholds')
_CONDITIONS = ('Condition', 'Assert')
_HUGE_PAGES = '/sys/kernel/mm/hugepages'
#: File -> section and option with the CPUs of the host itself.
_HOST_LISTS = {
    'etc/systemd/system.conf.d/90-hpcvirt.conf': ('Manager', 'CPUAffinity'),
    f'{_SYSTEM}/system.slice.d/90-hpcvirt.conf': ('Slice', 'AllowedCPUs'),
    f'{_SYSTEM}/user.slice.d/90-hpcvirt.conf': ('Slice', 'AllowedCPUs'),
    f'{_SYSTEM}/init.scope.d/90-hpcvirt.conf': ('Scope', 'AllowedCPUs'),
}
_IRQBALANCE = f'{_SYSTEM}/irqbalance.service.d/90-hpcvirt.conf'
_BANNED = 'IRQBALANCE_BANNED_CPULIST'
#: The profile of TuneD that sets parameters of the kernel for its CPUs.
_PARTITIONING = 'cpu-partitioning'

#: Parameters with lists of the CPUs of guests, and of those of the host.
_GUEST_PARAMETERS = ('nohz_full', 'rcu_nocbs')
_HOST_PARAMETERS = ('irqaffinity',)
#: Parameters that are read for what they mean, and not compared as words.
READ_ALONE = frozenset({'hugepagesz', 'hugepages', *_GUEST_PARAMETERS,
                        *_HOST_PARAMETERS})

_NODE_PAGES = re.compile(r'/sys/devices/system/node/node([0-9]{1,9})/hugepages'
                         r'/hugepages-([0-9]{1,12})kB/nr_hugepages')
#: Where the script of the rule for InfiniBand has the number of functions:
#: /bin/sh -c SCRIPT sh NUMBER.
_GUID_COUNT = 4
_INFINIBAND = '32'
#: What a rule runs for a network device, or people are asked to set.
_ETHTOOL = re.compile(
    r'ethtool (-[CG]) (?:\$\$INTERFACE|DEVICE)((?: [a-z-]+ [a-z0-9]+)+)')
_NUMVFS = ('ATTR', 'sriov_numvfs')

Pages = Mapping[int, Mapping[int, int]]


@dataclasses.dataclass(frozen=True, slots=True)
class BootedPages:
    """The huge pages that a host boots with.

    :ivar where: the file that reserves them
    :ivar kernel: on which kernels, as the end of a sentence
    :ivar pages: cell -> page size in KiB -> number, for all sizes that are set
    """

    where: str
    kernel: str
    pages: Pages


@dataclasses.dataclass(frozen=True, slots=True)
class CpuList:
    """A list of CPUs in a file.

    :ivar cpus: None if the file or the option is not there
    :ivar of_guests: whether the CPUs are those of guests or of the host itself
    :ivar is_parameter: whether the kernel gets it on its command line
    """

    where: str
    option: str
    cpus: frozenset[int] | None
    of_guests: bool
    is_parameter: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Functions:
    """The virtual functions that a host creates.

    :ivar counts: address of a device -> the number of its functions
    :ivar guids: address -> how many of them get GUIDs; None if files cannot
        say it
    """

    where: str
    counts: Mapping[str, int]
    guids: Mapping[str, int] | None


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a file: name -> value."""

    where: str
    values: Mapping[str, str]


@dataclasses.dataclass(frozen=True, slots=True)
class Booted:
    """What a host has after a reboot with the files.

    :ivar parameters: the parameters of the kernel without pages and CPUs, for
        each file that sets them
    :ivar modules: ``MODULE.OPTION`` -> value; None if no file can set them
    :ivar merges: what KSM does (``/sys/kernel/mm/ksm/run``)
    :ivar profiles: the profiles of TuneD that are hpcvirt's own
    :ivar network: what ethtool sets on each network device
    """

    pages: tuple[BootedPages, ...]
    cpu_lists: tuple[CpuList, ...]
    functions: Functions
    parameters: tuple[Settings, ...]
    sysctls: Settings
    modules: Settings | None
    merges: Settings
    profiles: tuple[Settings, ...]
    network: Settings


def read(host: host_model.Host, written: written_files.WrittenHost) -> Booted:
    """Read what a host has after a reboot.

    :raises InvalidInput: naming the file that its consumer does not take
    """
    for path, command in _list_commands(written, (), _KERNELS[1]):
        raise exception.InvalidInput(
            path, f'runs {command!r} also on a host that was not booted for '
            'these pages (ConditionKernelCommandLine)')
    pages: list[BootedPages] = []
    lists: list[CpuList] = []
    parameters = []
    for own in _list_command_lines(written):
        found = _split(own.text)
        pages += _boot(own.path, found, host, written)
        lists += _read_parameter_lists(own.path, found, written)
        skipped = READ_ALONE
        if not written.files:
            # The profile of TuneD adds these, which must not be there twice.
            skipped -= {*_GUEST_PARAMETERS}
        parameters.append(Settings(own.path, {
            name: value for name, value in found if name not in skipped}))
    lists += _read_file_lists(written)
    lists += _read_variable_lists(written)
    return Booted(tuple(pages), tuple(lists), _read_functions(host, written),
                  tuple(parameters), _read_sysctls(written),
                  _read_modules(written), _read_ksm(written),
                  tuple(_read_profiles(written)), _read_network(written))


def _list_command_lines(written: written_files.WrittenHost,
                        ) -> Iterator[written_files.WrittenText]:
    """List what the kernel gets: from GRUB, and from grubby."""
    if written.files:
        where = written.folder + _GRUB
        text = written.files.get(_GRUB, '')
        yield written_files.WrittenText(
            where, file_syntax.read_grub(text, where))
    if written.variables:
        name = 'edpm_kernel_args'
        if written.files:
            name = 'hpcvirt_host_kernel_parameters'
        path, text = written.need(name)
        yield written_files.WrittenText(f'{path}: {name}', str(text))


def _split(text: str) -> list[tuple[str, str]]:
    """Divide a command line into names and values."""
    found = []
    for word in command_line.split(text):
        name, _, value = word.partition('=')
        found.append((name.replace('-', '_'), value))
    return found


def _boot(where: str, parameters: Collection[tuple[str, str]],
          host: host_model.Host, written: written_files.WrittenHost,
          ) -> Iterator[BootedPages]:
    """Boot with a command line, with Linux 5.16 and with an older one."""
    has_cells = any(name == 'hugepages' and ':' in value
                    for name, value in parameters)
    for kernel in _KERNELS:
        is_old = kernel == _KERNELS[1]
        if is_old and has_cells and not written.files:
            # The file says that the kernel must be a newer one.
            continue
        pages = _reserve(where, parameters, host, is_old)
        last = where
        for path, command in _list_commands(written, parameters, kernel):
            cell, size, count = _read_command(command, host, path)
            pages[cell][size] = count
            last = path
        on = ''
        if has_cells:
            on = ' on Linux 5.16 and newer'
            if is_old:
                on = ' on Linux before 5.16'
        yield BootedPages(last if is_old else where, on, pages)


def _reserve(where: str, parameters: Iterable[tuple[str, str]],
             host: host_model.Host, is_old: bool) -> dict[int, dict[int, int]]:
    """Reserve the pages of a command line."""
    pages: dict[int, dict[int, int]] = {cell.id: {} for cell in host.cells}
    usual, size = _USUAL_KIB, None
    seen = set()
    for name, value in parameters:
        if name == 'default_hugepagesz':
            usual = _read_size(value, where)
        elif name == 'hugepagesz':
            size = _read_size(value, where)
        elif name == 'hugepages':
            own = usual if size is None else size
            if own in seen:
                raise exception.InvalidInput(
                    where, f'has hugepages={value} after another number of '
                    f'pages of {words.format_size(own)}, which the kernel '
                    'ignores')
            seen.add(own)
            for cell, count in _read_counts(value, host, where, is_old):
                pages[cell][own] = count
    return pages


def _read_size(text: str, where: str) -> int:
    """Read a size; without a unit, the kernel reads bytes."""
    found = re.fullmatch('([0-9]{1,12})([KMGkmg])', text)
    size = words.read_size(text) if found else None
    if not size:
        raise exception.InvalidInput(
            where, f'has {text!r}, which is no size of pages to the kernel')
    return size


def _read_counts(text: str, host: host_model.Host, where: str, is_old: bool,
                 ) -> Iterator[tuple[int, int]]:
    """Read the value of hugepages: the number of pages of each cell."""
    if is_old:
        text = text.partition(':')[0]
    if ':' not in text:
        total = words.read_whole(text)
        cells = [cell.id for cell in host.cells if cell.memory_mib]
        if total is None:
            raise exception.InvalidInput(
                where, f'has hugepages={text}, which the kernel refuses')
        each, rest = divmod(total, len(cells))
        for index, cell in enumerate(cells):
            yield cell, each + (index < rest)
        return
    for part in text.split(','):
        first, _, number = part.partition(':')
        node, count = words.read_whole(first), words.read_whole(number)
        if node is None or count is None or node not in host.by_id:
            raise exception.InvalidInput(
                where, f'has hugepages={text}, and the kernel refuses '
                f'{part!r} on this host')
        yield node, count


def _list_commands(written: written_files.WrittenHost,
                   parameters: Collection[tuple[str, str]],
                   kernel: tuple[int, int]) -> Iterator[tuple[str, str]]:
    """List the commands of the units that start at boot, with their files."""
    started: set[str] = set()
    for path, text in written.files.items():
        if fnmatch.fnmatchcase(path, f'{_SYSTEM}/sysinit.target.d/*.conf'):
            where = written.folder + path
            unit = file_syntax.read_unit(text, where)
            for option in _STARTING:
                # An empty value does not take back what is wanted.
                for names in unit.get(('Unit', option), ()):
                    started.update(file_syntax.read_names(names, where))
    for path, text in written.files.items():
        if path.removeprefix(f'{_SYSTEM}/') not in started:
            continue
        where = written.folder + path
        unit = file_syntax.read_unit(text, where)
        if not _may_start(unit, parameters, kernel, where):
            continue
        for section, option in unit:
            if (section == 'Service' and option.startswith('Exec')
                    and option != 'ExecStart'):
                raise exception.InvalidInput(
                    where, f'has {option}, which is not understood')
        for command in file_syntax.drop_former(
                unit.get(('Service', 'ExecStart'), ())):
            yield where, command


def _may_start(unit: file_syntax.Unit,
               parameters: Collection[tuple[str, str]],
               kernel: tuple[int, int], where: str) -> bool:
    """Tell whether the conditions of a unit hold."""
    holds = True
    for (section, option), values in unit.items():
        if section != 'Unit' or not option.startswith(_CONDITIONS):
            continue
        for text in values:
            met = _meets(option, text, parameters, kernel)
            if met is None:
                raise exception.InvalidInput(
                    where, f'has {option}={text}, which is not understood')
            holds = holds and met
    return holds


def _meets(option: str, text: str, parameters: Collection[tuple[str, str]],
           kernel: tuple[int, int]) -> bool | None:
    """Tell whether a condition holds; None if it is not understood."""
    if option == 'ConditionKernelVersion':
        limit = re.fullmatch('<([0-9]{1,3})[.]([0-9]{1,3})', text)
        return None if limit is None else (
            kernel < (int(limit[1]), int(limit[2])))
    if option == 'ConditionKernelCommandLine':
        name, equals, value = text.partition('=')
        if not re.fullmatch(r'\w+', name):
            return None
        return any(own == name and (not equals or its == value)
                   for own, its in parameters)
    if option == 'ConditionPathExists' and text == _HUGE_PAGES:
        # Every kernel with huge pages has it.
        return True
    return None


def _read_command(command: str, host: host_model.Host,
                  where: str) -> tuple[int, int, int]:
    """Read a command: the cell, the page size and the number it writes."""
    words_ = file_syntax.read_words(command.lstrip('-+!:'), where)
    inner: list[str] = []
    if words_[:2] == ['/bin/sh', '-c'] and len(words_) == 3:
        with contextlib.suppress(ValueError):
            inner = shlex.split(words_[2])
    if len(inner) == 4 and inner[0] == 'echo' and inner[2] == '>':
        count = words.read_whole(inner[1])
        place = _NODE_PAGES.fullmatch(inner[3])
        if count is not None and place and int(place[1]) in host.by_id:
            return int(place[1]), int(place[2]), count
    raise exception.InvalidInput(
        where, f'runs {command!r}, which reserves no pages on this host')


def _read_parameter_lists(where: str, parameters: Iterable[tuple[str, str]],
                          written: written_files.WrittenHost,
                          ) -> Iterator[CpuList]:
    """Read the lists of CPUs on the command line."""
    values = dict(parameters)
    names = [*_HOST_PARAMETERS]
    if written.files:
        # Elsewhere, the profile of TuneD adds those of guests.
        names += _GUEST_PARAMETERS
    for name in names:
        cpus = None
        if name in values:
            cpus = file_syntax.read_cpus(values[name], f'{where}: {name}')
        yield CpuList(where, name, cpus, name in _GUEST_PARAMETERS, True)


def _read_file_lists(written: written_files.WrittenHost) -> Iterator[CpuList]:
    """Read the lists of CPUs in files of systemd."""
    if not written.files:
        return
    for path, (section, option) in _HOST_LISTS.items():
        where = written.folder + path
        unit = file_syntax.read_unit(written.files.get(path, ''), where)
        values = file_syntax.drop_former(unit.get((section, option), ()))
        cpus = None
        if values:
            cpus = file_syntax.read_cpus(' '.join(values), where)
        yield CpuList(where, option, cpus, False)
    where = written.folder + _IRQBALANCE
    unit = file_syntax.read_unit(written.files.get(_IRQBALANCE, ''), where)
    text = file_syntax.read_environment(unit, _BANNED, where)
    banned = None if text is None else file_syntax.read_cpus(text, where)
    yield CpuList(where, _BANNED, banned, True)


def _read_variable_lists(written: written_files.WrittenHost,
                         ) -> Iterator[CpuList]:
    """Read the lists of CPUs in variables of deployment tools."""
    if written.find('nova_cell_compute_provider_config') is not None:
        name = 'default_container_dimensions'
        path, text = written.find(name) or (written.variables[-1].path, '')
        match = re.search(r"'cpuset_cpus': '([^']*)'", str(text))
        own = file_syntax.read_cpus(match[1], path) if match else None
        yield CpuList(path, f'{name}.cpuset_cpus', own, False)
    if written.about is not None:
        path, profile = written.need('edpm_tuned_profile')
        name = 'edpm_tuned_isolated_cores'
        isolated = written.find(name)
        cpus = None
        if isolated is not None and profile == _PARTITIONING:
            cpus = file_syntax.read_cpus(str(isolated[1]), f'{path}: {name}')
        yield CpuList(path, f'{name} of the profile {_PARTITIONING}', cpus,
                      True)


def _read_functions(host: host_model.Host,
                    written: written_files.WrittenHost) -> Functions:
    """Read the virtual functions of the devices of a host."""
    if written.about is not None:
        return _read_stated(written.about)
    where = written.folder + _UDEV
    rules = file_syntax.read_rules(written.files.get(_UDEV, ''), where)
    counts: dict[str, int] = {}
    guids: dict[str, int] = {}
    for device in host.devices:
        # The initramfs may have bound the driver, or it is bound later.
        seen = {_find_count(rules, device.address, action, where)
                for action in ('add', 'bind')}
        if len(seen) > 1:
            raise exception.InvalidInput(
                where, f'creates virtual functions of {device.address} only '
                'if its driver is bound at the right time (ACTION)')
        for count in seen - {None}:
            counts[device.address] = count or 0
        event = {('ACTION', ''): 'add', ('SUBSYSTEM', ''): 'net',
                 ('KERNELS', ''): device.address,
                 ('ATTR', 'type'): _INFINIBAND}
        command = file_syntax.apply_rules(rules, event).get(('RUN', ''))
        if command is not None:
            guids[device.address] = _read_guid_count(command, where)
    _check_addresses(rules, host, where)
    return Functions(where, counts, guids)


def _check_addresses(rules: Iterable[Iterable[file_syntax.Term]],
                     host: host_model.Host, where: str) -> None:
    """Check that each rule is for a device of the host."""
    addresses = [device.address for device in host.devices]
    for rule in rules:
        for key, _, operator, value in rule:
            if key not in ('KERNEL', 'KERNELS') or operator != '==':
                continue
            for each in value.split('|'):
                if not fnmatch.filter(addresses, each):
                    raise exception.InvalidInput(
                        where, f'has a rule for {each}, which the host lacks')


def _find_count(rules: Iterable[Iterable[file_syntax.Term]], address: str,
                action: str, where: str) -> int | None:
    """Find how many virtual functions a device gets at an event."""
    event = {('ACTION', ''): action, ('SUBSYSTEM', ''): 'pci',
             ('KERNEL', ''): address, ('KERNELS', ''): address}
    text = file_syntax.apply_rules(rules, event).get(_NUMVFS)
    if text is None:
        return None
    count = words.read_whole(text)
    if count is None:
        raise exception.InvalidInput(
            where, f'sets sriov_numvfs of {address} to {text!r}, which is no '
            'number')
    return count


def _read_guid_count(command: str, where: str) -> int:
    """Read for how many functions a rule sets GUIDs."""
    try:
        count = words.read_whole(shlex.split(command)[_GUID_COUNT])
    except (ValueError, IndexError):
        count = None
    if count is None:
        raise exception.InvalidInput(
            where, 'sets GUIDs, but does not say of how many virtual '
            'functions')
    return count


def _read_network(written: written_files.WrittenHost) -> Settings:
    """Read what network devices get: option and name -> value."""
    if written.about is not None:
        text = ' '.join(_list_stated(written.about))
        return Settings(written.about.path, dict(
            _split_ethtool(_ETHTOOL.findall(text))))
    where = written.folder + _NETWORK
    rules = file_syntax.read_rules(written.files.get(_NETWORK, ''), where)
    event = {('ACTION', ''): 'add', ('SUBSYSTEM', ''): 'net',
             ('SUBSYSTEMS', ''): 'pci'}
    command = file_syntax.apply_rules(rules, event).get(('RUN', ''))
    if command is None:
        return Settings(where, {})
    try:
        words_ = shlex.split(command)
    except ValueError:
        words_ = []
    found = []
    if words_[:2] == ['/bin/sh', '-c'] and len(words_) == 3:
        found = [_ETHTOOL.fullmatch(part) for part in words_[2].split('; ')]
    if not found or None in found:
        raise exception.InvalidInput(
            where, f'runs {command!r}, which is not understood')
    return Settings(where, dict(_split_ethtool(
        (match[1], match[2]) for match in found if match)))


def _split_ethtool(commands: Iterable[tuple[str, str]],
                   ) -> Iterator[tuple[str, str]]:
    """Yield the option with the name, and the value, of all commands."""
    for option, rest in commands:
        given = rest.split()
        for name, value in zip(given[::2], given[1::2], strict=True):
            yield f'{option} {name}', value


def _list_stated(about: written_files.WrittenText) -> list[str]:
    """List the lines of what people are asked for."""
    return [line.removeprefix('#').strip() for line
            in about.text.splitlines()]


def _read_stated(about: written_files.WrittenText) -> Functions:
    """Read the virtual functions that a file asks people for."""
    counts = {}
    _, found, rest = ' '.join(_list_stated(about)).partition(
        ' of type sriov_pf: ')
    if found:
        for term in rest.partition('. ')[0].removesuffix('.').split(','):
            address, _, number = term.strip().partition(' ')
            count = words.read_whole(number)
            if count is None:
                raise exception.InvalidInput(
                    about.path, f'asks for virtual functions as {term!r}')
            counts[address] = count
    return Functions(about.path, counts, None)


def _read_sysctls(written: written_files.WrittenHost) -> Settings:
    """Read the values of /proc/sys."""
    found = {}
    kayobe = written.find('sysctl_parameters')
    if kayobe is not None:
        path, text = kayobe
        where = f'{path}: sysctl_parameters'
        match = re.search(r'[|] combine[(]([{].*[}])[)]', str(text))
        values = yaml_document.value(match[1], where) if match else {}
        for name, value in values.items():
            found[name] = str(value)
        return Settings(where, found)
    if written.about is not None:
        path, settings = written.need('edpm_kernel_sysctl_extra_settings')
        where = f'{path}: edpm_kernel_sysctl_extra_settings'
        try:
            for name, own in settings.items():
                found[name] = str(own['value'])
        except (AttributeError, KeyError, TypeError):
            raise exception.InvalidInput(
                where, 'is not a mapping of names to values') from None
        return Settings(where, found)
    where = written.folder + _SYSCTL
    return Settings(where, file_syntax.read_sysctls(
        written.files.get(_SYSCTL, ''), where))


def _read_modules(written: written_files.WrittenHost) -> Settings | None:
    """Read the options of modules."""
    if not written.files:
        return None
    where = written.folder + _MODPROBE
    return Settings(where, file_syntax.read_modules(
        written.files.get(_MODPROBE, ''), where))


def _read_ksm(written: written_files.WrittenHost) -> Settings:
    """Read what KSM does: 0 stops it, 1 starts it, 2 separates pages too."""
    edpm = written.find('edpm_kernel_enable_ksm')
    if edpm is not None:
        return Settings(f'{edpm[0]}: edpm_kernel_enable_ksm',
                        {KSM: '1' if edpm[1] else '2'})
    where = written.folder + _TMPFILES
    return Settings(where, file_syntax.read_tmpfiles(
        written.files.get(_TMPFILES, ''), where))


def _read_profiles(written: written_files.WrittenHost) -> Iterator[Settings]:
    """Read the profiles of TuneD."""
    texts = {written.folder + path: text
             for path, text in written.files.items()
             if fnmatch.fnmatchcase(path, _TUNED)}
    own = written.find('edpm_tuned_custom_profile')
    if own is not None:
        texts[f'{own[0]}: edpm_tuned_custom_profile'] = str(own[1])
    for where, text in texts.items():
        found = file_syntax.read_profile(text, where)
        found.pop('main.summary', None)
        yield Settings(where, found)

# SPDX-License-Identifier: Apache-2.0

"""Find settings in files of the site that conflict with those of hpcvirt.

The boot loader, sysctl, systemd and modprobe combine the settings of all
files, or use the last one. Either may be what neither the site nor the plan
wants: a kernel that boots with the pages of both reserves those that it reads
first. The role ``hpcvirt.hpc.host`` looks for the same expressions.
"""

import dataclasses
import fnmatch
import re
import shlex
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping

from hpcvirt.deployment import host_files
from hpcvirt.deployment import steps
from hpcvirt.deployment import tree
from hpcvirt.flavors import kernel_settings
from hpcvirt.model import cpuset

GRUBBY = 'usr/sbin/grubby'

#: Parameters of which each use changes what the others mean, or that isolate
#: CPUs.
_ALONE = ('default_hugepagesz', 'hugepagesz', 'hugepages', 'isolcpus')
#: Parameters that are wrong where the plan does not want them.
_CPU_LISTS = ('nohz_full', 'rcu_nocbs', 'irqaffinity')
_COMMENT = re.compile(r'(?m)^[ \t]*[#;].*$')
#: Where the parameters of the kernel are: without grubby, and with it.
_GRUB_FILES = ('etc/default/grub', 'etc/default/grub.d/*.cfg')
_GRUBBY_FILES = ('etc/default/grub', 'etc/kernel/cmdline',
                 'boot/loader/entries/*.conf')
#: What changes the pages of the plan, or starts KSM.
_TMPFILES = (r'(?m)^[ \t]*[wf]\S*[ \t]+/sys/(?:\S*/hugepages-\w+/nr_hugepages'
             r'\b.*|kernel/mm/ksm/run[ \t].*[ \t]1[ \t]*)$')
#: Debian's link to /etc/sysctl.conf, which is read by itself.
_LINK = '99-sysctl.conf'


@dataclasses.dataclass(frozen=True, slots=True)
class SiteFiles:
    """Files of the site that may set the same as a file of hpcvirt.

    :ivar path: relative to the root; the name may be a pattern of the shell
    :ivar pattern: the regular expression of what conflicts
    :ivar why: why it conflicts, as the end of "FILE sets SETTING, ..."
    :ivar activate: what makes a change of the file effective
    :ivar replacement: what takes its place; None if another program removes it
    :ivar after: only files whose names sort after this one count
    """

    path: str
    pattern: str
    why: str
    activate: tuple[str, ...] = ('reboot',)
    replacement: str | None = r'# hpcvirt: \g<0>'
    after: str = ''

    def find(self, path: str, text: str) -> list[str]:
        """Find what conflicts in a file, which may be another's."""
        name = path.rpartition('/')[2]
        if (not fnmatch.fnmatchcase(path, self.path)
                or path.count('/') != self.path.count('/')
                or name <= self.after or name == _LINK):
            return []
        return list(dict.fromkeys(
            found.replace('\\\n', '').strip() for found in re.findall(
                self.pattern, _COMMENT.sub('', text))))


@dataclasses.dataclass(frozen=True, slots=True)
class Conflict:
    """A setting of the site that conflicts.

    :ivar files: the files that it is in one of
    """

    path: str
    found: str
    files: SiteFiles

    @property
    def words(self) -> str:
        """Say what the file sets in one line."""
        return f'{self.path} sets {self.found}, {self.files.why}'


def parameter_pattern(state: kernel_settings.KernelSettings) -> str:
    """Write the expression of parameters of the kernel that conflict."""
    wanted = {item.name: item.value for item in state.parameters
              if item.name not in _ALONE}
    names = [*_ALONE, *(name for name in _CPU_LISTS if name not in wanted), *(
        fr'{re.escape(name)}(?!={re.escape(value)}(?:[\s"\']|$))'
        for name, value in wanted.items())]
    return (fr'(?<![\w.-])(?:{"|".join(names)})'
            r'(?:=[^\s"\']*)?(?![\w.=-])')


def list_site_files(state: kernel_settings.KernelSettings,
                    grubby: bool = False) -> Iterator[SiteFiles]:
    """List the files that may conflict with those of a host.

    :param grubby: whether the boot loader is set by grubby, as on RHEL
    """
    words = parameter_pattern(state)
    for path in _GRUBBY_FILES if grubby else _GRUB_FILES:
        yield SiteFiles(path, words, 'which grubby can remove' if grubby else
                        'which the kernel would boot with too',
                        ('update-grub', 'reboot'), None if grubby else '')
    yield SiteFiles('etc/tuned/bootcmdline', words,
                    'which TuneD removes when its profile changes',
                    replacement=None)
    sysctls = '|'.join(
        fr'{item.name.replace(".", "[./]")}[ \t]*=(?![ \t]*{item.value}\s*$).*'
        for item in state.sysctls)
    after = host_files.SYSCTL.rpartition('/')[2]
    for path in ('etc/sysctl.conf', 'etc/sysctl.d/*.conf',
                 'usr/lib/sysctl.d/*.conf'):
        yield SiteFiles(path, fr'(?m)^[ \t]*-?(?:{sysctls})$',
                        f'and is read after {after}', ('sysctl --system',),
                        after=after if '*' in path else '')
        if state.default_page_kib is not None:
            yield SiteFiles(
                path, r'(?m)^[ \t]*-?vm[./]nr_hugepages\w*[ \t]*=.*$',
                'which changes the pages of the cells at boot')
    yield SiteFiles('etc/tmpfiles.d/*.conf', _TMPFILES,
                    'which systemd-tmpfiles writes at boot')
    yield SiteFiles(
        'etc/tuned/tuned-main.conf',
        r'(?m)^[ \t]*reapply_sysctl[ \t]*=[ \t]*(?:0|[Ff]al\w+)[ \t]*$',
        f'so that TuneD takes back what {after} sets')
    # A line that ends with a backslash goes on in the next one.
    rest = r'(?:\\\n|.)*'
    options = '|'.join(
        fr'{module.replace("_", "[_-]")}\b{rest}\b{item.name}='
        fr'(?!(?:{item.value}|[Yy]|on)\b){rest}'
        for module, item in state.module_options.items())
    after = host_files.MODULES.rpartition('/')[2]
    for folder in ('etc', 'usr/lib'):
        yield SiteFiles(f'{folder}/modprobe.d/*.conf',
                        fr'(?m)^[ \t]*options[ \t]+(?:{options})$',
                        f'and is read after {after}', after=after)
    if not state.housekeeping:
        return
    own = '[ ,]+'.join(map(re.escape, cpuset.render(
        state.housekeeping).split(',')))
    for path, option in (
            ('etc/systemd/system.conf', 'CPUAffinity'),
            ('etc/systemd/system.conf.d/*.conf', 'CPUAffinity'),
            *((f'etc/systemd/system/{unit}.d/*.conf', 'AllowedCPUs')
              for unit in host_files.ALLOWED)):
        yield SiteFiles(
            path, fr'(?m)^[ \t]*{option}[ \t]*=(?![ \t]*{own}[ \t]*$).*$',
            'and systemd joins the lists of all files')


def find_conflicts(state: kernel_settings.KernelSettings,
                   site: Mapping[str, str],
                   former: Collection[str] | None = None) -> list[Conflict]:
    """Find the settings of the site that conflict, one by one.

    :param site: path -> content
    :param former: the parameters that hpcvirt gave to grubby before; None on
        a host without grubby
    """
    own = ({*host_files.command_line(state).split(), *former}
           if former is not None else ())
    rules = list(list_site_files(state, former is not None))
    conflicts: list[Conflict] = []
    for path, text in site.items():
        if text.startswith(tree.MARK):
            continue
        for files in rules:
            conflicts += [Conflict(path, found, files)
                          for found in files.find(path, text)
                          if found not in own]
    return conflicts


def remove(conflicts: Iterable[Conflict],
           site: Mapping[str, str]) -> list[steps.FileChange]:
    """Remove what conflicts, unless another program does, from the files."""
    found: dict[str, tree.File] = {}
    for item in conflicts:
        if item.files.replacement is not None:
            file = found.get(item.path) or tree.File(item.path,
                                                     site[item.path])
            found[item.path] = tree.File(
                item.path, re.sub(item.files.pattern, item.files.replacement,
                                  file.text),
                tuple(dict.fromkeys((*file.activate, *item.files.activate))))
    return [steps.FileChange(file, site[path], steps.FileStatus.CHANGED)
            for path, file in found.items()]


def former_parameters(text: str) -> list[str]:
    """Read the parameters of a file that hpcvirt wrote for GRUB."""
    match = re.search('(?m)^GRUB_CMDLINE_LINUX="[$]GRUB_CMDLINE_LINUX (.*)"$',
                      text)
    return match[1].split() if match else []


def write_grubby(wanted: str, former: Iterable[str],
                 conflicts: Iterable[Conflict] = ()) -> str:
    """Write the command that sets parameters in every boot entry.

    grubby adds parameters, and never takes one away by itself.

    :param former: the parameters that hpcvirt gave to grubby before
    """
    removed = dict.fromkeys(word.partition('=')[0] for word in (
        *(word for word in former if word not in wanted.split()),
        *(item.found for item in conflicts if item.files.replacement is None)))
    return shlex.join((
        'grubby', '--update-kernel=ALL',
        *([f'--remove-args={" ".join(removed)}'] if removed else []),
        *([f'--args={wanted}'] if wanted else [])))

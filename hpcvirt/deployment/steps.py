# SPDX-License-Identifier: Apache-2.0

"""Compare the files that should be there with those that are."""

import dataclasses
import difflib
import enum
import re
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping

from hpcvirt.deployment import host_files
from hpcvirt.deployment import tree

#: Options with which nova-compute does not start beside cpu_dedicated_set
#: (_check_cpu_set_configuration of the libvirt driver).
_REFUSED = (('DEFAULT', 'vcpu_pin_set'), ('DEFAULT', 'reserved_host_cpus'))

#: The files of nova-compute, as patterns.
NOVA = ('etc/nova/nova.conf', 'etc/nova/nova-compute.conf',
        'etc/nova/nova.conf.d/*.conf', 'etc/nova/nova-compute.conf.d/*.conf')


class FileStatus(enum.StrEnum):
    """What happens to a file."""

    NEW = 'new'
    SAME = 'same'
    CHANGED = 'changed'
    REMOVED = 'removed'
    FOREIGN = 'not written by hpcvirt'


@dataclasses.dataclass(frozen=True, slots=True)
class FileChange:
    """A file, and what is at its place.

    :ivar before: the content that is there; None if there is no file
    """

    file: tree.File
    before: str | None
    change: FileStatus

    def difference(self) -> Iterator[str]:
        """Write the difference of a changed file as lines."""
        yield from difflib.unified_diff(
            (self.before or '').splitlines(), self.file.text.splitlines(),
            f'a/{self.file.path}', f'b/{self.file.path}', lineterm='')


def compare(files: Iterable[tree.File],
            present: Mapping[str, str]) -> tuple[FileChange, ...]:
    """Compare files with the contents that are there.

    :param present: path -> content, also of files that are no longer wanted;
        these are removed if hpcvirt wrote them
    """
    found = {}
    for file in files:
        before = present.get(file.path)
        kept = split_shared(before)[1] if before and file.shared else ''
        wanted = dataclasses.replace(file, text=file.text + kept)
        if before is None:
            status = FileStatus.NEW
        elif before == wanted.text:
            status = FileStatus.SAME
        elif file.shared or before.startswith(tree.MARK):
            status = FileStatus.CHANGED
        else:
            status = FileStatus.FOREIGN
        found[file.path] = FileChange(wanted, before, status)
    return (*found.values(), *(
        FileChange(tree.File(path, '', ('reboot',)), present[path],
                   FileStatus.REMOVED)
        for path in host_files.OPTIONAL if path not in found
        and present.get(path, '').startswith(tree.MARK)))


def split_shared(text: str) -> tuple[str, str]:
    """Split a shared file into the part of hpcvirt and that of the site."""
    if not text.startswith(tree.MARK):
        return '', text
    own, end, rest = text.partition(tree.END)
    return own + end, rest


def find_lost_hosts(step: FileChange) -> list[str]:
    """List the hosts of an inventory that its new content lacks."""
    if not step.file.path.endswith('inventory/hpcvirt.yml'):
        return []
    # ansible.inventory writes each host as "HOST: {}".
    before, after = (
        set(re.findall(r"(?m)^\s+'?([A-Za-z0-9._-]+)'?: \{\}$", text))
        for text in (step.before or '', step.file.text))
    return sorted(before - after)


def conflicts(nova_text: str,
              others: Mapping[str, str]) -> Iterator[str]:
    """Find options of Nova that other files set as well.

    :param nova_text: hpcvirt's part of ``nova.conf``
    :param others: path -> content of the other files of nova-compute
    """
    own = _names(nova_text)
    for path, text in others.items():
        there = _names(text)
        for section, name in sorted(own & there):
            yield (f'{path} sets [{section}]{name} too; set it in one place, '
                   'because either value, or both, may count')
        for section, name in _REFUSED:
            if (section, name) in there:
                yield (f'{path} sets [{section}]{name}, with which '
                       'nova-compute refuses to start beside '
                       'cpu_dedicated_set')


def _names(text: str) -> set[tuple[str, str]]:
    section, found = 'DEFAULT', set()
    for header, name in re.findall(
            r'(?m)^(?:\[([^]\n]+)\]|([A-Za-z_][\w-]*)[ \t]*[=:])', text):
        if header:
            section = header.strip()
        else:
            found.add((section, name))
    return found

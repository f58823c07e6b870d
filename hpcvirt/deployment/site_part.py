# SPDX-License-Identifier: Apache-2.0

"""Keep what the site sets in a file of Nova that it shares with hpcvirt.

kolla-ansible reads one file for each host and for each service, so that the
site has no other place for its options. hpcvirt writes its part first, and
ends it with a line that has a checksum. What follows is the site's and stays,
and so do options that the site has put into the part of hpcvirt.
"""

import dataclasses
import hashlib
import re
from collections.abc import Iterator
from collections.abc import Mapping

from hpcvirt.deployment import site_settings
from hpcvirt.deployment import tree

_END = re.compile(r'(?m)^# End of what hpcvirt wrote \((\w+)\).*\n?')
#: Section and name of what hpcvirt writes, of any plan.
_WRITTEN = re.compile(
    r'\[DEFAULT\]reserved_(host_memory_mb|huge_pages)'
    r'|\[compute\](cpu_(dedicated|shared)_set|packing_host_numa_cells_\w+)'
    r'|\[pci\](device_spec|alias)|\[devices\]enabled_mdev_types'
    r'|\[mdev_.*\].*')
#: Options that Nova takes several times.
_JOINED = ('reserved_huge_pages', 'device_spec', 'alias')


@dataclasses.dataclass(frozen=True, slots=True)
class NovaOption:
    """An option of Nova.

    :ivar lines: how it is written, with lines that continue the value
    """

    section: str
    name: str
    value: str
    lines: str

    @property
    def full_name(self) -> str:
        """Write the section and the name."""
        return f'[{self.section}]{self.name}'

    @property
    def words(self) -> str:
        """Write the option in one line."""
        return f'{self.full_name} = {self.value}'


def read_options(text: str, section: str = 'DEFAULT') -> Iterator[NovaOption]:
    """Read the options of a file of Nova.

    :param section: of options before the first header
    """
    for match in re.finditer(
            r'(?m)^(?:\[([^]\n]+)\].*|([A-Za-z_][\w-]*)[ \t]*[=:][ \t]*(.*)'
            r'((?:\n[ \t]+\S.*)*))$', text):
        if match[1] is not None:
            section = match[1].strip()
        else:
            yield NovaOption(section, match[2], ' '.join(
                (match[3] + match[4]).split()), match[0])


def close(text: str) -> str:
    """End the part of hpcvirt."""
    return (f'{text}\n# End of what hpcvirt wrote ({_checksum(text)}). Put '
            'options of yours below: they stay.\n')


def _checksum(text: str) -> str:
    """Sum up the options that hpcvirt writes, without those of others."""
    return hashlib.sha256(''.join(
        f'{item.words}\n' for item in read_options(text)
        if _WRITTEN.fullmatch(item.full_name)).encode()).hexdigest()[:8]


def join(text: str, before: str) -> str:
    """Write the content of a file, with what the site has there.

    :param text: the part of hpcvirt, which is closed
    :param before: the content of the file that is there
    """
    own, kept, section, moved = '', before, 'DEFAULT', []
    if before.startswith(tree.MARK):
        end = _END.search(before)
        own, kept = ((before[:end.start()], before[end.end():]) if end
                     else (before, ''))
        edited = end is None or _checksum(own) != end[1]
        present = {item.words for item in read_options(text)}
        for item in read_options(own):
            section = item.section
            if not _WRITTEN.fullmatch(item.full_name) or (
                    edited and item.words not in present):
                moved.append(f'[{section}]\n{item.lines}\n')
    # Options without a header are in the section before.
    if (first := next(read_options(kept, section), None)) and kept.find(
            first.lines) < (f'{kept}['.find('[')):
        kept = f'[{section}]\n{kept}'
    return text + ''.join(moved) + kept


def find_conflicts(file: tree.File, others: Mapping[str, str],
                   ) -> list[site_settings.Conflict]:
    """Find options of the site that Nova would not read, or read instead.

    :param others: path -> content of the files that are merged before; of an
        option that the file has, none of their values counts
    """
    end = _END.search(file.text)
    place = end.end() if end else len(file.text)
    own, kept = file.text[:place], file.text[place:]
    wanted = {item.full_name: item.value for item in read_options(own)}
    there = {item.words for item in read_options(file.text)}
    found = []
    for item in read_options(kept):
        value = wanted.get(item.full_name, item.value)
        if item.name not in _JOINED and item.value != value:
            kept = re.sub(
                f'(?m)^{re.escape(item.lines)}$', lambda match: re.sub(
                    '(?m)^', site_settings.REPLACED, match[0]), kept)
            found.append((file.path, item, f'and hpcvirt {value}'))
    for path, text in others.items():
        for item in read_options(text):
            note = f'{site_settings.REPLACED}{item.words}\n'
            if (item.name in _JOINED and item.full_name in wanted
                    and item.words not in there and note not in kept):
                kept += note
                why = (f'of which {file.path} takes the place; to keep it, '
                       'repeat it there at the end')
                found.append((path, item, why))
    replaced = dataclasses.replace(file, text=own + kept)
    return [site_settings.Conflict(path, item.words, why, replaced)
            for path, item, why in found]

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


class Change(enum.StrEnum):
    """What happens to a file."""

    NEW = 'new'
    SAME = 'same'
    CHANGED = 'changed'
    REMOVED = 'removed'
    FOREIGN = 'not written by hpcvirt'


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """A file, and what is at its place.

    :ivar before: the content that is there; None if there is no file
    """

    file: tree.File
    before: str | None
    change: Change

    def difference(self) -> Iterator[str]:
        """Write the difference of a changed file as lines."""
        after = ('' if self.change is Change.REMOVED else self.file.text)
        yield from difflib.unified_diff(
            (self.before or '').splitlines(), after.splitlines(),
            f'a/{self.file.path}', f'b/{self.file.path}', lineterm='')


def compare(files: Iterable[tree.File],
            present: Mapping[str, str]) -> tuple[Step, ...]:
    """Compare files with the contents that are there.

    :param present: path -> content, also of files that are no longer wanted;
        these are removed if hpcvirt wrote them
    """
    wanted = {file.path: file for file in files}
    found = [_step(file, present.get(path))
             for path, file in wanted.items()]
    found += [Step(tree.File(path, '', ('reboot',)), present[path],
                   Change.REMOVED)
              for path in host_files.OPTIONAL
              if path not in wanted and path in present
              and _is_ours(present[path])]
    return tuple(found)


def _step(file: tree.File, before: str | None) -> Step:
    if before is None:
        return Step(file, before, Change.NEW)
    if before == file.text:
        return Step(file, before, Change.SAME)
    return Step(file, before, Change.CHANGED if _is_ours(before)
                else Change.FOREIGN)


def _is_ours(text: str) -> bool:
    return text.startswith(tree.MARK)


def conflicts(nova_text: str,
              others: Mapping[str, str]) -> Iterator[str]:
    """Find options of Nova that other files set as well.

    :param nova_text: hpcvirt's part of ``nova.conf``
    :param others: path -> content of the other files of nova-compute
    """
    own = set(_options(nova_text))
    for path, text in others.items():
        there = set(_options(text))
        for section, name in sorted(own & there):
            yield (f'{path} sets [{section}]{name} too; take it out there, '
                   'because either value, or both, may count')
        for section, name in _REFUSED:
            if (section, name) in there:
                yield (f'{path} sets [{section}]{name}, with which '
                       'nova-compute refuses to start beside '
                       'cpu_dedicated_set')


def _options(text: str) -> Iterator[tuple[str, str]]:
    section = 'DEFAULT'
    for line in text.splitlines():
        if header := re.match(r'\[([^]]+)\]', line):
            section = header[1].strip()
        elif option := re.match(r'([A-Za-z_][\w-]*)\s*[=:]', line):
            yield section, option[1]

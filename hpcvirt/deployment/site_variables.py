# SPDX-License-Identifier: Apache-2.0

"""Find what a site sets in the files of its deployment tool.

The site may set the same variables as hpcvirt, in files that the tool reads
too. The tool takes one value of them, as a rule without a word.
"""

import functools
import re
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

from hpcvirt import yaml_document
from hpcvirt.deployment import edpm
from hpcvirt.deployment import site_part
from hpcvirt.deployment import site_settings
from hpcvirt.deployment import tree
from hpcvirt.deployment import variables
from hpcvirt.flavors import planned as plans

#: Where deployment tools have variables and options, as patterns.
_INVENTORY = tuple(f'inventory/{kind}_vars/{name}' for kind in (
    'group', 'host') for name in ('*', '*/*'))
_KOLLA = ('globals.yml', 'globals.d/*.yml', *_INVENTORY)
FOLDERS: Mapping[str, tuple[str, ...]] = {
    'files': (),
    'ansible': _INVENTORY,
    'kolla': (*_KOLLA, 'config/global.conf', 'config/nova.conf'),
    'kayobe': ('*.yml', *_INVENTORY, *(f'kolla/{path}' for path in (
        *_KOLLA, 'config/global.conf', 'config/nova.conf'))),
    'edpm': ('*.yaml', '*.yml'),
}

#: Name -> what of a value conflicts, in words.
Checks = Mapping[str, Callable[[Any], list[str]]]

_WHY = 'and hpcvirt sets it too'


def find_conflicts(deployer: str, plan: plans.Plan,
                   files: Collection[tree.File], site: Mapping[str, str],
                   ) -> Iterator[site_settings.Conflict]:
    """Find what conflicts with the files of hpcvirt.

    :param files: as they are to be written
    :param site: path -> content of the other files in the folder
    """
    options = {path: text for path, text in site.items()
               if path.endswith('.conf')}
    for file in files:
        if file.shared:
            yield from site_part.find_conflicts(file, options)
    checks = [(_compare(files), ())] if deployer != 'edpm' else [
        (edpm.find_conflicts(group.first), [host.name for host in group.hosts])
        for group in edpm.find_groups(plan)]
    for path, content in site.items():
        text = content
        for check, hosts in checks if path not in options else ():
            for conflict in _find(path, text, check, hosts):
                if conflict.replaced is not None:
                    text = conflict.replaced.text
                yield conflict


def _compare(files: Iterable[tree.File]) -> Checks:
    """Compare with the variables of all groups."""
    found: dict[str, list[Any]] = {}
    for file in files:
        document = (yaml_document.value(file.text, file.path)
                    if file.path.endswith('.yml') else None)
        if isinstance(document, dict) and 'hpcvirt_hosts' not in document:
            for name, value in document.items():
                found.setdefault(name, []).append(value)
    # The default of this variable of kayobe is the one for the group compute.
    if values := found.get('tuned_active_builtin_profile'):
        found['compute_tuned_active_builtin_profile'] = values
    return {name: functools.partial(variables.compare, values)
            for name, values in found.items()}


def _find(path: str, text: str,
          checks: Checks,
          hosts: Collection[str] = ()) -> Iterator[site_settings.Conflict]:
    """Find variables with a value that conflicts.

    :param checks: name -> what conflicts in a value, in words
    :param hosts: documents that name nodes, and none of these, do not count
    """
    found = [(item, words) for item in variables.read(
        path, text, checks, hosts) for words in checks[item.name](item.value)]
    for start, end in sorted({(item.start, item.end) for item, _ in found},
                             reverse=True):
        text = text[:start] + re.sub('(?m)^', site_settings.REPLACED,
                                     text[start:end]) + text[end:]
    for item, words in found:
        yield site_settings.Conflict(path, f'{item.name}: {words}', _WHY,
                                     tree.File(path, text))


def read_nova_files(site: Mapping[str, str]) -> dict[str, str]:
    """Read the files of Nova in the ConfigMaps of EDPM.

    :param site: path -> content
    """
    found = {}
    for path, text in site.items():
        # The role copies *nova*.conf.
        names = re.findall(
            r'(?m)^ *["\']?([\w.-]*nova[\w.-]*\.conf)["\']?:', text)
        for item in variables.read(path, text, names) if names else ():
            found[f'{path}: {item.name}'] = str(item.value)
    return found

# SPDX-License-Identifier: Apache-2.0

"""Find what a site sets in the files of its deployment tool.

The site may set variables of hpcvirt in other files that the tool reads. The
tool uses one of the values, by rules of its own and usually without a message.
"""

import re
import textwrap
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

from hpcvirt import exception
from hpcvirt import yaml_document
from hpcvirt.deployment import ansible
from hpcvirt.deployment import formats
from hpcvirt.deployment import steps
from hpcvirt.deployment import tree

#: Where deployment tools have variables and options, as patterns.
_INVENTORY = ('inventory/group_vars/*', 'inventory/group_vars/*/*',
              'inventory/host_vars/*', 'inventory/host_vars/*/*')
_KOLLA = ('globals.yml', 'globals.d/*.yml', *_INVENTORY, 'config/global.conf',
          'config/nova.conf')
FOLDERS: Mapping[str, tuple[str, ...]] = {
    'files': (),
    'ansible': _INVENTORY,
    'kolla': _KOLLA,
    'kayobe': ('*.yml', *_INVENTORY, *(f'kolla/{path}' for path in _KOLLA)),
    'edpm': ('*.yaml', '*.yml'),
}

_SHORT = 60


def find(files: Collection[tree.File], site: Mapping[str, str],
         hosts: Collection[str]) -> Iterator[str]:
    """Say what the site sets besides the files of hpcvirt.

    :param files: the files of hpcvirt, shared ones with the site's lines
    :param site: path -> content of the files in the folder
    :param hosts: the names of the hosts of the files
    """
    own: list[dict[str, Any]] = []
    for file in files:
        if file.path.endswith(('.yml', '.yaml')):
            own += _read(file.path, file.text)
    wanted = _list_wanted(own)
    shared = {file.path: steps.split_shared(file.text)
              for file in files if file.shared}
    others = {path: rest for path, (_, rest) in shared.items()}
    for path, text in site.items():
        if text.startswith(tree.MARK):
            continue
        if path.endswith('.conf'):
            others[path] = text
            continue
        try:
            documents = _read(path, text)
        except exception.InvalidInput as exc:
            yield f'{path} {exc.what}, so its settings may conflict'
            continue
        for document in documents:
            if _may_concern(document, hosts):
                yield from _compare(path, wanted, document)
                others |= {f'{path}: {name}': text for name, text
                           in _find_options(document).items()}
    texts = [part for part, _ in shared.values()]
    for document in own:
        texts += _find_options(document).values()
    for text in texts:
        yield from steps.conflicts(text, others)


def _read(path: str, text: str) -> list[dict[str, Any]]:
    """Read the mappings of a file of YAML."""
    return [document for document in yaml_document.values(text, path)
            if isinstance(document, dict)]


def _list_wanted(documents: Iterable[dict[str, Any]],
                 ) -> dict[str, list[Any]]:
    """List the values of each variable in documents of hpcvirt."""
    found: dict[str, list[Any]] = {}
    for document in documents:
        variables = document
        if document.get('kind') == 'OpenStackDataPlaneNodeSet':
            variables = document['spec']['nodeTemplate']['ansible'][
                'ansibleVars']
        elif 'kind' in document or ansible.GROUP in document:
            continue
        for name, value in variables.items():
            found.setdefault(name, []).append(value)
    if 'edpm_kernel_args' in found:
        for name in formats.EDPM_UNWANTED:
            found.setdefault(name, [None])
    # The default of this variable of kayobe is the one for the group compute.
    if values := found.get('tuned_active_builtin_profile'):
        found['compute_tuned_active_builtin_profile'] = values
    return found


def _find_options(document: Mapping[str, Any]) -> dict[str, str]:
    """Find the files of Nova in a ConfigMap; EDPM copies ``*nova*.conf``."""
    data = document.get('data')
    return {name: str(text) for name, text in data.items()
            if re.search('nova.*[.]conf$', str(name))} if isinstance(
                data, dict) else {}


def _may_concern(document: Mapping[str, Any], hosts: Collection[str]) -> bool:
    """Tell whether a document is not a node set of other hosts only."""
    spec = document.get('spec')
    nodes = spec.get('nodes') if isinstance(spec, dict) else None
    if not isinstance(nodes, dict) or not nodes:
        return True
    names = [*nodes]
    names += [node.get('hostName') for node in nodes.values()
              if isinstance(node, dict)]
    short = {str(name).partition('.')[0] for name in names}
    return not short.isdisjoint(host.partition('.')[0] for host in hosts)


def _compare(path: str, wanted: Mapping[str, Iterable[Any]],
             value: Any) -> Iterator[str]:
    """Find variables at any depth that have another value."""
    if isinstance(value, dict):
        for name, item in value.items():
            if name in wanted and item is not None and any(
                    str(item).split() != str(each).split() and (item or each)
                    for each in wanted[name]):
                short = textwrap.shorten(str(item), _SHORT,
                                         placeholder=' ...')
                yield (f'{path} sets {name} too ({short}), and only one of '
                       'the values counts')
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _compare(path, wanted, item)

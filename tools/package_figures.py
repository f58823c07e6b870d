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

"""Print the size of the package, and the imports between its parts.

    package_figures.py [ROOT]

Empty files are not counted. Lines include docstrings and comments. The units
of a folder are its modules and the packages in it. An arrow is an import of
one unit by another, however often it occurs, and also if it is for type
checking only. A cycle is a set of modules that import each other directly or
indirectly.
"""

import ast
import pathlib
import sys
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Set

FOLDERS = ('hpcvirt.bench', 'hpcvirt.cmd', 'hpcvirt')

Graph = Mapping[str, Set[str]]


def main(root: str = '.') -> int:
    """Print the figures of the tree in a directory."""
    sources = read(pathlib.Path(root))
    graph = imports(sources)
    for folder in FOLDERS:
        lines = [len(text.splitlines()) for name, text in sources.items()
                 if f'{name}.'.startswith(f'{folder}.') and text]
        units = arrows(graph, folder)
        print(f'{folder}: {len(lines)} files, {sum(lines)} lines, the longest '
              f'file has {max(lines, default=0)}; {len(units)} units, '
              f'{sum(map(len, units.values()))} arrows between them')
    print(f'import cycles: {len(cycles(graph))}')
    return 0


def read(root: pathlib.Path) -> dict[str, str]:
    """Read the modules of the package, by their names."""
    return {'.'.join(path.relative_to(root).with_suffix('').parts)
            .removesuffix('.__init__'): path.read_text()
            for path in sorted(root.glob('hpcvirt/**/*.py'))}


def imports(sources: Mapping[str, str]) -> dict[str, set[str]]:
    """Find the modules that each module imports."""
    return {name: {found for node in ast.walk(ast.parse(text))
                   for found in _imported(node, sources)} - {name}
            for name, text in sources.items()}


def _imported(node: ast.AST, known: Mapping[str, str]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in known)
    elif isinstance(node, ast.ImportFrom):
        for alias in node.names:
            name = f'{node.module}.{alias.name}'
            if name in known:
                yield name
            elif node.module in known:
                yield str(node.module)


def arrows(graph: Graph, folder: str) -> dict[str, set[str]]:
    """Find the units of a folder that each unit of it imports."""
    found: dict[str, set[str]] = {
        _unit(name, folder): set() for name in graph
        if name.startswith(f'{folder}.')}
    for name, others in graph.items():
        for other in others:
            if all(each.startswith(f'{folder}.') for each in (name, other)):
                found[_unit(name, folder)].add(_unit(other, folder))
    return {unit: others - {unit} for unit, others in found.items()}


def _unit(name: str, folder: str) -> str:
    return name.removeprefix(f'{folder}.').partition('.')[0]


def cycles(graph: Graph) -> set[frozenset[str]]:
    """Find the sets of modules that reach each other."""
    reached = {name: _reachable(graph, name) for name in graph}
    return {frozenset(other for other in reached[name]
                      if name in reached[other])
            for name in graph if name in reached[name]}


def _reachable(graph: Graph, start: str) -> set[str]:
    found: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += graph[name]
    return found


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))

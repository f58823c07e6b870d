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

"""Check the rules of the house that no linter knows.

* No module of the package is longer than 350 lines: past 300 one asks which
  second subject has moved in, here it moves out.
* No utils, common, helpers or manager: that is a concept without a name.
* Extra specs are spelled in hpcvirt/specs/vocabulary.py and nowhere else but
  in tests, which hold the spelling to its word.
* Modules that decide call none of the builtins that read, print or ask.
* tests/unit mirrors the package and the directories beside it.

Prints each finding as FILE:LINE: sentence; the status is 1 if there is one.
"""

import ast
import pathlib
import re
import sys
from collections.abc import Iterator

PACKAGE = pathlib.Path('hpcvirt')
VOCABULARY = PACKAGE / 'specs' / 'vocabulary.py'
MAX_LINES = 350
NAMELESS = frozenset({'utils', 'util', 'common', 'helpers', 'helper',
                      'manager', 'misc'})
EXTRA_SPEC = re.compile(r'(hw|hpcvirt|pci_passthrough|resources|trait):\w')
TESTS = PACKAGE / 'tempest_plugin' / 'tests'
DECIDERS = ('model', 'specs', 'fit', 'flavors', 'bench/parsers',
            'bench/analysis/stats.py', 'bench/analysis/verdict.py')
EDGES = frozenset({'open', 'print', 'input', 'exec', 'eval', 'compile'})


def main() -> int:
    """Print the findings."""
    findings = [*layout(), *mirror()]
    for path in sorted(PACKAGE.rglob('*.py')):
        findings += module(path)
    for finding in findings:
        print(finding)
    return 1 if findings else 0


def layout() -> Iterator[str]:
    """Names and sizes."""
    for path in sorted(PACKAGE.rglob('*.py')):
        if path.stem in NAMELESS or path.parent.name in NAMELESS:
            yield f'{path}:1: a name that says nothing'
        lines = len(path.read_text().splitlines())
        if lines > MAX_LINES:
            yield f'{path}:{MAX_LINES}: {lines} lines, {MAX_LINES} at most'


def mirror() -> Iterator[str]:
    """Every directory of unit tests stands for a room."""
    tests = pathlib.Path('tests', 'unit')
    for path in sorted(tests.rglob('test_*.py')):
        room = path.parent.relative_to(tests)
        if not (PACKAGE / room).is_dir() and not room.is_dir():
            yield f'{path}:1: there is no {room} that it could test'


def module(path: pathlib.Path) -> Iterator[str]:
    """What a module spells and calls."""
    tree = ast.parse(path.read_text(), str(path))
    decides = path.relative_to(PACKAGE).as_posix().startswith(DECIDERS)
    spells = path == VOCABULARY or TESTS in path.parents
    prose = docstrings(tree)
    for node in ast.walk(tree):
        if (isinstance(node, ast.Constant) and isinstance(node.value, str)
                and id(node) not in prose and not spells
                and EXTRA_SPEC.match(node.value)):
            yield (f'{path}:{node.lineno}: {node.value!r} is spelled outside '
                   f'{VOCABULARY}')
        if (decides and isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in EDGES):
            yield (f'{path}:{node.lineno}: {node.func.id}() in a module that '
                   'decides')


def docstrings(tree: ast.Module) -> set[int]:
    """The ids of the constants that nobody but a reader reads."""
    return {id(node.value) for node in ast.walk(tree)
            if isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)}


if __name__ == '__main__':
    sys.exit(main())

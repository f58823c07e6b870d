# SPDX-License-Identifier: Apache-2.0

"""Check rules of the project that no linter knows.

* No module of the package is longer than 700 lines, which hold one subject.
* No module is called utils, common, helpers or manager: the name does not say
  what it is for.
* Extra specs are literals only in hpcvirt/specs/vocabulary.py, in
  scheduler_keys.py beside it, and in tests, which check the spelling.
* Modules that decide do not call builtins for input, output or execution.
* Parsers of benchmarks do not call int() and float(), which fail with hundreds
  of digits: reading.py has their conversions.
* tests/unit mirrors the package, the directories next to it and those of
  tests: test_X.py tests the module X of the same path. They start no
  processes: such tests are in tests/integration.
* Each module that decides has a test of its name, or the test of a module with
  whose name its own begins imports it.
* No two public classes of the package share a name: an import needs no alias.
* No enum has a second name: a reader finds its members by the name of the
  class.
* No comprehension has two "for", and no conditional expression is inside
  another: write a loop or an "if". (ruff checks that the complexity of a
  function is at most 15.)
* Public functions begin with a verb or a noun, not with a participle or a
  preposition. Limits are called MIN_ and MAX_.
* Texts have none of the PHRASES, which stop a reader.

The last two rules hold for all code except tests.

Prints each finding as FILE:LINE: sentence. The exit status is 1 if there is
one.
"""

import ast
import pathlib
import re
import sys
from collections.abc import Iterator

PACKAGE = pathlib.Path('hpcvirt')
VOCABULARY = PACKAGE / 'specs' / 'vocabulary.py'
SCHEDULER_KEYS = PACKAGE / 'specs' / 'scheduler_keys.py'
MAX_LINES = 700
VAGUE_NAMES = frozenset({'utils', 'util', 'common', 'helpers', 'helper',
                         'manager', 'misc'})
EXTRA_SPEC = re.compile(r'(hw|hpcvirt|pci_passthrough|resources|trait):\w')
TESTS = PACKAGE / 'tempest_plugin' / 'tests'
UNIT_TESTS = pathlib.Path('tests', 'unit')
#: Where the subjects of unit tests are.
SUBJECTS = (PACKAGE, pathlib.Path(), pathlib.Path('tests'))
DECIDERS = ('model', 'specs', 'fit', 'flavors', 'bench/parsers',
            'bench/analysis/stats.py', 'bench/analysis/verdict.py')
#: Tests of a whole package or of a document, which have no module.
BROAD_TESTS = frozenset({
    'audit/test_documentation.py',
    'bench/analysis/test_error_rates.py',
    'deployment/test_documentation.py',
    'docs/test_addresses.py',
    'docs/test_contributor.py',
    'docs/test_messages.py',
    'docs/test_nova_conf.py',
    'docs/test_readme.py',
    'docs/test_security.py',
    'docs/test_study_items.py',
    'docs/test_subjects.py',
    'fit/test_against_oracle.py',
    'fleet/test_against_oracle.py',
    'flavors/test_documentation.py',
    'fleet/test_documentation.py',
    'health/test_documentation.py',
    'topology/test_emulated_hosts.py',
    'topology/test_hostile_input.py',
    'topology/test_one_machine_one_host.py',
    'topology/test_shipped_machines.py',
})
#: Modules that start processes.
PROCESSES = frozenset({'subprocess', 'multiprocessing',
                       'hpcvirt.bench.execute.local',
                       'hpcvirt.child_process'})
#: Packages in which each module with a function needs a test.
TESTED = ('model', 'specs', 'fit', 'flavors', 'bench/parsers',
          'bench/analysis', 'bench/catalogue', 'bench/studies')
PARSERS = PACKAGE / 'bench' / 'parsers'
READING = PARSERS / 'reading.py'
FORBIDDEN_CALLS = frozenset({'open', 'print', 'input', 'exec', 'eval',
                             'compile'})

#: A name that begins with a preposition, an adverb, an adjective or a
#: participle. Words such as "need", and Nova's dedicated CPUs, are exceptions.
NO_VERB = re.compile(
    r'('
    r'about|above|across|after|against|among|around|as|at|before|'
    r'below|between|beyond|by|during|for|from|in|inside|into|near|'
    r'of|off|on|onto|outside|over|per|since|than|through|to|too|'
    r'toward|under|until|upon|via|with|within|without'
    r'|'
    r'begun|broken|built|chosen|done|drawn|driven|every|fallen|'
    r'found|given|gone|grown|held|hidden|invalid|kept|known|laid|'
    r'left|lost|made|matching|meant|missing|movable|normal|not|'
    r'present|ready|said|same|seen|sent|shown|shut|sold|spelt|'
    r'spent|stolen|taken|thrown|told|uneven|unknown|unmet|unsound|'
    r'usable|what|written'
    r'|(?!('
    r'bed|bleed|breed|dedicated|embed|exceed|feed|need|proceed|'
    r'seed|shed|shred|speed|succeed|weed'
    r')(_|$))[a-z]+ed'
    r')(_|$)|[a-z].*(_in_words|_without)$')
#: Phrases that stop a reader.
PHRASE = re.compile(
    r'\b(also\s+(if|where)|as\s+ever(?!\s+more)|does\s+not\s+mind|in\s+sum|'
    r'none\s+such|so\s+many|the\s+matter\s+of|what\s+is\s+no|who(ever|soever))'
    r'\b|[,;:(]\s+of\s+which\b', re.IGNORECASE)
#: Characters between the words of a text in a program.
MARKS = str.maketrans(dict.fromkeys('#\'"', ' '))
#: Programs and documents whose texts are checked.
TEXTS = ('README.rst', 'doc/source/**/*.rst', 'releasenotes/notes/*.yaml',
         'hpcvirt/**/*.py', 'testing/**/*.py', 'demo/**/*.py', 'demo/*.rst',
         'tools/**/*.py', 'tools/**/*.rst', 'tests/system/**/*.py',
         'tests/system/**/*.rst', 'doc/tools/*.py', 'contrib/**/*.py',
         'contrib/**/*.rst', 'benchmarks/**/*.py', 'benchmarks/**/*.rst')
#: All code except tests.
CODE = ('hpcvirt/**/*.py', 'testing/**/*.py', 'demo/**/*.py', 'tools/**/*.py',
        'benchmarks/**/*.py', 'doc/**/*.py', 'contrib/**/*.py',
        'devstack/**/*.py')
#: What a finding says about each of these rules.
READABILITY = {
    'alias': 'call the enum by its own name',
    'comprehension': 'write a loop instead of a comprehension with two "for"',
    'conditional': 'write an "if" instead of a conditional expression inside '
                   'another',
}
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def main() -> int:
    """Print the findings."""
    findings = [*layout(), *mirror(), *untested(), *class_names(), *phrases(),
                *readability()]
    for path in sorted(PACKAGE.rglob('*.py')):
        findings += module(path)
    for finding in findings:
        print(finding)
    return 1 if findings else 0


def layout() -> Iterator[str]:
    """Check the names and sizes of modules."""
    for path in sorted(PACKAGE.rglob('*.py')):
        if path.stem in VAGUE_NAMES or path.parent.name in VAGUE_NAMES:
            yield f'{path}:1: the name is too vague'
        lines = len(path.read_text().splitlines())
        if lines > MAX_LINES:
            yield f'{path}:{MAX_LINES}: has {lines} lines, over {MAX_LINES}'


def has_subject(subject: pathlib.Path) -> bool:
    """Whether there is a module to test.

    Of a large module, a file tests one topic: test_devices_match.py tests
    the matching of devices.py.
    """
    words = subject.name.split('_')
    for count in range(len(words), 0, -1):
        module = subject.with_name('_'.join(words[:count])).with_suffix('.py')
        if any((folder / module).exists() for folder in SUBJECTS):
            return True
    return False


def mirror() -> Iterator[str]:
    """Check that each file of unit tests is where its subject is."""
    without_subject = set()
    for path in sorted(UNIT_TESTS.rglob('test_*.py')):
        name = path.relative_to(UNIT_TESTS)
        subject = name.with_name(path.stem.removeprefix('test_'))
        if not has_subject(subject):
            without_subject.add(name.as_posix())
            if name.as_posix() not in BROAD_TESTS:
                yield f'{path}:1: there is no module {subject} to test'
        for line, module_name in imports(ast.parse(path.read_text())):
            if module_name in PROCESSES:
                yield (f'{path}:{line}: {module_name} starts processes, such '
                       'tests are in tests/integration')
    for stale in sorted(BROAD_TESTS - without_subject):
        yield f'tools/check_style.py:1: take {stale} out of BROAD_TESTS'


def class_names() -> Iterator[str]:
    """Check that no two public classes of the package share a name."""
    places: dict[str, list[str]] = {}
    for path in sorted(PACKAGE.rglob('*.py')):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and node.name[0] != '_':
                places.setdefault(node.name, []).append(
                    f'{path}:{node.lineno}')
    for name, (first, *others) in sorted(places.items()):
        yield from (f'{place}: class {name} is also in {first}'
                    for place in others)


def phrases() -> Iterator[str]:
    """Check that no text has a phrase that stops a reader."""
    for pattern in TEXTS:
        for path in sorted(pathlib.Path().glob(pattern)):
            text = path.read_text()
            for match in PHRASE.finditer(
                    text.replace('#:', '  ').translate(MARKS)):
                line = text.count('\n', 0, match.start()) + 1
                phrase = ' '.join(match.group().split())
                yield f'{path}:{line}: say it without {phrase!r}'


def readability() -> Iterator[str]:
    """Check the rules that let a reader follow the code."""
    enums = find_enums()
    paths: list[pathlib.Path] = []
    for pattern in CODE:
        paths += sorted(pathlib.Path().glob(pattern))
    for path in paths:
        tree = ast.parse(path.read_text())
        found = {'alias': find_aliases(tree, enums),
                 'comprehension': find_comprehensions(tree),
                 'conditional': find_conditionals(tree)}
        for rule, lines in found.items():
            for line in sorted(lines):
                yield f'{path}:{line}: {READABILITY[rule]}'


def find_enums() -> set[str]:
    """Return the names of the enums of the package."""
    enums = set()
    for path in sorted(PACKAGE.rglob('*.py')):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and any(
                    ast.unparse(base).endswith(('Enum', 'Flag'))
                    for base in node.bases):
                enums.add(node.name)
    return enums


def find_aliases(tree: ast.Module, enums: set[str]) -> list[int]:
    """Return the lines that give an enum a second name."""
    lines = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign):
            if (isinstance(node.value, ast.Name | ast.Attribute)
                    and ast.unparse(node.value).split('.')[-1] in enums):
                lines.append(node.lineno)
        elif isinstance(node, ast.ImportFrom):
            lines += [alias.lineno for alias in node.names
                      if alias.asname and alias.name in enums]
    return lines


def find_comprehensions(tree: ast.Module) -> list[int]:
    """Return the lines of comprehensions with two "for"."""
    return [node.lineno for node in ast.walk(tree)
            if isinstance(node, COMPREHENSIONS) and len(node.generators) > 1]


def find_conditionals(tree: ast.Module) -> list[int]:
    """Return the lines of conditional expressions that contain another."""
    return [node.lineno for node in ast.walk(tree)
            if isinstance(node, ast.IfExp)
            and any(isinstance(part, ast.IfExp) and part is not node
                    for part in ast.walk(node))]


def imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each module that is imported."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.lineno, f'{node.module}.{alias.name}')
                        for alias in node.names)


def untested() -> Iterator[str]:
    """Check that each module that decides has a test in the right place."""
    for package in TESTED:
        for path in sorted((PACKAGE / package).rglob('*.py')):
            own, *others = tests_of(path.relative_to(PACKAGE))
            module_name = '.'.join(path.with_suffix('').parts)
            if decides_something(path) and not own.exists() and not any(
                    module_name in dict(imports(ast.parse(
                        test.read_text()))).values()
                    for test in others if test.exists()):
                yield f'{path}:1: there is no {own}'


def tests_of(module_path: pathlib.Path) -> Iterator[pathlib.Path]:
    """Yield where the tests of a module can be, its own first."""
    words = module_path.stem.split('_')
    for end in range(len(words), 0, -1):
        yield UNIT_TESTS / module_path.with_name(
            f'test_{"_".join(words[:end])}.py')


def decides_something(path: pathlib.Path) -> bool:
    """Whether a module has a function that can fail a test.

    A method such as ``__init__`` of an exception only keeps its arguments.
    """
    return any(isinstance(node, ast.FunctionDef)
               and not node.name.startswith('__')
               for node in ast.walk(ast.parse(path.read_text())))


def module(path: pathlib.Path) -> Iterator[str]:
    """Check the literals and calls of a module."""
    tree = ast.parse(path.read_text(), str(path))
    decides = path.relative_to(PACKAGE).as_posix().startswith(DECIDERS)
    spells = path in (VOCABULARY, SCHEDULER_KEYS) or TESTS in path.parents
    prose = docstrings(tree)
    for node in tree.body:
        if (isinstance(node, ast.FunctionDef) and NO_VERB.match(node.name)):
            yield (f'{path}:{node.lineno}: {node.name} does not begin with a '
                   'verb or a noun')
    for node in ast.walk(tree):
        if (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
                and node.id.lstrip('_').startswith(('LEAST_', 'MOST_'))):
            yield f'{path}:{node.lineno}: call {node.id} MIN_ or MAX_'
        if (isinstance(node, ast.Constant) and isinstance(node.value, str)
                and id(node) not in prose and not spells
                and EXTRA_SPEC.match(node.value)):
            yield (f'{path}:{node.lineno}: extra spec {node.value!r} outside '
                   f'{VOCABULARY}')
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            called = node.func.id
            if decides and called in FORBIDDEN_CALLS:
                yield (f'{path}:{node.lineno}: call of {called}() in a module '
                       'that decides')
            if (PARSERS in path.parents and path != READING
                    and called in ('int', 'float')):
                yield (f'{path}:{node.lineno}: call reading.whole() or '
                       f'reading.real() instead of {called}()')


def docstrings(tree: ast.Module) -> set[int]:
    """Return the ids of constants that are expressions of their own."""
    return {id(node.value) for node in ast.walk(tree)
            if isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)}


if __name__ == '__main__':
    sys.exit(main())

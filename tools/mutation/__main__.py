# SPDX-License-Identifier: Apache-2.0

"""Count how many deliberate faults the tests of a package notice.

    python -m tools.mutation [--sample N] [PACKAGE...]

A mutant is a module with one deliberate fault, see mutants.py. packages.toml
says which packages are changed, by which tests their mutants are judged, how
many mutants are drawn and how many of them must be noticed. First the tests of
a package run once, to know which of them reach which line. Then each mutant
meets the tests that reach its line, the fastest ones first, until one fails:
it is *killed*. It *survives* if none fails, or if no test reaches the line. A
test that runs for too long notices the fault as well: a *timeout*.

Two processes run at a time; each has a limit of CPU time, so that the whole
run ends whatever the mutants do. The run fails if fewer mutants are noticed
than packages.toml says.
"""

import argparse
import concurrent.futures
import dataclasses
import difflib
import itertools
import json
import os
import pathlib
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from tools.mutation import judge
from tools.mutation import mutants

CONFIGURATION = pathlib.Path(__file__).with_name('packages.toml')
PROCESSES = 2
#: CPU time of the tests that a mutant may meet, as they took with coverage:
#: the slowest ones are left out.
TESTS_S = 60.0
#: A mutant may take this much longer than its tests, and the time in which
#: they are loaded.
SLOWER, LOADING_S = 2, 30
#: On a machine with other work, a process gets a part of a CPU.
WALL = 15
#: Time limit for all tests of a package, with coverage.
COVER_S = 3600

_HEADER = ('package', 'mutants', 'tried', 'killed', 'timeout', 'survived',
           'percent', 'least')


@dataclasses.dataclass(frozen=True)
class Coverage:
    """Which tests reach which line.

    :ivar seconds: test to its CPU time
    :ivar lines: file to line to the tests that reach it; none for what runs
        while modules are loaded
    """

    seconds: Mapping[str, float]
    lines: Mapping[str, Mapping[str, Sequence[str]]]

    def find_tests(self, path: str, line: int) -> list[str]:
        """Find the tests for a line, the fastest first.

        A line that runs while its module is loaded may change all tests; those
        that reach its module come first.
        """
        of_file = self.lines.get(path, {})
        if str(line) not in of_file:
            # The line continues a statement, or no test reaches it.
            before = [int(each) for each in of_file if int(each) < line]
            line = max(before, default=0)
        tests = of_file.get(str(line))
        if tests is None:
            return []
        near = set(itertools.chain.from_iterable(of_file.values()))
        found = sorted(tests or self.seconds, key=lambda test: (
            test not in near, self.seconds.get(test, 0.0)))
        left, chosen = TESTS_S, []
        for test in found:
            left -= self.seconds.get(test, 0.0)
            if chosen and left < 0:
                break
            chosen.append(test)
        return chosen


@dataclasses.dataclass(frozen=True)
class Tried:
    """What became of a mutant: ``killed``, ``timeout`` or ``survived``.

    :ivar source: the module with the fault
    :ivar by: the test that noticed it
    """

    place: mutants.Place
    source: str
    outcome: str
    by: str = ''


def main(*arguments: str) -> int:
    """Try the mutants of packages, and print a table."""
    with CONFIGURATION.open('rb') as stream:
        configuration = tomllib.load(stream)
    packages = configuration['packages']
    parser = argparse.ArgumentParser(
        prog='mutation', description=(__doc__ or '').partition('\n')[0])
    parser.add_argument('packages', nargs='*', metavar='PACKAGE',
                        help=f'of {", ".join(packages)} (default: all)')
    parser.add_argument('--sample', type=int, metavar='N',
                        help='the number of mutants to try of each package; '
                        'the table is then not compared with packages.toml')
    parser.add_argument('--killed', action='store_true',
                        help='also name what was killed, and by which test')
    args = parser.parse_args(arguments)
    if unknown := set(args.packages) - set(packages):
        parser.error(f'no such package: {", ".join(sorted(unknown))}')
    # Others may need the machine.
    os.nice(5)
    rows, is_bad = [], False
    for name in args.packages or packages:
        package = packages[name]
        known, drawn = draw(package, args.sample or package['sample'],
                            configuration['seed'])
        tried = []
        for each in try_mutants(package, drawn):
            tried.append(each)
            if args.killed or each.outcome == 'survived':
                print(describe(each), flush=True)
        row = make_row(name, known, tried, package['least'])
        rows.append(row)
        is_bad |= args.sample is None and row[-2] < row[-1]
        print(render([row]), flush=True)
    print(f'\n{render([_HEADER, *rows])}')
    print(f'Drawn by the seed {configuration["seed"]!r}.')
    if is_bad:
        print('Fewer mutants are noticed than packages.toml says: a change '
              'came without its tests.')
    return int(is_bad)


def draw(package: Mapping[str, Any], sample: int,
         seed: str) -> tuple[int, list[mutants.Place]]:
    """Draw a sample of the mutants of a package.

    :returns: the number of all its mutants, and the sample
    """
    found = []
    for path in sorted(pathlib.Path(package['folder']).glob('*.py')):
        found += mutants.find_places(path)
    return len(found), mutants.draw(found, sample, seed)


def try_mutants(package: Mapping[str, Any],
                drawn: Sequence[mutants.Place]) -> Iterator[Tried]:
    """Yield what becomes of mutants, as soon as it is known."""
    files: list[pathlib.Path] = []
    for pattern in package['tests']:
        files += sorted(pathlib.Path().glob(pattern))
    modules = ['.'.join(path.with_suffix('').parts) for path in files]
    covered = cover(package['folder'], modules)
    with concurrent.futures.ThreadPoolExecutor(PROCESSES) as pool:
        for done in concurrent.futures.as_completed(
                pool.submit(try_mutant, covered, modules, place)
                for place in drawn):
            yield done.result()


def cover(folder: str, modules: Sequence[str]) -> Coverage:
    """Run the tests of a package, and note what each of them reaches."""
    done = subprocess.run(
        (sys.executable, judge.__file__, 'cover', folder, *modules),
        check=True, stdout=subprocess.PIPE, timeout=COVER_S)
    plain = json.loads(done.stdout)
    if plain['failed']:
        raise SystemExit('these tests fail without any mutant: '
                         + ', '.join(plain['failed']))
    return Coverage(plain['seconds'], plain['lines'])


def try_mutant(covered: Coverage, modules: Sequence[str],
               place: mutants.Place) -> Tried:
    """Let a mutant meet the tests that reach its line."""
    source = place.change()
    tests = covered.find_tests(place.path, place.line)
    if not tests:
        return Tried(place, source, 'survived')
    needed = sum(covered.seconds.get(test, 0.0) for test in tests)
    limit_s = round(LOADING_S + SLOWER * needed)
    request = {
        'module': place.module, 'path': place.path, 'source': source,
        'tests': tests, 'limit_s': limit_s,
        'modules': [name for name in modules if any(
            test.startswith(f'{name}.') for test in tests)]}
    with subprocess.Popen(
            (sys.executable, judge.__file__, 'try'), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, start_new_session=True) as process:
        try:
            said, _ = process.communicate(json.dumps(request).encode(),
                                          timeout=WALL * limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return Tried(place, source, 'timeout')
    if process.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return Tried(place, source, 'timeout')
    return Tried(place, source,
                 'killed' if process.returncode else 'survived',
                 said.decode('utf-8', 'replace'))


def make_row(name: str, known: int, tried: Sequence[Tried],
             least: int) -> tuple[Any, ...]:
    """Return a row of the table."""
    outcomes = [each.outcome for each in tried]
    counts = [outcomes.count(outcome)
              for outcome in ('killed', 'timeout', 'survived')]
    percent = 100 * (len(tried) - counts[2]) // max(1, len(tried))
    return (name, known, len(tried), *counts, percent, least)


def describe(tried: Tried) -> str:
    """Say which line was changed, and how."""
    place = tried.place
    before = pathlib.Path(place.path).read_text(encoding='utf-8').splitlines()
    after = tried.source.splitlines()
    changes = [line for line in difflib.unified_diff(before, after, n=0)
               if line[:1] in '+-' and line[:3] not in ('+++', '---')]
    first = f'{tried.outcome}: {place.path}:{place.line} {tried.by}'
    return '\n    '.join((first.rstrip(), *changes))


def render(rows: Sequence[Sequence[Any]]) -> str:
    """Align the columns of a table, the first one at the left."""
    return '\n'.join(
        f'{first:<16}' + ''.join(f'{cell:>10}' for cell in rest)
        for first, *rest in rows)


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))

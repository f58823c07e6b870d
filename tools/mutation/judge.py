# SPDX-License-Identifier: Apache-2.0

"""Run tests in this process, on the code as it is or on a mutant.

    judge.py cover FOLDER MODULE...     which test reaches which line
    judge.py try                        the request is on standard input

It is a process of its own for each mutant, which loads the mutant in place of
the module: no file of the repository is changed.
"""

import collections
import importlib.abc
import importlib.machinery
import importlib.util
import io
import json
import os
import pathlib
import resource
import sys
import time
import types
import unittest
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

import coverage
import hypothesis

#: Exit status if a test failed.
KILLED = 3
#: Seconds after which a process that did not end by itself is killed, more
#: than its limit of CPU time.
_GRACE_S = 5


class MutantFinder(importlib.abc.MetaPathFinder, importlib.abc.SourceLoader):
    """Loads one module from another source.

    :param module: its name
    :param path: its file, which tracebacks show
    :param source: what is loaded instead of the file
    """

    def __init__(self, module: str, path: str, source: str) -> None:
        self._module = module
        self._path = path
        self._source = source

    def find_spec(self, fullname: str, _path: Sequence[str] | None = None,
                  _target: types.ModuleType | None = None,
                  ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._module:
            return None
        return importlib.util.spec_from_file_location(
            fullname, self._path, loader=self)

    def get_filename(self, _fullname: str) -> str:
        return os.path.abspath(self._path)

    def get_data(self, _path: str) -> bytes:
        return self._source.encode()


class _TimedResult(unittest.TestResult):
    """Notes which test runs for the coverage, and how long each takes."""

    def __init__(self, measured: coverage.Coverage) -> None:
        super().__init__()
        self.seconds: dict[str, float] = {}
        self._measured = measured
        self._began = 0.0

    def startTest(self, test: unittest.TestCase) -> None:  # noqa: N802
        super().startTest(test)
        self._measured.switch_context(test.id())
        self._began = time.process_time()

    def stopTest(self, test: unittest.TestCase) -> None:  # noqa: N802
        self.seconds[test.id()] = time.process_time() - self._began
        self._measured.switch_context('')
        super().stopTest(test)


def load(modules: Iterable[str]) -> Iterator[unittest.TestCase]:
    """Load the tests of modules, without those of the periodic label."""
    # The same mutant has the same examples each time.
    hypothesis.settings.register_profile(
        'mutation', derandomize=True, database=None)
    hypothesis.settings.load_profile('mutation')
    suites = [unittest.defaultTestLoader.loadTestsFromNames(modules)]
    while suites:
        for each in suites.pop():
            if isinstance(each, unittest.TestSuite):
                suites.append(each)
            elif '.test_periodic_' not in each.id():
                yield each


def cover(folder: str, modules: Sequence[str]) -> dict[str, Any]:
    """Find out which test reaches which line.

    :param folder: of the modules whose lines are meant
    :returns: seconds of each test, names of the tests that fail, and file ->
        line -> names of the tests that reach it; a line that is reached while
        modules are loaded has an empty list
    """
    measured = coverage.Coverage(data_file=None, config_file=False,
                                 source=[folder], messages=False)
    measured.start()
    result = _TimedResult(measured)
    unittest.TestSuite(load(modules)).run(result)
    measured.stop()
    data = measured.get_data()
    lines: dict[str, dict[int, list[str]]] = collections.defaultdict(dict)
    for name in data.measured_files():
        path = os.path.relpath(name)
        for line, contexts in data.contexts_by_lineno(name).items():
            # What runs while modules are loaded belongs to all tests.
            lines[path][line] = [] if '' in contexts else contexts
    return {'seconds': result.seconds, 'lines': lines, 'failed': [
        test.id() for test, _ in (*result.failures, *result.errors)]}


def try_mutant(request: dict[str, Any]) -> int:
    """Run tests on a mutant until one fails.

    :param request: the module, its path and its mutated source, the names of
        the tests in order, and a limit of CPU time in seconds
    :returns: the exit status
    """
    limit_s = request['limit_s']
    resource.setrlimit(resource.RLIMIT_CPU, (limit_s, limit_s + _GRACE_S))
    sys.meta_path.insert(0, MutantFinder(
        request['module'], request['path'], request['source']))
    try:
        found = {test.id(): test for test in load(
            dict.fromkeys(request['modules']))}
    except BaseException as exc:  # noqa: BLE001 - whatever a mutant raises
        print(f'is not loaded: {exc!r}')
        return KILLED
    for name in request['tests']:
        if name not in found:
            # A module with tests was not loaded.
            print(f'has no {name}')
            return KILLED
        result = unittest.TestResult()
        result.failfast = True
        found.pop(name).run(result)
        if not result.wasSuccessful():
            print(name)
            return KILLED
    return 0


def main(what: str, *arguments: str) -> int:
    """Do it; print a line, or JSON for ``cover``."""
    # What tests print is nobody's business here.
    said = os.fdopen(os.dup(1), 'w')
    with open(os.devnull, 'w') as nothing:
        os.dup2(nothing.fileno(), 1)
        os.dup2(nothing.fileno(), 2)
    status = 0
    if what == 'cover':
        folder, *modules = arguments
        json.dump(cover(folder, modules), said)
    else:
        printed, sys.stdout = sys.stdout, io.StringIO()
        status = try_mutant(json.load(sys.stdin))
        words, sys.stdout = sys.stdout.getvalue(), printed
        said.write(words.strip().rpartition('\n')[2])
    said.flush()
    # Threads that a mutant left behind end with the process.
    os._exit(status)


if __name__ == '__main__':
    sys.path.insert(0, str(pathlib.Path.cwd()))
    sys.exit(main(*sys.argv[1:]))

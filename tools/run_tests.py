# SPDX-License-Identifier: Apache-2.0

"""Run stestr on one directory of tests, and fail if a test is skipped.

    run_tests.py NAME TEST_PATH [STESTR RUN ARGUMENTS...]

The results go to their own stestr repository, .stestr/NAME (show them again
with "stestr --repo-url .stestr/NAME last"), so that environments can run at
the same time. The run also fails if a test is skipped or if no test runs. The
numbers of passed, failed and skipped tests are written to .stestr/NAME.counts,
the output of tests that did not pass to .stestr/NAME.failures.
"""

import collections
import io
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
from typing import Any

import subunit
import testtools

STESTR = (sys.executable, '-m', 'stestr')
PASSED = frozenset({'success', 'xfail'})


def main(name: str, test_path: str, *arguments: str) -> int:
    """Run the tests and count the results."""
    # A shell lets what it starts in the background ignore SIGINT, which tests
    # send to programs.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    repository = pathlib.Path('.stestr', name)
    repository.mkdir(parents=True, exist_ok=True)
    stestr = (*STESTR, '--repo-url', str(repository), '--test-path', test_path)
    # stestr passes the interpreter to a shell without quotes, which splits a
    # path with spaces: give it a name that is found by PATH.
    python = pathlib.Path(sys.executable)
    os.environ['PATH'] = os.pathsep.join(
        (str(python.parent), os.environ['PATH']))
    os.environ.setdefault('PYTHON', python.name)
    before = runs(repository)
    # Nothing of the tests stays below the home of the user.
    with tempfile.TemporaryDirectory(prefix='hpcvirt-tests-') as state:
        status = subprocess.run(
            (*stestr, 'run', *arguments), check=False,
            env={**os.environ, 'XDG_STATE_HOME': state}).returncode
    verdicts: dict[str, str] = {}
    failures = ''
    if runs(repository) != before:
        last = subprocess.run((*stestr, 'last', '--subunit'), check=False,
                              stdout=subprocess.PIPE)
        verdicts, failures = read(last.stdout)
    tally = collections.Counter(verdicts.values())
    passed = sum(tally[verdict] for verdict in PASSED)
    skipped = tally['skip']
    failed = len(verdicts) - passed - skipped
    pathlib.Path('.stestr', f'{name}.counts').write_text(
        f'{passed} {failed} {skipped}\n')
    pathlib.Path('.stestr', f'{name}.failures').write_text(failures)
    for test, verdict in sorted(verdicts.items()):
        if verdict not in PASSED:
            print(f'{verdict}: {test}')
    print(f'{name}: {passed} passed, {failed} failed, {skipped} skipped')
    if not passed:
        print(f'{name}: no test ran')
    return status or int(failed or skipped or not passed)


def runs(repository: pathlib.Path) -> str:
    """Return the number of runs in the repository, as stestr counts them."""
    counter = repository / '.stestr' / 'next-stream'
    return counter.read_text() if counter.exists() else ''


def read(stream: bytes) -> tuple[dict[str, str], str]:
    """Read the status of each test and the output of those that failed.

    The status of a test that did not end is "inprogress".
    """
    verdicts: dict[str, str] = {}
    failures: list[str] = []

    def note(test: dict[str, Any]) -> None:
        verdicts[test['id']] = test['status']
        if test['status'] not in PASSED:
            failures.extend(f'{test["id"]}, {name}:\n{content.as_text()}\n'
                            for name, content in test['details'].items()
                            if content.content_type.type == 'text')

    result = testtools.StreamToDict(note)
    result.startTestRun()
    subunit.ByteStreamToStreamResult(
        io.BytesIO(stream), non_subunit_name='stdout').run(result)
    result.stopTestRun()
    return verdicts, ''.join(failures)


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))

# SPDX-License-Identifier: Apache-2.0

"""Run stestr on one directory of tests, and fail if a test is skipped.

    run_tests.py NAME TEST_PATH [STESTR RUN ARGUMENTS...]

The results go to their own stestr repository, .stestr/NAME (show them again
with "stestr --repo-url .stestr/NAME last"), so that environments can run at
the same time. The run also fails if a test is skipped or if no test runs. The
last argument may be the name of a package, a module, a class or a test: then
only the folder that has it is loaded, because loading all tests takes longer
than most of them. The numbers of passed, failed and skipped tests are written
to .stestr/NAME.counts, the output of tests that did not pass to
.stestr/NAME.failures, the slowest tests with their seconds to
.stestr/NAME.slowest.

Tests write thousands of small files, which take much longer on a disk: unless
TMPDIR says otherwise, their temporary files are in memory where that can be.

A test fails after OS_TEST_TIMEOUT seconds (600 by default, 0 for no limit);
see tests/limit.py. If no test ends for five minutes more, the run ends.
"""

import collections
import contextlib
import io
import os
import pathlib
import re
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

import subunit
import testtools

LIMIT_S = 600
# How long tests may take to be found, and to clean up.
GRACE_S = 300
MEMORY = '/dev/shm'  # noqa: S108 - with a folder of its own in it
# A few times what tests have there at once.
MEMORY_BYTES = 1 << 30
# It shows each test when it ends.
STESTR = (sys.executable, '-u', '-m', 'stestr')
PASSED = frozenset({'success', 'xfail'})
MAX_SLOWEST = 10


def main(name: str, test_path: str, *arguments: str) -> int:
    """Run the tests and count the results."""
    # A shell lets what it starts in the background ignore SIGINT, which tests
    # send to programs.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    repository = pathlib.Path('.stestr', name)
    repository.mkdir(parents=True, exist_ok=True)
    stestr = (*STESTR, '--repo-url', str(repository),
              '--test-path', find_folder(test_path, arguments))
    # stestr passes the interpreter to a shell without quotes, which splits a
    # path with spaces: give it a name that is found by PATH.
    python = pathlib.Path(sys.executable)
    os.environ['PATH'] = os.pathsep.join(
        (str(python.parent), os.environ['PATH']))
    os.environ.setdefault('PYTHON', f'{python.name} -m tools.test_process')
    limit_s = float(os.environ.setdefault('OS_TEST_TIMEOUT', str(LIMIT_S)))
    before = runs(repository)
    folder = choose_folder(MEMORY)
    with tempfile.TemporaryDirectory(
            prefix='hpcvirt-tests-', dir=folder) as scratch:
        # Nothing of the tests stays below the home of the user.
        os.environ['XDG_STATE_HOME'] = tempfile.mkdtemp(dir=scratch)
        os.environ['HPCVIRT_TEST_SOCKET'] = str(
            pathlib.Path(scratch, 'socket'))
        if folder:
            # Other users, as whom some tests run programs, need it too.
            os.chmod(scratch, 0o1777)  # noqa: S103
            os.environ['TMPDIR'] = scratch
        status = run((*stestr, 'run', *arguments),
                     limit_s + GRACE_S if limit_s else None)
    verdicts: dict[str, str] = {}
    failures = ''
    seconds: dict[str, float] = {}
    if runs(repository) != before:
        last = subprocess.run((*stestr, 'last', '--subunit'), check=False,
                              stdout=subprocess.PIPE)
        verdicts, failures, seconds = read(last.stdout)
    tally = collections.Counter(verdicts.values())
    passed = sum(tally[verdict] for verdict in PASSED)
    skipped = tally['skip']
    failed = len(verdicts) - passed - skipped
    pathlib.Path('.stestr', f'{name}.counts').write_text(
        f'{passed} {failed} {skipped}\n')
    pathlib.Path('.stestr', f'{name}.failures').write_text(failures)
    slowest = sorted(seconds, key=seconds.__getitem__, reverse=True)
    pathlib.Path('.stestr', f'{name}.slowest').write_text(''.join(
        f'{seconds[test]:.0f} {test}\n' for test in slowest[:MAX_SLOWEST]))
    for test, verdict in sorted(verdicts.items()):
        if verdict not in PASSED:
            print(f'{verdict}: {test}')
    print(f'{name}: {passed} passed, {failed} failed, {skipped} skipped')
    if not passed:
        print(f'{name}: no test ran')
    return status or int(failed or skipped or not passed)


def choose_folder(memory: str) -> str | None:
    """Return the folder in memory for what tests write.

    :param memory: a folder that is in memory on most machines
    :returns: None if the user has chosen a folder, and if it is too small or
        programs in it cannot be run, as is usual in containers
    """
    if 'TMPDIR' in os.environ or not os.access(memory, os.W_OK):
        return None
    found = os.statvfs(memory)
    if found.f_flag & os.ST_NOEXEC:
        return None
    if found.f_bavail * found.f_frsize < MEMORY_BYTES:
        return None
    return memory


def find_folder(test_path: str, arguments: Sequence[str]) -> str:
    """Return the folder of the tests that the last argument names.

    It is tests/unit/audit for ``tests.unit.audit.test_report.TestPage``, and
    all of the test path for ``audit``, which can be anywhere.
    """
    name = arguments[-1] if arguments else ''
    if not re.fullmatch(r'[\w.]+', name):
        return test_path
    folder = pathlib.Path(*name.split('.'))
    while folder.name and not folder.is_dir():
        folder = folder.parent
    return str(folder) if folder.is_relative_to(test_path) else test_path


def run(command: Sequence[str], patience_s: float | None) -> int:
    """Run a command and show its output.

    :param patience_s: end the command, and what it has started, if it shows
        nothing for this time; None for never
    :returns: its exit status
    """
    # Its own session is a group of processes that can be ended as one.
    output, end = os.pipe()
    with subprocess.Popen(command, stdout=end,
                          start_new_session=True) as process:
        os.close(end)
        try:
            while select.select([output], [], [], patience_s)[0]:
                shown = os.read(output, 65536)
                if not shown:
                    return process.wait()
                sys.stdout.buffer.write(shown)
                sys.stdout.buffer.flush()
            print(f'no test has ended for {patience_s:g} s')
            return 1
        finally:
            # Tests may have left processes, also when they are interrupted.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            os.close(output)


def runs(repository: pathlib.Path) -> str:
    """Return the number of runs in the repository, as stestr counts them."""
    counter = repository / '.stestr' / 'next-stream'
    return counter.read_text() if counter.exists() else ''


def read(stream: bytes) -> tuple[dict[str, str], str, dict[str, float]]:
    """Read the results of a run.

    The status of a test that did not end is "inprogress".

    :returns: the status of each test, the output of those that failed, and
        the seconds that each test took, if it ended
    """
    verdicts: dict[str, str] = {}
    failures: list[str] = []
    seconds: dict[str, float] = {}

    def note(test: dict[str, Any]) -> None:
        verdicts[test['id']] = test['status']
        start, end = test['timestamps']
        if start and end:
            # A test that fails may fail again when it cleans up.
            seconds[test['id']] = max(seconds.get(test['id'], 0.0),
                                      (end - start).total_seconds())
        if test['status'] not in PASSED:
            failures.extend(f'{test["id"]}, {name}:\n{content.as_text()}\n'
                            for name, content in test['details'].items()
                            if content.content_type.type == 'text')

    result = testtools.StreamToDict(note)
    result.startTestRun()
    subunit.ByteStreamToStreamResult(
        io.BytesIO(stream), non_subunit_name='stdout').run(result)
    result.stopTestRun()
    return verdicts, ''.join(failures), seconds


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))

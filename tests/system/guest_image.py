# SPDX-License-Identifier: Apache-2.0

"""Measure an emulated guest and check that the verdicts are true.

* The machine compared with itself must not get the verdict FAIL.
* A result whose outputs are damaged must be INVALID.
* An emulated guest is 10 to 700 times slower than native: its verdict must be
  FAIL, far from the bound. The guest is killed during a run, which must not
  lose a finished sample.
* Chromium must show all verdicts on the page, in light and dark mode, in a
  wide and a narrow window; a page with faults must not pass.

``tox -e guest`` runs it, as root on Debian; see contrib/guest_image/build.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from typing import Any

from tests.builders import ports
from tests.system.pages import check as page_check

#: The programs that build and boot the image.
SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / 'contrib/guest_image'
#: HPCC ends in seconds under emulation. With two ranks that spin on one
#: emulated CPU it never ends.
SMALL = ('--set', 'N=300', '--set', 'ranks=1')
#: The pairs that the three figures of HPCC need for a verdict.
PAIRS = 7
#: The guest is killed after this number of samples; one or two of them are
#: native.
KILLED_AFTER = 3
#: Seconds until a sample certainly runs in the guest: a native one takes less
#: than one.
RUNNING_S = 2
LIMIT_S = 1200

#: Runs hpcc and removes the middle of its output.
DAMAGING_HPCC = """\
#!/bin/sh
'{hpcc}' "$@" || exit
third=$(($(wc -c < hpccoutf.txt) / 3))
{{ head -c $third hpccoutf.txt; tail -c $third hpccoutf.txt; }} > cut
mv cut hpccoutf.txt
"""
#: An element wider than any window, a reference, a text without contrast, a
#: verdict that is cut, a table without a name.
FAULTY_HTML = (
    '<p style="width: 200rem">wide</p><p><img src="http://elsewhere.invalid/">'
    '</p><p style="color: #777; background: #888">faint</p>'
    '<p style="width: 2rem; overflow: hidden"><span class="word">FAIL</span>'
    '</p><table><tr><td>figure</td></tr></table>')
FINDINGS = ('wider than the window', 'refers to', 'hard to read', 'fetches',
            'cut', 'without a name')


class CheckFailed(Exception):
    """A check failed."""


class Progress:
    """Prints a line with the duration of each step and counts the checks."""

    def __init__(self) -> None:
        self.passed = 0
        self._began = time.monotonic()

    def step(self, line: str) -> None:
        """Print a step that is not a check."""
        now = time.monotonic()
        print(f'{now - self._began:5.0f} s  {line}', flush=True)
        self._began = now

    def check_passed(self, line: str) -> None:
        """Print and count a check that passed."""
        self.passed += 1
        self.step(line)


class Measurement:
    """A running ``hpcvirt bench run``, whose progress is printed."""

    def __init__(self, data: pathlib.Path, benchmark: str, where: str,
                 *more: str, pairs: int = PAIRS,
                 environment: Mapping[str, str] | None = None) -> None:
        self._samples = 2 * (pairs + 1)
        self._lines: list[str] = []
        self._progressed = threading.Condition()
        self._process = subprocess.Popen(
            ['hpcvirt', 'bench', 'run', benchmark, '--where', where,
             '--native', 'local', '--pairs', str(pairs), '--data', str(data),
             '--format', 'json', *more], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
            env={**os.environ, **(environment or {})})
        self._reader = threading.Thread(target=self._print_progress,
                                        daemon=True)
        self._reader.start()

    def wait_for(self, number: int) -> None:
        """Wait until this number of samples is finished."""
        with self._progressed:
            reached = self._progressed.wait_for(
                lambda: len(self._lines) > number or not self._reading(),
                LIMIT_S)
        if not reached or not self._reading():
            raise CheckFailed(f'hpcvirt ended before sample {number}')

    def result(self) -> dict[str, Any]:
        """Return the result, and check that it has all samples."""
        out = self._process.stdout.read()
        status = self._process.wait(LIMIT_S)
        self._reader.join()
        if status not in (0, 1):
            raise CheckFailed(f'hpcvirt ended with status {status}')
        result: dict[str, Any] = json.loads(out)
        samples = result['runs'][0]['samples']
        if len(samples) != self._samples:
            raise CheckFailed(f'the result has {len(samples)} samples, not '
                              f'{self._samples}')
        return result

    def _reading(self) -> bool:
        return self._process.poll() is None

    def _print_progress(self) -> None:
        for line in self._process.stderr:
            print(f'         {line}', end='', flush=True)
            with self._progressed:
                self._lines.append(line)
                self._progressed.notify_all()
        with self._progressed:
            self._progressed.notify_all()


def main(image: str = '.guest') -> int:
    """Run all checks and clean up."""
    scratch = pathlib.Path(tempfile.mkdtemp(prefix='hpcvirt-guest-'))
    state = scratch / 'guest'
    progress = Progress()
    try:
        subprocess.run([str(SCRIPTS / 'build'), image], check=True)
        progress.step('built the image')
        native = check_native(scratch, progress)
        damaged = check_damaged(scratch, progress)
        emulated = check_emulated(scratch, progress, image, state)
        check_report(scratch, progress, [native, damaged, emulated])
    except (CheckFailed, subprocess.CalledProcessError) as exc:
        print(f'guest_image: {exc}', file=sys.stderr)
        print(f'{progress.passed} passed, 1 failed')
        return 1
    finally:
        subprocess.run([str(SCRIPTS / 'boot'), '--stop', str(state)],
                       check=False)
        shutil.rmtree(scratch)
    print(f'{progress.passed} passed, 0 failed')
    return 0


def check_native(scratch: pathlib.Path, progress: Progress) -> dict[str, Any]:
    """Compare native with native: too few pairs for PASS, and no FAIL."""
    result = Measurement(scratch / 'data', 'qe-small', 'local', '--set',
                         'ranks=1', '--no-verdict', pairs=4).result()
    word = _word(result, 'INCONCLUSIVE')
    progress.check_passed(f'native against native: {word}')
    return result


def check_damaged(scratch: pathlib.Path, progress: Progress) -> dict[str, Any]:
    """Measure with damaged outputs: INVALID, with the reason."""
    hpcc = shutil.which('hpcc')
    if hpcc is None:
        raise CheckFailed('hpcc is not installed')
    program = scratch / 'bin' / 'hpcc'
    program.parent.mkdir()
    program.write_text(DAMAGING_HPCC.format(hpcc=hpcc))
    program.chmod(0o755)
    result = Measurement(
        scratch / 'data', 'hpcc', 'local', *SMALL, pairs=1,
        environment={'PATH': f'{program.parent}:{os.environ["PATH"]}'},
    ).result()
    _word(result, 'INVALID')
    reasons = {sample['outcome']['reason']
               for sample in result['runs'][0]['samples']}
    reason = result['verdict']['reason']
    if None in reasons or not any(why in reason for why in reasons):
        raise CheckFailed(f'INVALID for another reason: {reason} ({reasons})')
    progress.check_passed(f'a damaged output: INVALID, {reason}')
    return result


def check_emulated(scratch: pathlib.Path, progress: Progress, image: str,
                   state: pathlib.Path) -> dict[str, Any]:
    """Measure an emulated guest that is killed once: FAIL, far from native."""
    [port] = ports.find_ports(1)
    where = _boot(image, state, port)
    progress.step('booted the guest')
    # "boot" records the host key of the guest.
    program = scratch / 'client' / 'ssh'
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} '
                       f'-o UserKnownHostsFile={state}/known_hosts "$@"\n')
    program.chmod(0o755)
    # Nobody can reboot this guest between the pairs.
    measurement = Measurement(
        scratch / 'data', 'hpcc', where, *SMALL, '--this-launch',
        '--no-verdict',
        environment={'PATH': f'{program.parent}:{os.environ["PATH"]}'})
    measurement.wait_for(KILLED_AFTER)
    time.sleep(RUNNING_S)
    pid = int((state / 'pid').read_text())
    os.kill(pid, signal.SIGKILL)
    progress.step('killed the guest')
    _boot(image, state, port)
    progress.step('booted the guest again')
    result = measurement.result()
    _word(result, 'FAIL')
    for judgement in result['verdict']['judgements']:
        # Other work makes the interval wide, but no guest fast.
        if judgement['interval']['ratio'] > 0.5:
            raise CheckFailed(
                f'{judgement["metric"]} of an emulated guest is near native: '
                f'{judgement["interval"]}')
    progress.check_passed('an emulated guest: FAIL, no sample lost')
    return result


def check_report(scratch: pathlib.Path, progress: Progress,
                 results: list[dict[str, Any]]) -> None:
    """Check the report in Chromium, and that faults of a page are found."""
    path = scratch / 'page.html'
    subprocess.run(['hpcvirt', 'bench', 'report', '--data',
                    str(scratch / 'data'), '--html', str(path)], check=True)
    page = path.read_text(encoding='utf-8')
    findings = page_check.check(page, results)
    if findings:
        raise CheckFailed('\n'.join(['the page:', *findings]))
    progress.check_passed('the page shows all verdicts')
    findings = page_check.check(
        page.replace('</h1>', f'</h1>{FAULTY_HTML}'), [])
    for what in FINDINGS:
        if not any(what in finding for finding in findings):
            raise CheckFailed(f'the fault "{what}" was not found: {findings}')
    progress.check_passed('faults of a page are found')


def _word(result: dict[str, Any], *allowed: str) -> str:
    word, reason = result['verdict']['result'], result['verdict']['reason']
    if word not in allowed:
        raise CheckFailed(f'{word} ({reason}), not {" or ".join(allowed)}')
    return str(word)


def _boot(image: str, state: pathlib.Path, port: int) -> str:
    done = subprocess.run(
        [str(SCRIPTS / 'boot'), image, str(state), str(port)], check=True,
        stdout=subprocess.PIPE, text=True, env={**os.environ, 'ACCEL': 'tcg'})
    return done.stdout.strip()


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))

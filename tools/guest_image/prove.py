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

"""Measure an emulated guest for real, and see that the verdicts are true.

* The machine beside itself must not FAIL.
* An output that something cut in its middle must be INVALID.
* An emulated guest is 10 to 700 times slower than native: the verdict on it
  must be FAIL, far from the bound. It is killed while it runs, which must cost
  no finished sample.
* Chromium must show all of that on the page, in light and dark, in a wide and
  a narrow window; a page that was spoiled must not pass.

Run by ``tox -e guest``, as root on Debian; see tools/guest_image/build.
"""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from typing import Any

from tools import check_page

HERE = pathlib.Path(__file__).resolve().parent
#: HPCC in seconds under emulation; one rank, since two that spin on one
#: emulated CPU never end.
SMALL = ('--set', 'N=300', '--set', 'ranks=1')
PAIRS = 5
#: The guest is killed when so many samples are finished: two of native and
#: the guest's warm-up; the next is the guest's.
KILLED_AFTER = 3
#: By then that sample runs.
RUNNING_S = 2
LIMIT_S = 1200

#: In the place of hpcc: the output ends as it should, its middle is gone.
SPOILER = """\
#!/bin/sh
'{hpcc}' "$@" || exit
third=$(($(wc -c < hpccoutf.txt) / 3))
{{ head -c $third hpccoutf.txt; tail -c $third hpccoutf.txt; }} > cut
mv cut hpccoutf.txt
"""
#: Wider than any window, fetched from elsewhere, hardly to be seen.
SPOILED = ('<p style="width: 200rem">wide</p><p><img src="http://elsewhere.invalid/">'
           '</p><p style="color: #777; background: #888">faint</p>')
SPOILS = ('wider than the window', 'refers to', 'hard to read', 'fetches')


class Wrong(Exception):
    """Something is not as it must be."""


class Progress:
    """One line for each thing that was proved, with the seconds it took."""

    def __init__(self) -> None:
        self.proved = 0
        self._began = time.monotonic()

    def step(self, line: str) -> None:
        """Something else than a proof took its time."""
        now = time.monotonic()
        print(f'{now - self._began:5.0f} s  {line}', flush=True)
        self._began = now

    def proof(self, line: str) -> None:
        """Something is as it must be."""
        self.proved += 1
        self.step(line)


class Measurement:
    """``hpcvirt bench run`` at work; what it tells is passed on."""

    def __init__(self, data: pathlib.Path, benchmark: str, where: str,
                 *more: str, pairs: int = PAIRS,
                 environment: Mapping[str, str] | None = None) -> None:
        self._samples = 2 * (pairs + 1)
        self._lines: list[str] = []
        self._told = threading.Condition()
        self._process = subprocess.Popen(
            ['hpcvirt', 'bench', 'run', benchmark, '--where', where,
             '--native', 'local', '--pairs', str(pairs), '--data', str(data),
             '--format', 'json', *more], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
            env={**os.environ, **(environment or {})})
        self._reader = threading.Thread(target=self._pass_on, daemon=True)
        self._reader.start()

    def wait_for(self, number: int) -> None:
        """Wait until that many samples are finished."""
        with self._told:
            there = self._told.wait_for(
                lambda: len(self._lines) > number or not self._reading(),
                LIMIT_S)
        if not there or not self._reading():
            raise Wrong(f'hpcvirt ended before sample {number}')

    def result(self) -> dict[str, Any]:
        """The judged result, whole."""
        out = self._process.stdout.read()
        status = self._process.wait(LIMIT_S)
        self._reader.join()
        if status not in (0, 1):
            raise Wrong(f'hpcvirt ended with status {status}')
        result: dict[str, Any] = json.loads(out)
        samples = result['runs'][0]['samples']
        if len(samples) != self._samples:
            raise Wrong(f'{len(samples)} samples, not {self._samples}')
        return result

    def _reading(self) -> bool:
        return self._process.poll() is None

    def _pass_on(self) -> None:
        for line in self._process.stderr:
            print(f'         {line}', end='', flush=True)
            with self._told:
                self._lines.append(line)
                self._told.notify_all()


def main(image: str = '.guest') -> int:
    """Prove all of it, cleaning up behind."""
    scratch = pathlib.Path(tempfile.mkdtemp(prefix='hpcvirt-guest-'))
    state = scratch / 'guest'
    progress = Progress()
    try:
        subprocess.run([str(HERE / 'build'), image], check=True)
        progress.step('the image is there')
        alike = prove_alike(scratch, progress)
        cut = prove_cut(scratch, progress)
        slow = prove_slow(scratch, progress, image, state)
        prove_page(scratch, progress, [alike, cut, slow])
    except (Wrong, subprocess.CalledProcessError) as exc:
        print(f'prove: {exc}', file=sys.stderr)
        print(f'{progress.proved} passed, 1 failed')
        return 1
    finally:
        subprocess.run([str(HERE / 'boot'), '--stop', str(state)],
                       check=False)
        shutil.rmtree(scratch)
    print(f'{progress.proved} passed, 0 failed')
    return 0


def prove_alike(scratch: pathlib.Path, progress: Progress) -> dict[str, Any]:
    """Native against native: PASS or INCONCLUSIVE."""
    result = Measurement(scratch / 'data', 'qe-small', 'local', '--set',
                         'ranks=1').result()
    word = _word(result, 'PASS', 'INCONCLUSIVE')
    progress.proof(f'native against native: {word}')
    return result


def prove_cut(scratch: pathlib.Path, progress: Progress) -> dict[str, Any]:
    """An output without its middle: INVALID, and it says why."""
    hpcc = shutil.which('hpcc')
    if hpcc is None:
        raise Wrong('hpcc is not installed')
    spoiler = scratch / 'bin' / 'hpcc'
    spoiler.parent.mkdir()
    spoiler.write_text(SPOILER.format(hpcc=hpcc))
    spoiler.chmod(0o755)
    result = Measurement(
        scratch / 'data', 'hpcc', 'local', *SMALL, pairs=1,
        environment={'PATH': f'{spoiler.parent}:{os.environ["PATH"]}'},
    ).result()
    _word(result, 'INVALID')
    reasons = {sample['outcome']['reason']
               for sample in result['runs'][0]['samples']}
    reason = result['verdict']['reason']
    if None in reasons or not any(why in reason for why in reasons):
        raise Wrong(f'INVALID, but why: {reason} ({reasons})')
    progress.proof(f'an output that was cut: INVALID, {reason}')
    return result


def prove_slow(scratch: pathlib.Path, progress: Progress, image: str,
               state: pathlib.Path) -> dict[str, Any]:
    """An emulated guest that is killed: FAIL, and not by a little."""
    port = _free_port()
    where = _boot(image, state, port)
    progress.step('the guest is up')
    measurement = Measurement(scratch / 'data', 'hpcc', where, *SMALL)
    measurement.wait_for(KILLED_AFTER)
    time.sleep(RUNNING_S)
    pid = int((state / 'pid').read_text())
    os.kill(pid, signal.SIGKILL)
    progress.step('the guest was killed')
    _boot(image, state, port)
    progress.step('the guest is up again')
    result = measurement.result()
    _word(result, 'FAIL')
    for judged in result['verdict']['judgements']:
        if judged['interval']['high'] > 0.5:
            raise Wrong(f'{judged["metric"]} of an emulated guest is near '
                        f'native: {judged["interval"]}')
    progress.proof('the emulated guest: FAIL, no sample lost')
    return result


def prove_page(scratch: pathlib.Path, progress: Progress,
               results: list[dict[str, Any]]) -> None:
    """Chromium shows every verdict, and finds what is wrong with a page."""
    at = scratch / 'page.html'
    subprocess.run(['hpcvirt', 'bench', 'report', '--data',
                    str(scratch / 'data'), '--html', str(at)], check=True)
    page = at.read_text(encoding='utf-8')
    findings = check_page.check(page, results)
    if findings:
        raise Wrong('\n'.join(['the page:', *findings]))
    progress.proof('the page shows all of it')
    spoiled = check_page.check(page.replace('</h1>', f'</h1>{SPOILED}'), [])
    for what in SPOILS:
        if not any(what in finding for finding in spoiled):
            raise Wrong(f'a page with something {what} passed: {spoiled}')
    progress.proof('a page that was spoiled does not pass')


def _word(result: dict[str, Any], *allowed: str) -> str:
    word, reason = result['verdict']['word'], result['verdict']['reason']
    if word not in allowed:
        raise Wrong(f'{word} ({reason}), not {" or ".join(allowed)}')
    return str(word)


def _boot(image: str, state: pathlib.Path, port: int) -> str:
    done = subprocess.run(
        [str(HERE / 'boot'), image, str(state), str(port)], check=True,
        stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


def _free_port() -> int:
    with socket.create_server(('127.0.0.1', 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))

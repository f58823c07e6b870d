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

An emulated guest is 10 to 700 times slower than native: the verdict on it
must be FAIL, far from the bound. The machine beside itself must not FAIL. A
guest that is killed while it runs must cost no finished sample.

Run by ``tox -e guest``, as root on Debian; see tools/guest_image/build.
"""

import json
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
#: HPCC in seconds under emulation; one rank, since two that spin on one
#: emulated CPU never end.
SMALL = ('--set', 'N=300', '--set', 'ranks=1')
PAIRS = 5
SAMPLES = 2 * (PAIRS + 1)


class Wrong(Exception):
    """Something is not as it must be."""


def main(image: str = '.guest') -> int:
    """Prove all three, cleaning up behind."""
    scratch = pathlib.Path(tempfile.mkdtemp(prefix='hpcvirt-guest-'))
    state = scratch / 'guest'
    port = _free_port()
    try:
        subprocess.run([str(HERE / 'build'), image], check=True)
        where = _boot(image, state, port)
        prove_alike(scratch)
        prove_slow(scratch, where)
        prove_killed(scratch, where, image, state, port)
    except (Wrong, subprocess.CalledProcessError) as exc:
        print(f'prove: {exc}', file=sys.stderr)
        return 1
    finally:
        subprocess.run([str(HERE / 'boot'), '--stop', str(state)],
                       check=False)
        shutil.rmtree(scratch)
    print('4 passed, 0 failed')
    return 0


def prove_alike(scratch: pathlib.Path) -> None:
    """Native against native: PASS or INCONCLUSIVE."""
    result = _measured(_start(scratch / 'alike', 'qe-small', 'local',
                              '--set', 'ranks=1'))
    _word(result, 'native against native', 'PASS', 'INCONCLUSIVE')


def prove_slow(scratch: pathlib.Path, where: str) -> None:
    """An emulated guest: FAIL, and not by a little."""
    result = _measured(_start(scratch / 'slow', 'hpcc', where, *SMALL))
    _word(result, 'the emulated guest', 'FAIL')
    for judged in result['verdict']['judgements']:
        if judged['interval']['high'] > 0.5:
            raise Wrong(f'{judged["metric"]} of an emulated guest is near '
                        f'native: {judged["interval"]}')
    page = scratch / 'page.html'
    subprocess.run(['hpcvirt', 'bench', 'report', '--data',
                    str(scratch / 'slow'), '--html', str(page)], check=True)
    if 'FAIL' not in page.read_text(encoding='utf-8'):
        raise Wrong('the page does not show the verdict')
    _said('the page shows it')


def prove_killed(scratch: pathlib.Path, where: str, image: str,
                 state: pathlib.Path, port: int) -> None:
    """A guest that is killed and comes back: every sample is there."""
    process = _start(scratch / 'killed', 'hpcc', where, *SMALL)
    time.sleep(25)
    pid = int((state / 'pid').read_text())
    subprocess.run(['kill', f'-{signal.SIGKILL.value}', str(pid)],
                   check=True)
    _boot(image, state, port)
    result = _measured(process)
    _word(result, 'the guest that was killed', 'FAIL')


def _start(data: pathlib.Path, benchmark: str, where: str,
           *more: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ['hpcvirt', 'bench', 'run', benchmark, '--where', where, '--native',
         'local', '--pairs', str(PAIRS), '--data', str(data), '--format',
         'json', *more], stdout=subprocess.PIPE)


def _measured(process: subprocess.Popen[bytes]) -> dict:
    out, _ = process.communicate(timeout=1200)
    if process.returncode not in (0, 1):
        raise Wrong(f'hpcvirt ended with status {process.returncode}')
    result = json.loads(out)
    samples = result['runs'][0]['samples']
    if len(samples) != SAMPLES:
        raise Wrong(f'{len(samples)} samples instead of {SAMPLES}')
    return result


def _word(result: dict, what: str, *allowed: str) -> None:
    word, reason = result['verdict']['word'], result['verdict']['reason']
    if word not in allowed:
        raise Wrong(f'{what}: {word} ({reason})')
    _said(f'{what}: {word}')


def _said(line: str) -> None:
    print(line, flush=True)


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

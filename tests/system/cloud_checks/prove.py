# SPDX-License-Identifier: Apache-2.0

"""Prove that a guest is within 5 % of its host, and that another is not.

The guest is emulated, so its CPU fails every bound. It can pass only where its
CPU decides nothing: in a download from a server that sends at a steady rate,
to the guest as to the host. Both are measured as a user measures them, with
the command ``hpcvirt bench run``, the claim of 5 % and the number of pairs
that it takes by itself.
"""

import base64
import http.server
import json
import os
import pathlib
import shutil
import subprocess
import threading
import time

from tests.integration.bench import ssh_server
from tests.system.cloud import cloud as clouds
from tests.system.cloud import errors
from tests.system.cloud import fleet
from tests.system.cloud import image
from tests.system.cloud import packages
from tests.system.cloud import progress
from tests.system.cloud_checks import load

HERE = pathlib.Path(__file__).resolve().parent
GUEST = 'prove'
#: The server sends a line in each step, and takes this long for a download. A
#: busy machine wakes up a tenth of a second late at times.
LINE, STEP_S, DOWNLOAD_S = b'x' * 1999 + b'\n', 0.02, 6.0
LINES = round(DOWNLOAD_S / STEP_S)
#: Seconds to start the guest, and to measure it once.
START_S, MEASURE_S = 600, 3600
#: Benchmark script to its words besides and its verdict. Boots do not matter
#: where the guest is ten times slower than its host.
VERDICTS = {'paced': ((), 'PASS'), 'count': (('--this-launch',), 'FAIL')}


class PacedHandler(http.server.BaseHTTPRequestHandler):
    """Sends at a steady rate, however fast the client reads."""

    def do_GET(self) -> None:
        """Send one download."""
        self.send_response(200)
        self.send_header('Content-Length', str(len(LINE) * LINES))
        self.end_headers()
        begin = time.monotonic()
        for number in range(LINES):
            # The time of each step is counted from the first, so that one
            # that is late delays no other.
            late = time.monotonic() - begin - number * STEP_S
            time.sleep(max(0.0, -late))
            self.wfile.write(LINE)

    def log_message(self, *_args: object) -> None:
        """Keep requests off the output."""


def check(cloud: clouds.Cloud) -> None:
    """Measure the guest twice.

    :raises CloudError: if a verdict, an exit status or a page is wrong
    """
    packages.install(cloud.settings, ['openssh-server'])
    # The results are small and kept for inspection, whatever they say.
    data = cloud.settings.log / 'prove'
    shutil.rmtree(data, ignore_errors=True)
    work = cloud.settings.run / 'prove'
    work.mkdir(exist_ok=True)
    source = http.server.ThreadingHTTPServer(
        (f'{cloud.settings.subnet}.1', 0), PacedHandler)
    threading.Thread(target=source.serve_forever, daemon=True).start()
    try:
        _write_programs(work, f'http://{cloud.settings.subnet}.1:'
                              f'{source.server_address[1]}/')
        with ssh_server.running() as server:
            server.known.write_text(f'[127.0.0.1]:{server.port} '
                                    f'{server.host_key}\n')
            with progress.step('started the guest'):
                _run_client(cloud, 'start', _user_data(work))
            for name, (words, verdict) in VERDICTS.items():
                with progress.step(f'{name}: {verdict}'):
                    _measure(cloud, server, work / name, data, words, verdict)
            _report(cloud, data)
    finally:
        source.shutdown()
        source.server_close()
        _run_client(cloud, 'end', '')


def _write_programs(work: pathlib.Path, url: str) -> None:
    """Write the benchmarks, which are in the same place in the guest."""
    texts = {
        'paced': (HERE / 'paced.sh').read_text().replace(
            'URL', url).replace('LINES', str(LINES)),
        'count': image.BENCHMARK.read_text().replace('HS06: ', 'rate: ')}
    for name, text in texts.items():
        (work / name).write_text(text)
        (work / name).chmod(0o755)


def _user_data(work: pathlib.Path) -> str:
    """Make the script that writes the benchmarks in the guest."""
    lines = ['#!/bin/sh', f'mkdir -p {work}']
    for name in VERDICTS:
        text = base64.b64encode((work / name).read_bytes()).decode()
        lines += [f'echo {text} | base64 -d > {work / name}',
                  f'chmod 755 {work / name}']
    return base64.b64encode('\n'.join([*lines, '']).encode()).decode()


def _run_client(cloud: clouds.Cloud, part: str, user_data: str) -> None:
    plan = json.loads(fleet.guest_plan_file(cloud.settings).read_text())
    flavor = min(plan['flavors'], key=lambda each: each['vcpus'])
    load.finish(load.script(
        cloud, 'prove_client.py', part, GUEST, json.dumps(flavor), user_data),
        f'the guest, {part}', START_S)


def _run(cloud: clouds.Cloud, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [cloud.settings.program('hpcvirt'), 'bench', *words],
        capture_output=True, text=True, check=False, timeout=MEASURE_S,
        env={**os.environ, **cloud.settings.credentials()})


def _measure(cloud: clouds.Cloud, server: ssh_server.Server,
             script: pathlib.Path, data: pathlib.Path, words: tuple[str, ...],
             wanted: str) -> None:
    """Measure the guest; the verdict must be this one."""
    done = _run(cloud, 'run', 'site-script', '--set', f'script={script}',
                '--overhead', '5', '--where',
                f'server:root@{GUEST}?key={cloud.settings.key}', '--native',
                server.url, '--data', str(data), '--format', 'json', *words)
    if done.returncode != (wanted != 'PASS'):
        raise errors.CloudError(
            f'bench run ended with {done.returncode}: {done.stdout[-1500:]}'
            f'{done.stderr[-1500:]}')
    verdict = json.loads(done.stdout)['verdict']
    progress.say(f'{script.name}: {verdict["result"]}, '
                 f'{verdict["judgements"][0]}')
    if verdict['result'] != wanted:
        raise errors.CloudError(f'{wanted} was expected: {verdict}')


def _report(cloud: clouds.Cloud, data: pathlib.Path) -> None:
    """Write the page of both results."""
    page = data / 'report.html'
    done = _run(cloud, 'report', '--data', str(data), '--html', str(page))
    if done.returncode not in (0, 1):
        raise errors.CloudError(f'bench report ended with {done.returncode}: '
                                f'{done.stderr[-1500:]}')
    text = page.read_text()
    for _, verdict in VERDICTS.values():
        if verdict not in text:
            raise errors.CloudError(f'{page} has no {verdict}')
    progress.say(f'the page is {page}')

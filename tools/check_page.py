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


"""Check a page of ``hpcvirt bench report`` in a browser.

``check_page.py PAGE [RESULT]...`` loads PAGE in headless Chromium, in a wide
and a narrow window, in light and dark mode, and prints what is wrong: the page
fetches or refers to something else, it has a script, the browser logs a
message, an element is wider than the window, a text has too little contrast,
or a figure with a verdict in RESULT (``bench run --format json``) is missing
or has no drawing. The exit status is 1 if there is a finding.

``--pictures DIRECTORY`` saves screenshots.
"""

import argparse
import html
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

PROBE = pathlib.Path(__file__).with_suffix('.js')
WIDTHS = (1280, 400)
#: The values of Blink's preferredColorScheme.
SCHEMES = {'dark': 0, 'light': 1}
LIMIT_S = 120
CHROMIUM = (
    '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic',
    '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync', '--disable-extensions',
    '--disable-dev-shm-usage', '--hide-scrollbars',
    # No request of the page is answered.
    '--host-resolver-rules=MAP * ~NOTFOUND', '--enable-logging=stderr')
#: The page is in a frame, since a window cannot be as narrow as a phone.
FRAME = """<!DOCTYPE html>
<meta charset="utf-8"><style>:root, iframe {{ color-scheme: light dark; }}
* {{ margin: 0; }} iframe {{ border: 0; display: block; }}</style>
<iframe width="{width}" height="{height}" srcdoc="{page}"></iframe>
"""
HEIGHT = 2000
_MEASURED = re.compile(r'<pre id="measured">(.*?)</pre>', re.DOTALL)
_CONSOLE = re.compile(r'CONSOLE\S*\] *(.*)')
SHOWN = 5


def main(words: Sequence[str] | None = None) -> int:
    """Print the findings."""
    parser = argparse.ArgumentParser(description='Check a report in Chromium.')
    parser.add_argument('page', type=pathlib.Path)
    parser.add_argument('results', nargs='*', type=pathlib.Path)
    parser.add_argument('--pictures', type=pathlib.Path)
    args = parser.parse_args(words)
    results = [json.loads(path.read_text(encoding='utf-8'))
               for path in args.results]
    findings = check(args.page.read_text(encoding='utf-8'), results,
                     args.pictures)
    for finding in findings:
        print(f'{args.page}: {finding}')
    return 1 if findings else 0


def check(page: str, results: Sequence[dict[str, Any]],
          pictures: pathlib.Path | None = None) -> list[str]:
    """Check a page in windows of all widths and colour schemes.

    :param results: output of ``bench run --format json``
    :returns: what is wrong; empty if nothing is
    """
    findings = []
    for width in WIDTHS:
        for scheme, number in SCHEMES.items():
            where = f'{width} px, {scheme}'
            with tempfile.TemporaryDirectory() as scratch:
                dom, messages = _load(page, width, number,
                                      pathlib.Path(scratch))
                if pictures is not None:
                    _picture(page, width, number, pathlib.Path(scratch),
                             pictures / f'{width}-{scheme}.png')
            match = _MEASURED.search(dom)
            if match is None:
                findings.append(f'{where}: the page does not load')
                continue
            measured = json.loads(html.unescape(match[1]))
            if ((measured['width'], measured['dark'])
                    != (width, scheme == 'dark')):
                findings.append(
                    f'{where}: the window is {measured["width"]} px wide')
            findings += [f'{where}: {fault}' for fault in (
                *faults(measured), *missing(measured, results),
                *(f'the browser logs {line}' for line in messages))]
    return findings


def faults(measured: dict[str, Any]) -> Iterator[str]:
    """Yield the faults of a page, whatever it shows.

    :param measured: what check_page.js measured
    """
    if measured['scripts']:
        yield 'there is a script'
    for name in measured['fetched']:
        yield f'fetches {name}'
    for name in measured['refers']:
        yield f'refers to {name}'
    if measured['content'] > measured['width']:
        yield f'the page is {measured["content"]} px wide'
    for what, found in (('wider than the window', measured['wide']),
                        ('hard to read', measured['faint'])):
        for name in found[:SHOWN]:
            yield f'{what}: {name}'
        if len(found) > SHOWN:
            yield f'{what}: {len(found) - SHOWN} more'


def missing(measured: dict[str, Any],
            results: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the figures with a verdict that the page does not show."""
    rows = {(row['group'], row['figure'], row['word'], row['chart'])
            for row in measured['rows']}
    for result in results:
        for judgement in (result['verdict'] or {}).get('judgements', ()):
            row = (judgement['label'], judgement['metric'],
                   judgement['word'], judgement['interval'] is not None)
            if row not in rows:
                drawing = 'with' if row[3] else 'without'
                yield f'no {" ".join(row[:3])} {drawing} a drawing'


def _load(page: str, width: int, scheme: int, scratch: pathlib.Path,
          ) -> tuple[str, list[str]]:
    """Return the rendered document and the messages of the browser."""
    probe = f'<script>{PROBE.read_text(encoding="utf-8")}</script>'
    done = _chromium(page.replace('</body>', f'{probe}</body>'), width,
                     scheme, scratch, '--dump-dom')
    return done.stdout, _CONSOLE.findall(done.stderr)


def _picture(page: str, width: int, scheme: int, scratch: pathlib.Path,
             picture: pathlib.Path) -> None:
    picture.parent.mkdir(parents=True, exist_ok=True)
    _chromium(page, width, scheme, scratch, f'--screenshot={picture}')


def _chromium(page: str, width: int, scheme: int, scratch: pathlib.Path,
              word: str) -> 'subprocess.CompletedProcess[str]':
    program = shutil.which('chromium')
    if program is None:
        sys.exit('check_page: chromium is not installed')
    path = scratch / 'page.html'
    path.write_text(FRAME.format(width=width, height=HEIGHT,
                               page=html.escape(page)), encoding='utf-8')
    return subprocess.run(
        [program, *CHROMIUM, f'--user-data-dir={scratch / "profile"}',
         f'--window-size={width},{HEIGHT}',
         f'--blink-settings=preferredColorScheme={scheme}', word,
         path.as_uri()],
        capture_output=True, text=True, timeout=LIMIT_S, check=True)


if __name__ == '__main__':
    sys.exit(main())

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


"""Look at a page of ``hpcvirt bench report`` as a browser does.

``check_page.py PAGE [RESULT]...`` shows PAGE in headless Chromium, in a wide
and a narrow window, in light and dark, and prints what is wrong: something is
fetched or refers elsewhere, a script runs or complains, something is wider
than the window, a text stands out too little, a figure that was judged in
RESULT (``bench run --format json``) is not there with its verdict and its
drawing. The status is 1 if there is a finding.

With ``--pictures DIRECTORY`` it leaves a screenshot of each.
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
#: Blink's name of what the desktop prefers.
SCHEMES = {'dark': 0, 'light': 1}
LIMIT_S = 120
CHROMIUM = (
    '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic',
    '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync', '--disable-extensions',
    '--disable-dev-shm-usage', '--hide-scrollbars',
    # Whatever it asks for, nobody answers.
    '--host-resolver-rules=MAP * ~NOTFOUND', '--enable-logging=stderr')
#: A window cannot be as narrow as a telephone: the page is shown in a frame.
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
    """Look at a page in every window.

    :param results: what ``bench run --format json`` printed
    :returns: what is wrong, empty if nothing is
    """
    findings = []
    for width in WIDTHS:
        for scheme, number in SCHEMES.items():
            where = f'{width} px, {scheme}'
            with tempfile.TemporaryDirectory() as scratch:
                dom, said = _look(page, width, number, pathlib.Path(scratch))
                if pictures is not None:
                    _picture(page, width, number, pathlib.Path(scratch),
                             pictures / f'{width}-{scheme}.png')
            measured = _MEASURED.search(dom)
            if measured is None:
                findings.append(f'{where}: the page does not show')
                continue
            seen = json.loads(html.unescape(measured[1]))
            if (seen['width'], seen['dark']) != (width, scheme == 'dark'):
                findings.append(f'{where}: the window is {seen["width"]} px')
            findings += [f'{where}: {fault}' for fault in (
                *faults(seen), *missing(seen, results),
                *(f'the console says {line}' for line in said))]
    return findings


def faults(seen: dict[str, Any]) -> Iterator[str]:
    """What is wrong with any page that looks like this.

    :param seen: what the probe measured
    """
    if seen['scripts']:
        yield 'there is a script'
    for name in seen['fetched']:
        yield f'fetches {name}'
    for name in seen['refers']:
        yield f'refers to {name}'
    if seen['content'] > seen['width']:
        yield f'the page is {seen["content"]} px wide'
    for what, found in (('wider than the window', seen['wide']),
                        ('hard to read', seen['faint'])):
        for name in found[:SHOWN]:
            yield f'{what}: {name}'
        if len(found) > SHOWN:
            yield f'{what}: {len(found) - SHOWN} more'


def missing(seen: dict[str, Any],
            results: Sequence[dict[str, Any]]) -> Iterator[str]:
    """What was judged and does not show."""
    rows = {(row['group'], row['figure'], row['word'], row['chart'])
            for row in seen['rows']}
    for result in results:
        for judged in (result['verdict'] or {}).get('judgements', ()):
            wanted = (judged['label'], judged['metric'], judged['word'],
                      judged['interval'] is not None)
            if wanted not in rows:
                drawing = 'with' if wanted[3] else 'without'
                yield (f'no {" ".join(wanted[:3])} {drawing} a drawing')


def _look(page: str, width: int, scheme: int, scratch: pathlib.Path,
          ) -> tuple[str, list[str]]:
    """The document as it became, and what the console said."""
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
    at = scratch / 'page.html'
    at.write_text(FRAME.format(width=width, height=HEIGHT,
                               page=html.escape(page)), encoding='utf-8')
    return subprocess.run(
        [program, *CHROMIUM, f'--user-data-dir={scratch / "profile"}',
         f'--window-size={width},{HEIGHT}',
         f'--blink-settings=preferredColorScheme={scheme}', word,
         at.as_uri()],
        capture_output=True, text=True, timeout=LIMIT_S, check=True)


if __name__ == '__main__':
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0

"""Check the pages that hpcvirt writes in a browser.

``python -m tests.system.pages.check`` loads a page of simulated results, a
page of a random fleet, and a page of a random replay in headless Chromium, in
windows from the width of a phone to 2500 px, in light and dark mode. It prints
each fault: the page fetches or refers to another file, or has a script; the
browser logs a message; a verdict is cut; an element is wider than the window;
a text has too little contrast; a table has no caption, or a heading no scope;
a figure with a verdict is missing or has no drawing. The exit status is 1 if
there is a fault. It takes some seconds.

``python -m tests.system.pages.check PAGE [RESULT]...`` checks any page, and
the verdicts of the results, which are outputs of ``bench run --format json``.

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

from hpcvirt.bench.report import page as pages
from hpcvirt.bench.results import json_format
from tests.builders import shown_results
from tests.system.pages import fleet_page
from tests.system.pages import replay_page

PROBE = pathlib.Path(__file__).with_suffix('.js')
#: A phone, a sheet of A4, and common windows.
WIDTHS = (360, 718, 1024, 1280, 1600, 1920, 2500)
#: The values of Blink's preferredColorScheme.
SCHEMES = {'dark': 0, 'light': 1}
LIMIT_S = 120
ATTEMPTS = 3
CHROMIUM = (
    '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic',
    '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync', '--disable-extensions',
    '--disable-dev-shm-usage', '--hide-scrollbars',
    # The browser answers no request of the page.
    '--host-resolver-rules=MAP * ~NOTFOUND', '--enable-logging=stderr')
#: The page is in a frame, since a window cannot be as narrow as a phone.
FRAMES = """<!DOCTYPE html>
<meta charset="utf-8"><style>:root, iframe {{ color-scheme: light dark; }}
* {{ margin: 0; }} iframe {{ border: 0; display: block; }}</style>
{frames}
"""
FRAME = '<iframe width="{width}" height="{height}" srcdoc="{page}"></iframe>'
HEIGHT = 2000
_MEASURED = re.compile(r'<pre class="measured">(.*?)</pre>', re.DOTALL)
_CONSOLE = re.compile(r'CONSOLE\S*\] *(.*)')
SHOWN = 5


def main(words: Sequence[str] | None = None) -> int:
    """Print the findings."""
    parser = argparse.ArgumentParser(description='Check a report in Chromium.')
    parser.add_argument('page', nargs='?', type=pathlib.Path)
    parser.add_argument('results', nargs='*', type=pathlib.Path)
    parser.add_argument('--pictures', type=pathlib.Path)
    args = parser.parse_args(words)
    if args.page is None:
        shown = shown_results.shown()
        page = pages.page(shown, 'Guest against native')
        results = [json.loads(json_format.dumps(each.result))
                   for each in shown]
    else:
        page = args.page.read_text(encoding='utf-8')
        results = [json.loads(path.read_text(encoding='utf-8'))
                   for path in args.results]
    findings = check(page, results, args.pictures)
    if args.page is None:
        findings += check(fleet_page.page(), [])
        findings += check(replay_page.page(), [])
    for finding in findings:
        print(f'{args.page or "example"}: {finding}')
    return 1 if findings else 0


def check(page: str, results: Sequence[dict[str, Any]],
          pictures: pathlib.Path | None = None) -> list[str]:
    """Check a page in windows of all widths and colour schemes.

    :param results: output of ``bench run --format json``
    :returns: the faults
    """
    findings = []
    for scheme, number in SCHEMES.items():
        with tempfile.TemporaryDirectory() as scratch:
            loaded, messages = _load(page, number, pathlib.Path(scratch))
            for width in WIDTHS if pictures is not None else ():
                _picture(page, width, number, pathlib.Path(scratch),
                         pictures / f'{width}-{scheme}.png')
        findings += [f'{scheme}: the browser logs {line}' for line in messages]
        if sorted(loaded) != sorted(WIDTHS):
            findings.append(
                f'{scheme}: measured in windows of {sorted(loaded)} px')
        for width in sorted(loaded):
            measured = loaded[width]
            where = f'{width} px, {scheme}'
            if measured['dark'] != (scheme == 'dark'):
                findings.append(f'{where}: the page has the other scheme')
            findings += [f'{where}: {fault}' for fault in (
                *faults(measured), *missing(measured, results))]
    return findings


def faults(measured: dict[str, Any]) -> Iterator[str]:
    """Yield the faults of a page, regardless of its content.

    :param measured: the measurements of check.js
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
                        ('cut', measured['cut']),
                        ('without a name or scope', measured['unnamed']),
                        ('no or two targets', measured['lost']),
                        ('hard to read', measured['faint'])):
        for name in found[:SHOWN]:
            yield f'{what}: {name}'
        if len(found) > SHOWN:
            yield f'{what}: {len(found) - SHOWN} more'


def missing(measured: dict[str, Any],
            results: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the figures with a verdict that the page does not show."""
    drawn = {(row['group'], row['figure'], row['word']): row['chart']
             for row in measured['rows']}
    for result in results:
        alone = [run['purpose'] for run in result['runs']] == ['unpaired']
        for judgement in () if alone else (result['verdict'] or {}).get(
                'judgements', ()):
            row = (judgement['label'], judgement['metric'],
                   judgement['result'])
            if row not in drawn:
                yield f'no {" ".join(row)}'
            elif judgement['interval'] and not drawn[row]:
                yield f'no drawing of {" ".join(row)}'


def _load(page: str, scheme: int, scratch: pathlib.Path,
          ) -> tuple[dict[int, dict[str, Any]], list[str]]:
    """Return the measurements for each width, and the browser's messages.

    The page is loaded again if a busy browser did not lay out every window.
    """
    probe = f'<script>{PROBE.read_text(encoding="utf-8")}</script>'
    for _attempt in range(ATTEMPTS):
        done = _chromium(page.replace('</body>', f'{probe}</body>'), WIDTHS,
                         scheme, scratch, '--dump-dom')
        found = [json.loads(html.unescape(match[1]))
                 for match in _MEASURED.finditer(done.stdout)]
        loaded = {measured['width']: measured for measured in found}
        if sorted(loaded) == sorted(WIDTHS) and all(
                measured['dark'] == (scheme == SCHEMES['dark'])
                for measured in found):
            break
    return loaded, _CONSOLE.findall(done.stderr)


def _picture(page: str, width: int, scheme: int, scratch: pathlib.Path,
             picture: pathlib.Path) -> None:
    picture.parent.mkdir(parents=True, exist_ok=True)
    _chromium(page, [width], scheme, scratch, f'--screenshot={picture}')


def _chromium(page: str, widths: Sequence[int], scheme: int,
              scratch: pathlib.Path, word: str,
              ) -> 'subprocess.CompletedProcess[str]':
    program = shutil.which('chromium')
    if program is None:
        sys.exit('pages: chromium is not installed')
    path = scratch / 'page.html'
    path.write_text(FRAMES.format(frames='\n'.join(
        FRAME.format(width=width, height=HEIGHT, page=html.escape(page))
        for width in widths)), encoding='utf-8')
    return subprocess.run(
        [program, *CHROMIUM, f'--user-data-dir={scratch / "profile"}',
         f'--window-size={max(widths)},{HEIGHT}',
         f'--blink-settings=preferredColorScheme={scheme}', word,
         path.as_uri()],
        capture_output=True, text=True, timeout=LIMIT_S, check=True)


if __name__ == '__main__':
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0

"""What the pictures and charts of the documentation have in common.

They follow the dark mode of the reader's browser, and are narrow enough for a
phone.
"""

import pathlib
from collections.abc import Iterator
from collections.abc import Sequence

from hpcvirt.page import svg

ROOT = pathlib.Path(__file__).resolve().parents[2]

WIDTH = 460
STYLE = """\
<style>
svg { background: #ffffff; font: 13px sans-serif; }
text { fill: #1c2733; }
.step { fill: #eef3f8; stroke: #5b7f9e; }
.good { fill: #e3f3e4; stroke: #3f8a4b; }
.bad { fill: #fbe6e4; stroke: #b4483c; }
.kept { fill: #d9d9d9; stroke: #8a8a8a; }
.cell { fill: none; stroke: #5b7f9e; stroke-width: 2; }
.a { fill: #9cc5e8; stroke: #39658a; }
.b { fill: #f2c57c; stroke: #9a6a16; }
.c { fill: #b6d99a; stroke: #55803a; }
.d { fill: #d7b5e2; stroke: #7a4a8a; }
.free { fill: #ffffff; stroke: #8a8a8a; }
.arrow { stroke: #5b7f9e; stroke-width: 2; fill: none; }
@media (prefers-color-scheme: dark) {
svg { background: #14181c; }
text { fill: #e4e9ee; }
.step { fill: #22303d; stroke: #7fa6c8; }
.good { fill: #1f3a25; stroke: #71b97d; }
.bad { fill: #46231f; stroke: #e08a7f; }
.kept { fill: #4a4a4a; stroke: #9a9a9a; }
.cell { stroke: #7fa6c8; }
.a { fill: #2f5d85; stroke: #9cc5e8; }
.b { fill: #8a5f14; stroke: #f2c57c; }
.c { fill: #466a30; stroke: #b6d99a; }
.d { fill: #6a3f79; stroke: #d7b5e2; }
.free { fill: #14181c; stroke: #9a9a9a; }
.arrow { stroke: #7fa6c8; }
}
</style>"""


def draw_bar(y: float, total: float, used: Sequence[tuple[str, float]],
             x: float = 18.0) -> Iterator[str]:
    """Draw how much of a total is in use, and by what."""
    scale = (WIDTH - 18 - x) / total
    for kind, count in (*used, ('free', total - sum(
            count for _, count in used))):
        if count > 0:
            yield svg.rectangle(kind, x, y, count * scale, 12)
            x += count * scale


def bold(x: float, y: float, words: str) -> str:
    """Write a line of bold text."""
    return svg.text(x, y, words).replace('<text ', '<text font-weight="bold" ',
                                         1)


def finish(height: float, parts: Sequence[str], label: str) -> str:
    """Make a file of the parts of a drawing."""
    drawn = str(svg.drawing(WIDTH, height, (STYLE, *parts), label))
    return drawn.replace('<svg ', '<svg xmlns="http://www.w3.org/2000/svg" ',
                         1) + '\n'

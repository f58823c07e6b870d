# SPDX-License-Identifier: Apache-2.0

"""The configurations that the documents show, with the files they belong to.

A block of a page names its file in a caption::

    .. code-block:: ini
       :caption: nova.conf

A block of a docstring or of DevStack's page names it in the sentence before.
"""

import dataclasses
import pathlib
import re
import textwrap
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).parents[1]
BLOCK = re.compile(
    r'^(?P<margin> *)(?P<before>.*)::(?P<language> \w+)?\n'
    r'(?P<body>(?:(?P=margin) +.*\n|[ \t]*\n)+)', re.MULTILINE)
CAPTION = re.compile(r'^:caption: (.+)\n', re.MULTILINE)
FIELD = re.compile(r'\A(?::\w+:.*\n)+')
CONFIGURATION = re.compile(r'^\[+\w+[|\w$]*\]+$|^HPCVIRT_\w+=', re.MULTILINE)
#: What an operator reads.
PAGES = (*sorted(ROOT.glob('*.rst')), ROOT / 'devstack' / 'README.rst',
         *sorted((ROOT / 'doc' / 'source').glob('**/*.rst')),
         *sorted((ROOT / 'releasenotes' / 'notes').glob('*.yaml')))
SOURCES = tuple(sorted((ROOT / 'hpcvirt').glob('**/*.py')))
LANGUAGES = ('ini', 'yaml')
EMBEDDED = 'customServiceConfig: |\n'


@dataclasses.dataclass(frozen=True)
class Shown:
    """A block that shows the content of a file, or a part of it."""

    page: pathlib.Path
    line: int
    file: str | None
    text: str

    def __str__(self) -> str:
        return f'{self.page.relative_to(ROOT)}:{self.line}'


def configurations() -> Iterator[Shown]:
    """Read the blocks of all pages that show a configuration."""
    for page in (*PAGES, *SOURCES):
        text = page.read_text()
        for found in BLOCK.finditer(text):
            if EMBEDDED in found['body']:  # of a resource of OpenShift
                yield Shown(page, text.count('\n', 0, found.start()) + 1,
                            'nova.conf', textwrap.dedent(
                                found['body'].partition(EMBEDDED)[2]))
            language = (found['language'] or '').strip()
            body = textwrap.dedent(found['body']).strip('\n') + '\n'
            caption = CAPTION.search(body)
            content = FIELD.sub('', body).lstrip('\n')
            if language in LANGUAGES or CONFIGURATION.search(content):
                yield Shown(page, text.count('\n', 0, found.start()) + 1,
                            _name(caption[1]) if caption
                            else _file(text, found), content)


def _name(caption: str) -> str:
    """Name the file of a caption; kolla-ansible has one for each service."""
    name = pathlib.PurePath(caption).name
    return 'nova.conf' if re.match(r'nova-\w+\.conf$', name) else name


def _file(text: str, found: re.Match[str]) -> str | None:
    """Find the file that the sentence before a block names."""
    paragraph = text[:found.end('before')].rsplit('\n\n', 1)[-1]
    names = re.findall(r'\b[\w-]+\.(?:conf|yaml)\b', paragraph)
    return names[-1] if names else None

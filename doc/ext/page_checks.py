# SPDX-License-Identifier: Apache-2.0

"""Check that pages can be read, and that their commands exist.

Each page, with the files that it includes, has at most ``MAX_WORDS`` words. No
line of a literal block is wider than the frame of a page. Each command of
hpcvirt in a literal block or in the text exists, with its options. A violation
is a warning, and the build treats warnings as errors.
"""

import itertools
import pathlib
import re
import shlex
from collections.abc import Iterator

from docutils import nodes
from sphinx import application
from sphinx.util import logging

from hpcvirt.cmd import main

#: A reader finishes such a page in ten minutes.
MAX_WORDS = 1500
#: What the frame of a page shows without scrolling on a screen of 1280 pixels.
MAX_COLUMNS = 90

_PROMPT = re.compile(r'^ *(?:\([\w.-]+\) ?)?[$#] ')
_INCLUDE = re.compile(r'^\.\. include:: (\S+)$', re.MULTILINE)
_SHELLS = frozenset({'console', 'default', 'none', 'text'})
#: Ends the arguments of a command in a shell.
_END = frozenset({'|', '||', '&&', ';', '>', '>>', '<', '&', '--', '2>'})
_LOG = logging.getLogger(__name__)


def check(app: application.Sphinx, tree: nodes.document, name: str) -> None:
    """Warn of what is wrong on a page."""
    path = pathlib.Path(app.env.doc2path(name))
    for problem in (*_length(path), *_blocks(tree)):
        _LOG.warning('%s', problem, location=name)


def _length(path: pathlib.Path) -> Iterator[str]:
    text = path.read_text()
    words = len(text.split()) + sum(
        len((path.parent / included).read_text().split())
        for included in _INCLUDE.findall(text))
    if words > MAX_WORDS:
        yield f'{words} words, more than {MAX_WORDS}'


def _blocks(tree: nodes.document) -> Iterator[str]:
    for block in tree.findall(nodes.literal_block):
        lines = block.astext().splitlines()
        for line in lines:
            if len(line) > MAX_COLUMNS:
                yield (f'{len(line)} columns, more than {MAX_COLUMNS}: '
                       f'{line.strip()[:60]}')
        if block.get('language') in _SHELLS:
            for command in commands(lines):
                yield from judge(command)
    for inline in tree.findall(nodes.literal):
        text = inline.astext()
        if re.match('hpcvirt |openstack hpc ', text):
            yield from judge(text)


def commands(lines: list[str]) -> Iterator[str]:
    """Yield the commands after the prompts of a block, each as one line."""
    left = iter(lines)
    for line in left:
        prompt = _PROMPT.match(line)
        if prompt is None:
            continue
        command = line[prompt.end():]
        while command.endswith('\\'):
            command = command[:-1] + next(left, '').strip()
        yield command


def judge(command: str) -> Iterator[str]:
    """Yield what is wrong with the commands of hpcvirt in a line."""
    try:
        words = shlex.split(command, comments=True)
    except ValueError as exc:
        if 'hpcvirt' in command:
            yield f'{command}: {exc}'
        return
    while words:
        word, *words = words
        if word.rsplit('/', 1)[-1] == 'hpcvirt' or (
                word == 'openstack' and words[:1] == ['hpc']):
            own: list[str] = []
            for part in words[word == 'openstack':]:
                if part in _END:
                    break
                own.append(part)
            yield from _judge_words(own)


def _judge_words(words: list[str]) -> Iterator[str]:
    name = next((' '.join(words[:count]) for count in (3, 2, 1)
                 if ' '.join(words[:count]) in main.COMMANDS), None)
    if name is None:
        plain = list(itertools.takewhile(
            lambda word: re.fullmatch('[a-z][a-z-]*', word), words))
        if plain and ' '.join(plain) not in main.GROUPS:
            yield f'there is no command hpcvirt {" ".join(plain)}'
        return
    known = main.build_parser(name)._option_string_actions
    for word in words:
        option = word.split('=', 1)[0]
        if re.fullmatch('--[a-z][a-z-]*', option) and option not in known:
            yield f'hpcvirt {name} has no option {option}'


def setup(app: application.Sphinx) -> dict[str, bool]:
    """Check each page once it is read."""
    app.connect('doctree-resolved', check)
    return {'parallel_read_safe': True, 'parallel_write_safe': True}

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

"""The directive ``command-reference``: a page from an argparse parser.

::

    .. command-reference:: hpcvirt.cmd.main:build_parser

The argument names a callable without arguments that makes the parser. Each
subcommand becomes a section with its usage and its options, so that the page
says what the program's ``--help`` says, always.
"""

import argparse
import importlib
import re
from collections.abc import Iterable
from collections.abc import Iterator

from docutils import nodes
from docutils import statemachine
from docutils.parsers import rst
from sphinx import application

#: Below the title and the sections of the page, which have = and -.
UNDERLINES = '~^"'
#: Of the usage on a page: no terminal decides.
WIDTH = 76
#: --help needs no help, and subcommands are sections.
SILENT = (argparse._HelpAction, argparse._SubParsersAction)


class CommandReference(rst.Directive):
    """Turn a parser into sections, options included."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Write reStructuredText for the parser and have it parsed."""
        where, _, name = self.arguments[0].partition(':')
        parser = getattr(importlib.import_module(where), name)()
        lines = statemachine.StringList(
            list(describe(parser, depth=-1)), source=self.arguments[0])
        parent = nodes.Element()
        parent.document = self.state.document
        # Sections are allowed here: the text brings headings of its own.
        self.state.nested_parse(lines, self.content_offset, parent,
                                match_titles=1)
        return parent.children


def describe(parser: argparse.ArgumentParser, depth: int) -> Iterator[str]:
    """Yield the lines for a parser and, below it, for its subcommands.

    :param depth: -1 for the program itself, which has the page's title
    """
    if depth >= 0:
        yield from (parser.prog, UNDERLINES[depth] * len(parser.prog), '')
    yield from prose(parser.description)
    yield from usage(parser)
    yield from (f'.. program:: {parser.prog}', '')
    for group in parser._action_groups:
        actions = [action for action in group._group_actions
                   if action.help is not argparse.SUPPRESS
                   and not isinstance(action, SILENT)]
        if actions and group.title not in ('positional arguments', 'options'):
            yield from (escape(str(group.title)), '')
        for action in actions:
            yield from option(parser, action)
    yield from prose(parser.epilog)
    for child in children(parser):
        yield from describe(child, depth + 1)


def usage(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield the usage, folded for a page and not for this terminal."""
    formatter = parser.formatter_class(prog=parser.prog, width=WIDTH)
    formatter.add_usage(parser.usage, parser._actions,
                        parser._mutually_exclusive_groups, prefix='')
    text = formatter.format_help().strip()
    yield from ('.. code-block:: text', '')
    yield from (f'   {line}' for line in text.splitlines())
    yield ''


def option(parser: argparse.ArgumentParser,
           action: argparse.Action) -> Iterator[str]:
    """Yield an option directive: every spelling, then the help."""
    formatter = argparse.HelpFormatter(parser.prog)
    metavar = formatter._metavar_formatter(
        action, action.dest.upper())(1)[0]
    if action.option_strings:
        value = '' if action.nargs == 0 else f' {metavar}'
        spellings = [flag + value for flag in action.option_strings]
    else:
        spellings = [metavar]
    yield from (f'.. option:: {", ".join(spellings)}', '')
    if action.help:
        yield from (f'   {escape(line)}' for line in
                    formatter._expand_help(action).splitlines())
        yield ''


def children(parser: argparse.ArgumentParser) -> Iterable[
        argparse.ArgumentParser]:
    """List the parsers of the subcommands in the order of their making."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            # An alias names a parser that is there under its own name.
            yield from dict.fromkeys(action.choices.values())


def prose(text: str | None) -> Iterator[str]:
    """Yield plain text as paragraphs."""
    for line in (text or '').splitlines():
        yield escape(line)
    yield ''


def escape(text: str) -> str:
    r"""Keep plain text plain: \* and its like mean nothing here."""
    return re.sub(r'([\\*`|_])', r'\\\1', text.strip())


def setup(app: application.Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive('command-reference', CommandReference)
    return {'parallel_read_safe': True, 'parallel_write_safe': True}

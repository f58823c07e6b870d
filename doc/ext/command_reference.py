# SPDX-License-Identifier: Apache-2.0

"""The directive ``command-reference``: a page from the classes of commands.

::

    .. command-reference:: hpcvirt.cmd.main

The argument names a module with ``COMMANDS``, whose keys are the names of
commands, and ``build_parser(name)``. Each command becomes a section with its
usage and its options, so that the page says what ``--help`` says, always.
"""

import argparse
import importlib
import re
from collections.abc import Iterable
from collections.abc import Iterator

import written
from sphinx import application

#: Below the title and the sections of the page, which have = and -.
UNDERLINE = '~'
#: Of the usage on a page: no terminal decides.
WIDTH = 76
#: --help needs no help.
SILENT = (['-h', '--help'],)


class CommandReference(written.WrittenDirective):
    """Turn a parser into sections, options included."""

    required_arguments = 1
    has_sections = True

    def write(self) -> Iterable[str]:
        """Write reStructuredText for the parsers."""
        module = importlib.import_module(self.arguments[0])
        for name in module.COMMANDS:
            yield from describe(module.build_parser(name))


def describe(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield the lines for the parser of a command."""
    yield from (parser.prog, UNDERLINE * len(parser.prog), '')
    yield from prose(parser.description)
    yield from usage(parser)
    yield from (f'.. program:: {parser.prog}', '')
    for group in parser._action_groups:
        for action in group._group_actions:
            if (action.help is not argparse.SUPPRESS
                    and action.option_strings not in SILENT):
                yield from option(parser, action)
    yield from prose(parser.epilog)


def usage(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield the usage, folded for a page and not for this terminal."""
    formatter = parser.formatter_class(prog=parser.prog, width=WIDTH)
    formatter.add_usage(parser.usage, [], [], prefix='')
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

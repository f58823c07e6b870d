# SPDX-License-Identifier: Apache-2.0

"""The base classes of commands, which are cliff commands for two programs.

The program ``hpcvirt`` (:mod:`hpcvirt.cmd.main`) and OpenStackClient
(:mod:`hpcvirt.cmd.openstackclient`) create the same object and call ``run``.
A command adds its arguments in ``add_arguments`` and does its work in
``take_action``, or in ``answer`` if it is a :class:`Report`. Its docstring is
the help text; lists of commands show the first line.
"""

import abc
import argparse
import contextlib
import dataclasses
import functools
import inspect
import json
import signal
import sys
import textwrap
import threading
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from importlib import metadata
from typing import Any
from typing import ClassVar
from typing import NoReturn

from cliff import columns
from cliff import command
from cliff import complete
from cliff import lister
from cliff.formatters import base as formatters
from cliff.formatters import commaseparated
from cliff.formatters import json_format
from cliff.formatters import value
from cliff.formatters import yaml_format
from stevedore import extension

from hpcvirt import exception
from hpcvirt import printable
from hpcvirt import words
from hpcvirt.cmd import output
from hpcvirt.cmd import table_format

FORMATTERS: Mapping[str, type[formatters.ListFormatter]] = {
    'csv': commaseparated.CSVLister,
    'json': json_format.JSONFormatter,
    'table': table_format.TableFormatter,
    'value': value.ValueFormatter,
    'yaml': yaml_format.YAMLFormatter,
}


#: Beside "usage: ", this fills a terminal of 80 columns.
_USAGE_WIDTH = 72
#: The titles that cliff gives to groups of options which all reports share.
_FORMATTING = ('output formatters', 'csv formatter', 'json formatter',
               'value formatter', 'yaml formatter')


#: The pause before an interrupt that was dropped is raised again.
AGAIN_S = 0.1


class _HelpFormatter(argparse.HelpFormatter):
    """A formatter that writes the value of an option once."""

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        value = self._format_args(
            action, self._get_default_metavar_for_optional(action))
        return f'{", ".join(action.option_strings)} {value}'


class CommandParser(argparse.ArgumentParser):
    """A parser that reports an error in one line.

    :ivar intermixed: whether arguments that may be missing may also follow
        options, as in ``STUDY --case CASE [PATH ...]``; by default argparse
        takes none of them there
    """

    intermixed = False

    def error(self, message: str) -> NoReturn:
        line = printable.one_line(message)
        self.exit(2, f'{self.prog}: {line} (see {self.prog} --help)\n')

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse arguments; the error for an unknown one suggests an option."""
        parse = self.parse_known_args
        if self.intermixed:
            parse = self.parse_known_intermixed_args
        found, rest = parse(args, namespace)
        if rest:
            option = rest[0].partition('=')[0]
            self.error(
                f'unrecognized arguments: {" ".join(rest)}' + words.nearest(
                    option, self._option_string_actions))
        return found

    def parse_known_args(self, args: Any = None,
                         namespace: Any = None) -> Any:
        # argparse reads "--option=--" as an option without a value, and stores
        # a list instead of text [https://bugs.python.org/issue14364].
        given = list(sys.argv[1:] if args is None else args)
        if given.count('--') > 1:
            self.error('-- may be given only once')
        for word in given[:given.index('--') if '--' in given else None]:
            if word.startswith('--') and word.endswith('=--'):
                self.error(f'argument {word[:-3]}: expected one argument')
        return super().parse_known_args(given, namespace)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            raise argparse.ArgumentError(action, f'{str(value)!r} is unknown'
                                         + words.suggest(str(value),
                                                         action.choices))


def whole_number(least: int, most: int) -> Callable[[str], int]:
    """Return the argparse type of a whole number within limits."""
    def read(word: str) -> int:
        number = words.read_whole(word)
        if number is None or not least <= number <= most:
            raise argparse.ArgumentTypeError(
                f'must be a number from {least} to {most}, not {word[:20]!r}')
        return number
    return read


@contextlib.contextmanager
def sigterm_event() -> Iterator[threading.Event]:
    """Let SIGTERM set an event instead of ending the process."""
    stop = threading.Event()
    before = signal.signal(signal.SIGTERM, lambda *_: stop.set())
    try:
        yield stop
    finally:
        signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def interrupting_signals() -> Iterator[None]:
    """Let kill and the end of the login interrupt as Ctrl-C does, but once.

    A command that nohup has started ignores the end of the login. Python drops
    an interrupt that comes while a finalizer runs; it is raised again a moment
    later.
    """
    is_raised = False
    again: threading.Timer | None = None

    def interrupt(*_: object) -> None:
        # timeout(1), for example, sends it twice, and the second one must not
        # interrupt what cleans up.
        nonlocal is_raised
        if not is_raised:
            is_raised = True
            raise KeyboardInterrupt

    def report(dropped: 'sys.UnraisableHookArgs') -> None:
        nonlocal is_raised, again
        if not issubclass(dropped.exc_type, KeyboardInterrupt):
            hook_before(dropped)
            return
        is_raised = False
        # Raised here, it would be dropped again.
        again = threading.Timer(AGAIN_S, signal.pthread_kill, (
            threading.get_ident(), signal.SIGTERM))
        again.start()

    before = {number: signal.signal(number, interrupt)
              for number in (signal.SIGTERM, signal.SIGHUP)
              if signal.getsignal(number) is not signal.SIG_IGN}
    hook_before = sys.unraisablehook
    sys.unraisablehook = report
    try:
        yield
    finally:
        if again is not None:
            # What was to be interrupted has ended.
            again.cancel()
        sys.unraisablehook = hook_before
        for number, handler in before.items():
            signal.signal(number, handler)


class Command(command.Command):
    """A command without a table or a document.

    :cvar epilog: text below the options in the help
    """

    epilog: ClassVar[str] = ''
    #: OpenStackClient logs in only when the command connects to the cloud.
    auth_required = False

    def get_epilog(self) -> str:
        """Return the text below the options in the help."""
        return self.epilog

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of the command."""
        parser = CommandParser(prog=prog_name, epilog=self.get_epilog(),
                               description=self.get_description(),
                               formatter_class=_HelpFormatter)
        self.add_arguments(parser)
        _shorten_usage(parser)
        return parser

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the arguments of the command."""

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run the command in a program.

        :returns: the exit status
        """
        manager = getattr(self.app, 'client_manager', None)
        parsed_args.connect, parsed_args.connect_placement = (
            manager and functools.partial(connect, manager)
            for connect in (_connect, _connect_placement))
        return output.run_safely(
            lambda: self.act(parsed_args), self.app.NAME,
            debug=bool(getattr(self.app.options, 'debug', False)))

    def act(self, parsed_args: argparse.Namespace) -> int:
        """Do the work of the command, and return the exit status."""
        return self.take_action(parsed_args) or 0


class PrintCompletion(complete.CompleteCommand, Command):
    """Print the completion of this command for bash."""

    run = Command.run


@dataclasses.dataclass(frozen=True)
class CommandResult:
    """The result of a command.

    :ivar document: printed by the formats json and yaml
    :ivar text: returns the text that the format table prints; if None, table
        draws the rows
    :ivar status: exit status: 0, or 1 if the answer is no
    :ivar others: format to a function that returns its text; other formats
        print the document or the rows
    """

    document: Any
    text: Callable[[], str] | None = None
    status: int = 0
    others: Mapping[str, Callable[[], str]] = dataclasses.field(
        default_factory=dict)


class Report(lister.Lister, Command):
    """A command with an answer for people and for programs.

    The rows are a part of the document. The formats csv and value print them;
    all formats do if columns are selected or sorted.

    :ivar rows: key of the rows in the document, empty if the document is the
        list of rows
    :ivar fields: keys of a row that are columns
    :cvar more_formats: further formats of this command, which are in
        ``CommandResult.others``
    """

    rows: str = ''
    fields: tuple[str, ...] = ()
    more_formats: ClassVar[tuple[str, ...]] = ()

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser; its help names the formats in one line."""
        parser = super().get_parser(prog_name)
        for group in parser._action_groups:
            if group.title is not None and group.title.lower() in _FORMATTING:
                _hide(group)
        form = parser._option_string_actions['--format']
        form.metavar = 'FORMAT'
        form.help = ', '.join(form.choices or ()) + '; page cli/hpcvirt'
        parser._optionals._group_actions.append(form)
        return parser

    def _load_formatter_plugins(self) -> Any:
        # The list is fixed, because searching entry points takes long.
        more: dict[str, type[formatters.ListFormatter]] = dict.fromkeys(
            self.more_formats, value.ValueFormatter)
        return extension.ExtensionManager.make_test_instance([
            extension.Extension(
                name, metadata.EntryPoint(name, '', ''), factory, factory())
            for name, factory in (*FORMATTERS.items(), *more.items())])

    def run(self, parsed_args: argparse.Namespace) -> int:
        return Command.run(self, parsed_args)

    def choose(self, args: argparse.Namespace) -> None:
        """Choose the rows and fields, if they depend on the arguments."""

    @abc.abstractmethod
    def answer(self, args: argparse.Namespace) -> CommandResult | None:
        """Return the result; None if the command has written it."""

    def act(self, parsed_args: argparse.Namespace) -> int:
        self.choose(parsed_args)
        headings = list(map(_make_heading, self.fields))
        for name in ('columns', 'sort_columns'):
            setattr(parsed_args, name, [
                _find_heading(column, headings)
                for column in getattr(parsed_args, name)])
        found = self.answer(parsed_args)
        if found is not None:
            self.print_answer(found, parsed_args)
        return 0 if found is None else found.status

    def take_action(self, parsed_args: argparse.Namespace,
                    ) -> tuple[Sequence[str], Sequence[tuple[Any, ...]]]:
        """Return the columns and the rows."""
        found = self.answer(parsed_args) or CommandResult([])
        return self._make_table(found.document)

    def print_answer(self, found: CommandResult,
                     parsed_args: argparse.Namespace) -> None:
        """Print a result in the requested format."""
        form = parsed_args.formatter
        if parsed_args.columns or parsed_args.sort_columns:
            self._print_rows(found, parsed_args)
        elif form in found.others:
            sys.stdout.write(found.others[form]())
        elif form == 'table' and found.text is not None:
            text = found.text()
            if isinstance(sys.stdout, output.Output):
                sys.stdout.begin_colours()
            sys.stdout.write(text)
        elif form == 'json':
            indent = None if parsed_args.noindent else 2
            print(json.dumps(found.document, indent=indent, allow_nan=False))
        elif form == 'yaml':
            # YAML takes a while to load.
            import yaml
            yaml.safe_dump(_make_plain(found.document), sys.stdout,
                           sort_keys=False)
        else:
            self._print_rows(found, parsed_args)

    def make_rows(self, document: Any) -> Sequence[Mapping[str, Any]]:
        """Return the rows of a document."""
        rows = document[self.rows] if self.rows else document
        return [rows] if isinstance(rows, Mapping) else list(rows)

    def _print_rows(self, found: CommandResult,
                    parsed_args: argparse.Namespace) -> None:
        headings, rows = self._make_table(found.document)
        formatter = self._formatter_plugins[parsed_args.formatter].obj
        assert formatter is not None  # noqa: S101
        self.formatter = formatter
        self.app.stdout = sys.stdout
        self.produce_output(parsed_args, headings, rows)

    def _make_table(self, document: Any,
                    ) -> tuple[Sequence[str], Sequence[tuple[Any, ...]]]:
        return [_make_heading(field) for field in self.fields], [
            tuple(_make_cell(row.get(field)) for field in self.fields)
            for row in self.make_rows(_make_plain(document))]


def _shorten_usage(parser: argparse.ArgumentParser) -> None:
    """Let the usage show only the arguments that must be given."""
    groups = [group for group in parser._mutually_exclusive_groups
              if group.required]
    needed_ids: set[int] = set()
    for group in groups:
        needed_ids.update(map(id, group._group_actions))
    shown = [action for action in parser._actions
             if action.required or not action.option_strings
             or id(action) in needed_ids]
    formatter = parser._get_formatter()
    formatter.add_usage(None, shown, groups, prefix='')
    needed = formatter.format_help().split()
    own = len(parser.prog.split())
    parser.usage = textwrap.fill(
        ' '.join([parser.prog, '[OPTION ...]', *needed[own:]]), _USAGE_WIDTH,
        subsequent_indent='    ', break_on_hyphens=False)


def _hide(group: argparse._ArgumentGroup) -> None:
    """Leave a group of options out of the help."""
    group.description = None
    group._group_actions.clear()


def get_summary(command_class: type[command.Command]) -> str:
    """Return the first line of the help of a command."""
    text = inspect.getdoc(command_class) or ''
    return text.partition('\n')[0].rstrip('.')


class _Cell(columns.FormattableColumn[Any]):
    """A list or a mapping, which the format table prints in one line."""

    def human_readable(self) -> str:
        return ', '.join(
            f'{key}={item}' for key, item in self._value.items()
        ) if isinstance(self._value, Mapping) else ', '.join(
            map(str, self._value))


def _make_plain(document: Any) -> Any:
    """Convert a document to the types of JSON."""
    return json.loads(json.dumps(document, allow_nan=False))


def _make_cell(item: Any) -> Any:
    return _Cell(item) if isinstance(item, (list, tuple, Mapping)) else item


def _make_heading(field: str) -> str:
    return field.replace('_', ' ').title()


def _find_heading(column: str, headings: Sequence[str]) -> str:
    wanted = _make_heading(column.strip())
    if wanted not in headings:
        raise exception.InvalidInput(
            column, 'is not a column' + words.suggest(wanted, headings))
    return wanted


def _connect(manager: Any) -> Any:
    """Return a novaclient on the session of OpenStackClient."""
    manager.setup_auth()
    return manager.hpc


def _connect_placement(manager: Any) -> Any:
    from hpcvirt.cmd import openstackclient
    manager.setup_auth()
    return openstackclient.make_placement(manager)

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

"""The ``hpcvirt`` command: one package for each noun, with its verbs.

Exit status: 0 if the command is done, 1 if the answer is no (a lint finding,
a verdict FAIL), 2 if there is no answer (bad input, a service that cannot be
reached).
"""

import argparse
import importlib.metadata
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any
from typing import NoReturn

from hpcvirt import exception
from hpcvirt import printable
from hpcvirt.cmd import output


def _add_topology(parser: argparse.ArgumentParser) -> None:
    from hpcvirt.cmd.topology import verbs
    verbs.add_verbs(parser)


def _add_host(parser: argparse.ArgumentParser) -> None:
    from hpcvirt.cmd.host import verbs
    verbs.add_verbs(parser)


def _add_flavor(parser: argparse.ArgumentParser) -> None:
    from hpcvirt.cmd.flavor import verbs
    verbs.add_verbs(parser)


def _add_bench(parser: argparse.ArgumentParser) -> None:
    from hpcvirt.cmd.bench import verbs
    verbs.add_verbs(parser)


def _add_study(parser: argparse.ArgumentParser) -> None:
    from hpcvirt.cmd.study import verbs
    verbs.add_verbs(parser)


def _add_capacity(parser: argparse.ArgumentParser) -> None:
    from hpcvirt.cmd.fleet import capacity
    capacity.add(parser)


def _add_make_room(parser: argparse.ArgumentParser) -> None:
    from hpcvirt.cmd.fleet import make_room
    make_room.add(parser)


def _add_simulate(parser: argparse.ArgumentParser) -> None:
    from hpcvirt.cmd.simulate import simulate
    simulate.add(parser)


def _add_explain(parser: argparse.ArgumentParser) -> None:
    from hpcvirt.cmd.fleet import explain
    explain.add(parser)


#: Noun -> (function that adds its verbs or, if it has none, its arguments, one
#: line of help). The function imports the modules of the noun when it is
#: called, and each verb sets ``run=callable(args) -> int``.
NOUNS = {
    'topology': (_add_topology, 'read, draw and group topologies of hosts'),
    'host': (_add_host, 'check, configure and accept compute hosts'),
    'flavor': (_add_flavor, 'plan, create and check flavors for hosts'),
    'capacity': (_add_capacity, 'count what a fleet still takes'),
    'explain': (_add_explain, 'say why an instance fits on no host'),
    'make-room': (_add_make_room, 'find the fewest moves that make room'),
    'simulate': (_add_simulate, 'replay a workload over a fleet'),
    'bench': (_add_bench, 'run benchmarks and compare guest and native'),
    'study': (_add_study, 'show published studies and run them again'),
}


class Parser(argparse.ArgumentParser):
    """A parser that reports an error in one line."""

    def error(self, message: str) -> NoReturn:
        line = printable.one_line(message)
        self.exit(2, f'{self.prog}: {line} (see {self.prog} --help)\n')

    def parse_known_args(self, args: Any = None,
                         namespace: Any = None) -> Any:
        # argparse takes "--option=--" for an option without a value, and
        # gives it a list instead of text [https://bugs.python.org/issue14364].
        words = list(sys.argv[1:] if args is None else args)
        if words.count('--') > 1:
            self.error('-- may be given only once')
        for word in words[:words.index('--') if '--' in words else None]:
            if word.startswith('--') and word.endswith('=--'):
                self.error(f'argument {word[:-3]}: expected one argument')
        return super().parse_known_args(words, namespace)


class _Version(argparse.Action):
    """Print the version, which is looked up only then."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        print(f'hpcvirt {importlib.metadata.version("hpcvirt")}')
        parser.exit()


def build_parser(only: str | None = None) -> argparse.ArgumentParser:
    """Make the parser.

    :param only: the noun whose verbs are loaded, which keeps the start fast;
        None loads all
    """
    parser = Parser(prog='hpcvirt', description='Near-native HPC instances '
                    'on OpenStack Nova: generate, place, prove.')
    parser.add_argument('--version', action=_Version, nargs=0,
                        help='print the version')
    parser.add_argument('--debug', action='store_true',
                        help='print a traceback with an error message')
    nouns = parser.add_subparsers(dest='noun', metavar='NOUN', required=True)
    for noun, (add_verbs, help_line) in NOUNS.items():
        sub = nouns.add_parser(noun, help=help_line, description=help_line)
        if only in (None, noun):
            add_verbs(sub)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    :param argv: the arguments without the name of the program; those of
        sys.argv if None
    :returns: the exit status
    """
    words = list(sys.argv[1:] if argv is None else argv)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, 'w', encoding='utf-8')  # noqa: SIM115
    try:
        with output.printable_output():
            return _run(words)
    except output.ReaderLeft:
        return 0
    except KeyboardInterrupt:
        return 130
    except Exception as exc:  # noqa: BLE001
        # Nothing is carried on: this is where every command ends.
        if '--debug' in words:
            output.complain(traceback.format_exc().rstrip())
        output.complain(f'hpcvirt: {_line(exc)}')
        return 2


def _line(exc: Exception) -> str:
    if isinstance(exc, exception.HpcvirtError):
        return str(exc)
    if isinstance(exc, OSError):
        return printable.one_line(
            f'{exc.filename or "this machine"}: {exc.strerror or exc}')
    return printable.one_line(
        f'internal error: {type(exc).__name__}: {exc}; please report it with '
        'what "hpcvirt --debug" prints')


def _run(words: Sequence[str]) -> int:
    noun = next((word for word in words if word in NOUNS), '')
    args = build_parser(noun).parse_args(words)
    status: int = args.run(args)
    return status


if __name__ == '__main__':
    sys.exit(main())

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
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from hpcvirt import exception
from hpcvirt import printable


def _add_topology(parser: argparse.ArgumentParser) -> None:
    from hpcvirt.cmd.topology import verbs
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


#: Noun -> (function that adds its verbs, one line of help). The function
#: imports the modules of the noun when it is called, and each verb sets
#: ``run=callable(args) -> int``.
NOUNS = {
    'topology': (_add_topology, "read a compute host's topology and draw it"),
    'flavor': (_add_flavor, 'plan, create and check flavors for hosts'),
    'bench': (_add_bench, 'run benchmarks and compare guest and native'),
    'study': (_add_study, 'show published studies and run them again'),
}


class Parser(argparse.ArgumentParser):
    """A parser that reports an error in one line."""

    def error(self, message: str) -> NoReturn:
        line = printable.one_line(message)
        self.exit(2, f'{self.prog}: {line} (see {self.prog} --help)\n')


def build_parser(only: str | None = None) -> argparse.ArgumentParser:
    """Make the parser.

    :param only: the noun whose verbs are loaded, which keeps the start fast;
        None loads all
    """
    parser = Parser(prog='hpcvirt', description='Near-native HPC instances '
                    'on OpenStack Nova: generate, place, prove.')
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
    noun = next((word for word in words if word in NOUNS), '')
    args = build_parser(noun).parse_args(words)
    try:
        status: int = args.run(args)
        sys.stdout.flush()
        return status
    except exception.HpcvirtError as exc:
        print(f'hpcvirt: {exc}', file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader (head, less) has ended. Python flushes stdout again at
        # exit, which would fail: give it somewhere to write.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130


if __name__ == '__main__':
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0

"""The arguments that name files for verdicts, besides the printed answer."""

import argparse
import os
import typing
from collections.abc import Iterable

from hpcvirt import exception
from hpcvirt import serialization

if typing.TYPE_CHECKING:
    from hpcvirt.acceptance import verdict_files


def add(parser: argparse.ArgumentParser) -> None:
    """Add --junit and --json-lines."""
    parser.add_argument('--junit', metavar='FILE',
                        help='also write the verdicts as JUnit to this file, '
                        'which must not exist yet')
    parser.add_argument('--json-lines', metavar='FILE',
                        help='also append a line of JSON for each host to '
                        'this file; several commands may do so at once')


def check(args: argparse.Namespace) -> None:
    """Check the files before anything is done.

    :raises InvalidInput: if one cannot be written
    """
    from hpcvirt.acceptance import verdict_files
    if args.junit is not None:
        check_new(args.junit)
    if args.json_lines is not None:
        verdict_files.append_lines(args.json_lines, ())


def write(args: argparse.Namespace,
          cases: 'Iterable[verdict_files.TestCase]',
          hosts: Iterable[object]) -> None:
    """Write the files.

    :param hosts: records, one for each line
    """
    from hpcvirt.acceptance import verdict_files
    if args.junit is not None:
        write_new(args.junit, verdict_files.make_junit(cases))
    if args.json_lines is not None:
        verdict_files.append_lines(args.json_lines,
                                   map(serialization.dump, hosts))


def check_new(path: str) -> None:
    """Check that a file can be created.

    :raises InvalidInput: if it exists, or cannot be created
    """
    folder = os.path.dirname(path) or '.'
    if os.path.lexists(path):
        raise exception.InvalidInput(path, 'exists already')
    if not os.access(folder, os.W_OK):
        raise exception.InvalidInput(path, 'cannot be written')


def write_new(path: str, text: str) -> None:
    """Create a file.

    :raises Unreachable: if that fails
    """
    try:
        with open(path, 'x', encoding='utf-8') as stream:
            stream.write(text)
    except OSError as exc:
        raise exception.Unreachable(
            f'{path}: {exc.strerror or exc}') from exc

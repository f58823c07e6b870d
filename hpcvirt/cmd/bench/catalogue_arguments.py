# SPDX-License-Identifier: Apache-2.0

"""The argument that names folders with benchmarks of a site."""

import argparse

from hpcvirt import child_environment
from hpcvirt.bench.catalogue import folders


def add(parser: argparse.ArgumentParser) -> None:
    """Add --catalogue."""
    parser.add_argument(
        '--catalogue', action='append', default=[], metavar='DIR',
        help=f'your benchmarks (default: ${child_environment.CATALOGUE})')


def choose(args: argparse.Namespace) -> None:
    """Let the catalogue have the folders that the arguments name."""
    folders.choose(args.catalogue)

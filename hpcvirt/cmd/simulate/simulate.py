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

"""``hpcvirt simulate``: replay a workload over a fleet."""

import argparse
import math

from hpcvirt.cmd import extras
from hpcvirt.cmd.simulate import hosts

_ABOUT = """\
Replay a workload over a fleet that is empty at first, with several ways to
choose hosts, and print what each of them loses: the core-hours of the requests
that it refuses, and why.
"""

_EPILOG = hosts.EPILOG + """
The same files and arguments print the same document. How many decisions were
made in a second is printed on standard error.
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = _ABOUT
    parser.epilog = _EPILOG
    parser.add_argument(
        '--workload', metavar='FILE|MODEL', required=True,
        help='what is requested when, and for how long: a log or a trace, '
        'whose form is detected, or the name of a model, lublin or cloud, '
        'with the number of its jobs, as in cloud:20000')
    hosts.add(parser)
    parser.add_argument(
        '--compare', metavar='LIST', default='nova,packing,hpcvirt',
        help='the strategies, separated by commas: nova, packing, best-fit or '
        'hpcvirt, each also with +fullest (cells) and +moves (%(default)s by '
        'default)')
    parser.add_argument(
        '--nova-conf', metavar='FILE', help='also let Nova itself decide, '
        'with the filters, weighers and multipliers of this nova.conf; the '
        'strategy is named nova.conf')
    parser.add_argument(
        '--load', metavar='X', type=_positive,
        help='change the times of the requests so that they ask for X times '
        'the CPUs of the fleet on average (default: keep the times)')
    parser.add_argument(
        '--vf-share', metavar='X', type=_share, default=0.0,
        help='let this share of the requests that ask for no virtual '
        'function, from 0 to 1, ask for one (0 by default)')
    parser.add_argument(
        '--moves', metavar='K', type=int, default=2, choices=range(1, 4),
        help='the most moves of other guests for a request, 1 to 3, in a '
        'strategy with +moves (%(default)s by default)')
    parser.add_argument(
        '--windows', metavar='N', type=_count, default=10,
        help='the parts of one replay that intervals are computed over '
        '(%(default)s by default)')
    parser.add_argument(
        '--seeds', metavar='N', type=_count, default=1,
        help='the replays of a model, each with a seed of its own, that '
        'intervals are computed over (1 by default)')
    parser.add_argument(
        '--no-repacking', dest='repacking', action='store_false',
        help='leave out the bound of repacking at will, which takes longer '
        'than all strategies together')
    parser.add_argument('--format', choices=('table', 'json'),
                        default='table', help='a table for people (the '
                        'default) or a document for programs')
    parser.add_argument(
        '--html', metavar='FILE', help='also write one self-contained page '
        'with drawings; an existing file is replaced only if it is such a '
        'page')
    parser.set_defaults(run=run)


def _positive(word: str) -> float:
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not 0 < value <= 1000:
        raise argparse.ArgumentTypeError(
            f'must be a number above 0 and at most 1000, not {word[:20]!r}')
    return value


def _share(word: str) -> float:
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(
            f'must be a number from 0 to 1, not {word[:20]!r}')
    return value


def _count(word: str) -> int:
    if not (word.isascii() and word.isdecimal() and 1 <= int(word) <= 1000):
        raise argparse.ArgumentTypeError(
            f'must be a whole number from 1 to 1000, not {word[:20]!r}')
    return int(word)


def run(args: argparse.Namespace) -> int:
    """Replay the workload, and print what came of it."""
    # NumPy and SciPy take half a second to load.
    with extras.named('simulate'):
        from hpcvirt.cmd.simulate import replays
    return replays.run(args)

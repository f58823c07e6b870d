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

"""``hpcvirt bench run``: measure a guest against native."""

import argparse
import importlib.metadata
import platform
import sys
import typing
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt.bench.analysis import bounds
from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.execute import mpi_hosts
from hpcvirt.bench.model import record
from hpcvirt.bench.report import text
from hpcvirt.bench.results import json_format
from hpcvirt.cmd import extras
from hpcvirt.cmd import terminal
from hpcvirt.cmd.bench import arms
from hpcvirt.cmd.bench import progress
from hpcvirt.cmd.bench import run_options
from hpcvirt.cmd.bench import targets

if typing.TYPE_CHECKING:
    from hpcvirt.bench.run import runner

_ABOUT = """\
Run benchmarks in a guest and natively, in interleaved pairs, and say whether
the guest is within its bounds. Finished samples are kept at once; the same
command continues what was interrupted.
"""

_EPILOG = f"""\
A place is {targets.FORMS}.
With the same place twice the machine is compared with itself: what it cannot
tell apart then, it cannot judge. Without --native the result is unpaired and
no verdict is given. Status 0: PASS (or unpaired and valid), 1: FAIL,
INCONCLUSIVE or INVALID, 2: it could not be measured.
"""


def add(verbs: 'argparse._SubParsersAction[argparse.ArgumentParser]') -> None:
    """Add the verb."""
    parser = verbs.add_parser('run', help='measure a guest against native',
                              description=_ABOUT, epilog=_EPILOG)
    parser.add_argument('benchmarks', nargs='*', metavar='NAME[/VARIANT]',
                        help='as in "hpcvirt bench list"')
    parser.add_argument('--study', metavar='ID/CASE',
                        help='instead of names: the benchmarks, sizes and '
                        'launch of a case, see "hpcvirt bench studies"')
    parser.add_argument('--instead', metavar='NAME',
                        help='with --study: a free benchmark that stands in '
                        'where the study allows it')
    parser.add_argument('--where', required=True, action='append',
                        metavar='PLACE', help='the guest; several are '
                        'measured together')
    parser.add_argument('--native', action='append', metavar='PLACE',
                        help='the host itself, on the same CPUs; once, or '
                        'once for each guest')
    parser.add_argument(
        '--native-cpus', action='append', metavar='LIST',
        help="tie native runs to these CPUs, the guest's own; known by "
        'itself for a server if the caller is an operator; once, or once '
        'for each guest')
    parser.add_argument('--launch', choices=('warm', 'cold', 'both'),
                        help='state of the guest: after a warm-up (the '
                        'default, unless the case of a study says '
                        'otherwise), hard-rebooted through Nova before each '
                        'of its samples, or a run of each')
    parser.add_argument('--pairs', type=_pairs, default=10, metavar='N',
                        help='pairs that count, fixed in advance '
                        '(default: %(default)s; fewer than 5 never pass)')
    parser.add_argument('--set', action='append', default=[],
                        metavar='KEY=VALUE', dest='settings',
                        help='a size, ranks, threads, or a path that the '
                        'benchmark needs; see "hpcvirt bench describe"')
    parser.add_argument('--bound', action='append', default=[],
                        metavar='METRIC=RATIO', dest='bounds',
                        help='worst ratio guest / native that passes')
    parser.add_argument('--shape', default='', metavar='TEXT',
                        help='instances x cores, 4x8 for example; selects '
                        'bounds and names the row in reports')
    parser.add_argument('--os-cloud', metavar='NAME',
                        help='an entry of clouds.yaml, for server:')
    targets.add_store(parser)
    parser.add_argument('--format', choices=('table', 'json'),
                        default='table', help='lines for people (the '
                        'default) or a document for programs')
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Measure and judge."""
    with extras.bench():
        from hpcvirt.bench.run import runner
    own = dict(bounds.parse(word) for word in args.bounds)
    settings = _settings(args.settings)
    made = run_options.read(args)
    pairs = arms.find(args)
    host = arms.host(pairs)
    shape = args.shape or arms.shape(pairs)
    if args.study and not args.shape:
        shape = arms.instances(pairs) or shape
    whole = mpi_hosts.whole([pair.size for pair in pairs])
    purpose = record.Purpose.UNPAIRED
    if args.native:
        purpose = (record.Purpose.AA if args.native == args.where
                   else record.Purpose.COMPARE)
    known: set[str] = set()
    plan: list[runner.Planned] = []
    for asked in made:
        benchmark = asked.benchmark
        names = {'ranks', 'threads', *benchmark.size,
                 *(path.name for path in benchmark.paths)}
        known |= names
        parts = arms.parts(pairs, benchmark, asked.variant, {
            **asked.fixed(whole),
            **{name: value for name, value in settings.items()
               if name in names}})
        launches = arms.launches(args.launch or asked.launch or 'warm',
                                 pairs, purpose)
        plan.extend(runner.Planned(
            parts, pairs=args.pairs, warm_ups=1, purpose=purpose, host=host,
            shape=shape, bounds=own, launch=launch, study=asked.study_id,
            case=asked.case.id if asked.case else None)
            for launch in launches)
    for name in settings:
        if name not in known:
            raise exception.InvalidInput(
                f'--set {name}', 'no benchmark that was named has it')
    result = _measure(args, tuple(plan), pairs)
    judged = verdict.judge_result(result)
    if args.format == 'json':
        sys.stdout.write(json_format.dumps(judged))
    else:
        sys.stdout.write(text.table(judged, terminal.width() or 100))
    return verdict.exit_status(judged)


def _measure(args: argparse.Namespace, plan: 'tuple[runner.Planned, ...]',
             pairs: Sequence[arms.Pair]) -> record.Result:
    with extras.bench():
        from hpcvirt.bench.results import store as stores
        from hpcvirt.bench.run import runner
    store = stores.Store(targets.store_url(args), args.data)
    watcher = progress.Terminal()
    try:
        entry = runner.execute(plan, store, _software(), watcher)
        return store.result(entry)
    except exception.Unreachable as exc:
        raise exception.Unreachable(
            f'{exc}; finished samples are kept, the same command '
            'continues') from exc
    finally:
        watcher.stop()
        arms.close(pairs)
        store.close()


def _settings(pairs: Sequence[str]) -> dict[str, str]:
    settings = {}
    for word in pairs:
        key, equals, value = word.partition('=')
        if not equals or not key or not value:
            raise exception.InvalidInput(f'--set {word}', 'not KEY=VALUE')
        settings[key] = value
    return settings


def _software() -> dict[str, str]:
    return {'hpcvirt': importlib.metadata.version('hpcvirt'),
            'python': platform.python_version()}


def _pairs(text: str) -> int:
    number = int(text)
    if not 1 <= number <= 1000:
        raise ValueError
    return number

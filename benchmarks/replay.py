# SPDX-License-Identifier: Apache-2.0

r"""Make the tables of the study of weighers: which requests find no host.

The model of a cloud, or logs, are replayed over the fleets of
benchmarks/study_fleets.py at several loads, with strategies of
"hpcvirt simulate"; benchmarks/README.rst has the tables. From the root of
the repository::

    python -m benchmarks.replay --results FOLDER --csv cloud:2000

The model is replayed with several seeds, and a log is divided into windows:
differences have intervals over both. Every result is a file in the folder, and
is not computed again; remove the files of a strategy to repeat it.
"""

import argparse
import csv
import dataclasses
import itertools
import json
import math
import pathlib
import statistics
import sys
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from scipy import special

from benchmarks import study_fleets
from hpcvirt import exception
from hpcvirt import output_file
from hpcvirt import text_table
from hpcvirt.simulate import read
from hpcvirt.simulate import report
from hpcvirt.simulate import scenario as scenarios
from hpcvirt.simulate import simulation
from hpcvirt.simulate import strategy as strategies
from hpcvirt.simulate import synthetic

#: Strategy -> its heading.
STRATEGIES: Mapping[str, str] = {
    'nova': 'Nova', 'packing': 'Packing',
    'packing+pci=0': 'Packing, no PCIWeigher',
    'packing+pci=0+instances=3': 'And fewest hosts',
    'hpcvirt': 'hpcvirt', 'hpcvirt+far=inf': 'hpcvirt, near first'}
#: The strategies that hpcvirt is compared with.
REFERENCES = ('packing', 'packing+pci=0', 'packing+pci=0+instances=3')
#: The strategies whose share of local guests is shown.
LOCAL = ('packing', 'hpcvirt', 'hpcvirt+far=inf')

LOADS = (0.8, 0.95)
SEEDS = (0, 1, 2)
WINDOWS = 10


@dataclasses.dataclass(frozen=True)
class Row:
    """The losses of a log on a fleet at a load.

    :ivar lost: strategy to its result
    """

    log: str
    fleet: str
    load: float
    lost: Mapping[str, Mapping[str, Any]]


def replay(log: str, name: str, load: float, seeds: Sequence[int],
           compared: str) -> dict[str, Any]:
    """Replay a log over a fleet at a load.

    :returns: the results of each strategy
    """
    fleet, flavors = study_fleets.build(name)
    model = synthetic.parse(log)
    if model is None:
        workloads = [read.workload(log)]
    else:
        workloads = [model.workload(seed, flavors) for seed in seeds]
    choices = {'': scenarios.make_scenario(
        pathlib.Path(log).name, workloads, fleet, load, own=model is not None,
        vf_share=study_fleets.FLEETS[name].share)}
    tasks = simulation.list_tasks(choices, strategies.parse(compared, 2))
    results = simulation.gather(choices, WINDOWS, dict(zip(
        tasks, simulation.run([*tasks.values()], lambda _part: None),
        strict=True)))
    document = report.document(results)
    found = {each['name']: each for each in document['strategies']}
    for result in results:
        if result.name in found:
            found[result.name]['parts'] = [
                (share.offered, share.lost) for share in result.shares()]
            del found[result.name]['over_time']
    return found


@dataclasses.dataclass(frozen=True)
class Interval:
    """A mean difference and half of its 95 % interval."""

    mean: float
    reach: float

    def __str__(self) -> str:
        return f'{self.mean:+.1f} ± {self.reach:.1f}'


def interval(rows: Sequence[Row], one: str, other: str) -> Interval:
    """Average the difference of two strategies over rows.

    The rows of one log have the same requests, so that each part of the log is
    one observation: its mean over these rows. Logs are independent.
    """
    logs: dict[str, list[list[float]]] = {}
    means = []
    for row in rows:
        mine, its = row.lost[one]['parts'], row.lost[other]['parts']
        offered = [hours for hours, _ in mine]
        more = [own - others for (_, own), (_, others)
                in zip(mine, its, strict=True)]
        ratio = math.fsum(more) / math.fsum(offered)
        means.append(100 * ratio)
        logs.setdefault(row.log, []).append([
            100 * (extra - ratio * hours) / statistics.fmean(offered)
            for extra, hours in zip(more, offered, strict=True)])
    variances = []
    for residuals in logs.values():
        parts = [statistics.fmean(column)
                 for column in zip(*residuals, strict=True)]
        weight = len(residuals) / len(rows)
        squares = math.fsum([part ** 2 for part in parts])
        variances.append((len(parts) - 1, weight ** 2 * squares
                          / (len(parts) * (len(parts) - 1))))
    total = math.fsum([variance for _, variance in variances])
    if not total:
        return Interval(statistics.fmean(means), 0.0)
    # Welch and Satterthwaite.
    freedom = total ** 2 / math.fsum([
        variance ** 2 / own for own, variance in variances])
    return Interval(statistics.fmean(means), math.sqrt(total) * float(
        special.stdtrit(freedom, 0.975)))


def table(rows: Sequence[Row]) -> Iterator[list[str]]:
    """Yield the lines of the table: headings first."""
    names = [name for name in STRATEGIES if name in rows[0].lost]
    references = [name for name in REFERENCES if name in names]
    local = [name for name in LOCAL if name in names]
    yield ['Requests', 'Fleet', *[STRATEGIES[name] for name in names],
           *[f'hpcvirt - {STRATEGIES[name]}' for name in references],
           *[f'Local: {STRATEGIES[name]}' for name in local]]
    logs = list(dict.fromkeys(row.log for row in rows))
    fleets = list(dict.fromkeys(row.fleet for row in rows))
    for fleet in fleets:
        for log in logs:
            mine = [row for row in rows if (row.log, row.fleet)
                    == (log, fleet)]
            yield [log, fleet, *_line(mine, names, references, local)]
        if len(logs) > 1:
            mine = [row for row in rows if row.fleet == fleet]
            yield ['all', fleet, *_line(mine, names, references, local)]
    yield ['all', 'all', *_line(rows, names, references, local)]


def _line(rows: Sequence[Row], names: Sequence[str],
          references: Sequence[str], local: Sequence[str]) -> list[str]:
    """Return the cells of a line, without those that name it."""
    cells = []
    for name in names:
        lost = statistics.fmean([row.lost[name]['lost_percent']
                                 for row in rows])
        cells.append(f'{lost:.1f}')
    cells += [str(interval(rows, 'hpcvirt', name)) for name in references]
    for name in local:
        known = [row.lost[name]['local_percent'] for row in rows
                 if row.lost[name]['local_percent'] is not None]
        cells.append(f'{statistics.fmean(known):.0f}' if known else '')
    return cells


def find_worse(rows: Sequence[Row]) -> Iterator[str]:
    """Name the logs and fleets on which hpcvirt loses more than packing."""
    for log, fleet, load in dict.fromkeys(
            (row.log, row.fleet, row.load) for row in rows):
        mine = [row for row in rows
                if (row.log, row.fleet, row.load) == (log, fleet, load)]
        for name in REFERENCES:
            if name not in mine[0].lost:
                continue
            more = interval(mine, 'hpcvirt', name)
            if more.mean > max(more.reach, 0.05):
                yield (f'{log}, {fleet}, load {load:g}: {more} compared with '
                       f'{name}')


def main(argv: Sequence[str] | None = None) -> int:
    """Compute what is missing, and print the table."""
    parser = argparse.ArgumentParser(prog='python -m benchmarks.replay',
                                     description=__doc__.splitlines()[0])
    parser.add_argument('log', nargs='+', help='a log, a trace or cloud:N')
    parser.add_argument('--results', metavar='FOLDER', type=pathlib.Path,
                        required=True, help='where the results are')
    parser.add_argument('--fleet', nargs='+', metavar='FLEET',
                        choices=list(study_fleets.FLEETS),
                        default=list(study_fleets.FLEETS),
                        help='; '.join(study_fleets.FLEETS))
    parser.add_argument('--load', nargs='+', type=float, default=LOADS)
    parser.add_argument('--seed', nargs='+', type=int, default=SEEDS,
                        help='the seeds of the model')
    parser.add_argument('--compare', default=','.join(STRATEGIES))
    parser.add_argument('--csv', action='store_true',
                        help='print the table for the documentation')
    args = parser.parse_args(argv)
    args.results.mkdir(parents=True, exist_ok=True)
    cases = itertools.product(args.log, args.fleet, args.load)
    try:
        rows = [kept(args.results, log, name, load, args.compare, args.seed)
                for log, name, load in cases]
    except exception.HpcvirtError as exc:
        print(f'replay: {exc}', file=sys.stderr)
        return 2
    headings, *lines = table(rows)
    if args.csv:
        csv.writer(sys.stdout, lineterminator='\n').writerows(
            [headings, *lines])
    else:
        print(text_table.draw(headings, lines, headings[2:], 400))
        print('hpcvirt loses more than the interval:')
        print('\n'.join(find_worse(rows)) or 'nowhere')
    return 0


def kept(folder: pathlib.Path, log: str, name: str, load: float,
         compared: str, seeds: Sequence[int] = SEEDS) -> Row:
    """Read results; compute and store those that are missing."""
    words = f'{pathlib.Path(log).name} {name} {load:g}'
    if synthetic.parse(log) is not None:
        words += f' seeds {"-".join(map(str, seeds))}'
    paths = {part: folder / f'{words} {part}.json'.replace(' ', '-')
             for part in compared.split(',')}
    missing = [part for part, path in paths.items() if not path.exists()]
    if missing:
        print(f'{words}: {", ".join(missing)}', file=sys.stderr, flush=True)
        found = replay(log, name, load, seeds, ','.join(missing))
        for part, result in found.items():
            output_file.replace(paths[part], json.dumps(result).encode())
    return Row(pathlib.Path(log).name, name, load, {
        part: json.loads(path.read_text()) for part, path in paths.items()})


if __name__ == '__main__':
    sys.exit(main())

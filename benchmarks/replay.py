# SPDX-License-Identifier: Apache-2.0

r"""Make the table of strategies: logs, fleets and loads, with intervals.

Each log is replayed over six fleets of empty hosts at several loads, with
each strategy that "hpcvirt simulate" knows, and with emptiest and fullest
cells first; reference/weigher-benefit names the logs of its table::

    python benchmarks/replay.py --results FOLDER --load 0.8 0.95 1.1 --csv \
        NASA-iPSC.swf.gz lublin_256.swf.gz openb_pods.csv cloud:4000

Every result is a file in the folder, and is not computed again; remove the
files of a strategy to repeat it. At the end the table is printed from the
files, as text or with --csv. The seed of a model is fixed. On the fleet with
virtual functions, every second host has some, and a quarter of the requests of
a log, chosen by a hash of their number, requests one; a model requests the
flavors with virtual functions anyway.
"""

import argparse
import csv
import dataclasses
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

from hpcvirt import exception
from hpcvirt import output_file
from hpcvirt import text_table
from hpcvirt.flavors import device_choice
from hpcvirt.flavors import planned
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from hpcvirt.fleet import assemble
from hpcvirt.fleet import state
from hpcvirt.model import host as host_model
from hpcvirt.model import shape
from hpcvirt.simulate import read
from hpcvirt.simulate import report
from hpcvirt.simulate import requests as request_model
from hpcvirt.simulate import scenario as scenarios
from hpcvirt.simulate import simulation
from hpcvirt.simulate import strategy as strategies
from hpcvirt.simulate import synthetic
from hpcvirt.simulate import totals
from hpcvirt.topology import source

TOPOLOGIES = (pathlib.Path(__file__).parent.parent / 'etc' / 'hpcvirt'
              / 'topologies')

#: Fleet to the number of hosts of each topology file.
FLEETS: Mapping[str, Mapping[str, int]] = {
    '2 cells': {'hs06-2s-16c': 24},
    '4 cells': {'xeon-2s-24c-snc2-1g': 14},
    '8 cells': {'epyc-2s-64c-nps4': 10},
    'mixed': {'hs06-2s-16c': 10, 'opteron-4s-12c': 6,
              'epyc-2s-64c-nps4': 4, 'intel-2s-16c-smt': 6},
    '2 kinds': {'hs06-2s-16c': 40, 'xeon-2s-24c-snc2-1g': 20},
    'VFs': {'intel-2s-16c-smt': 20},
}
#: The share of the requests for a virtual function on that fleet.
VF_SHARE = 0.25

STRATEGIES = ('nova,packing,best-fit,hpcvirt,nova+fullest,packing+fullest,'
              'best-fit+fullest,hpcvirt+fullest')
#: The differences that are shown.
PAIRED = (('hpcvirt', 'nova'), ('hpcvirt', 'packing'),
          ('hpcvirt', 'best-fit'))
WINDOWS = 10
SEED = 0
#: The name of the bound among the strategies of a row.
BOUND = 'one bin'


@dataclasses.dataclass(frozen=True)
class Row:
    """The losses of a log on a fleet at a load.

    :ivar lost: strategy to its result
    """

    log: str
    fleet: str
    load: float
    lost: Mapping[str, Mapping[str, Any]]


def build(name: str) -> state.Fleet:
    """Plan flavors for the hosts of a fleet."""
    machines = [source.read(str(TOPOLOGIES / f'{kind}.json'))
                for kind in FLEETS[name]]
    plan = planner.plan(machines, profiles.DENSE)
    flavors = [item.flavor for item in plan.flavors]
    kinds = _empty_hosts(machines, plan)
    if name == 'VFs':
        wanted = planner.plan(machines, dataclasses.replace(
            profiles.DENSE, devices=(device_choice.Devices(
                affinity=shape.PCIAffinity.REQUIRED),)))
        flavors += [item.flavor for item in wanted.flavors
                    if len(item.guest.cells) == 1]
        # Every second host has some.
        pairs = zip(_empty_hosts(machines, wanted), kinds, strict=True)
    else:
        pairs = zip(kinds, kinds, strict=True)
    return state.Fleet(tuple(
        dataclasses.replace(
            pair[number % 2],
            name=f'{pair[0].name}-{number}' if count > 1 else pair[0].name)
        for pair, count in zip(pairs, FLEETS[name].values(), strict=True)
        for number in range(count)), {}, flavors=tuple(flavors))


def _empty_hosts(machines: Sequence[host_model.Host],
                 plan: planned.Plan) -> Sequence[state.FleetHost]:
    return assemble.fleet(machines, {
        host.name: host.settings for host in plan.hosts}, ()).hosts


def scenario(log: str, name: str, load: float) -> scenarios.Scenario:
    """Map a log to the flavors of a fleet."""
    fleet = build(name)
    model = synthetic.parse(log)
    workload = (read.workload(log) if model is None
                else model.workload(SEED, fleet.flavors))
    return scenarios.make_scenario(
        pathlib.Path(log).name, [workload], fleet, load,
        own=model is not None,
        vf_share=VF_SHARE if name == 'VFs' and model is None else 0.0)


def row(log: str, name: str, load: float, compared: str) -> dict[str, Any]:
    """Replay a log over a fleet at a load.

    :returns: the results of each strategy, and of the bound
    """
    choices = {'': scenario(log, name, load)}
    tasks = simulation.list_tasks(choices, simulation.list_engines(
        strategies.parse(compared, 2)))
    results = simulation.gather(choices, WINDOWS, dict(zip(
        tasks, simulation.run([*tasks.values()], lambda _part: None),
        strict=True)))
    document = report.document(results)
    found = {each['name']: each for each in document['strategies']}
    replayed = {each.name: each for each in results}
    for name, each in found.items():
        del each['over_time']
        each['parts'] = [(share.offered, share.lost)
                         for share in replayed[name].shares()]
        each['devices_accepted_percent'] = _devices(
            replayed[name].replays[0])
    return {**found, BOUND: document['bound']}


def _devices(replay: totals.Replay) -> float | None:
    """Return the share of requests with devices that were accepted."""
    fates = [fate is None for arrival, fate in zip(
        replay.requests.arrivals, replay.outcome.fates, strict=True)
        if _has_devices(replay.requests.flavors[arrival.flavor])]
    return 100 * statistics.fmean(fates) if fates else None


def _has_devices(flavor: request_model.RequestedFlavor) -> bool:
    return bool(flavor.guest.demand.requests)


@dataclasses.dataclass(frozen=True)
class Interval:
    """A mean difference and half of its 95 % interval."""

    mean: float
    reach: float

    def __str__(self) -> str:
        return f'{self.mean:+.1f} ± {self.reach:.1f}'


def interval(rows: Sequence[Row], one: str,
             other: str) -> Interval:
    """Average the difference of two strategies over rows.

    The rows of one log have the same requests, so that each window of the log
    is one observation: its mean over these rows. Logs are independent.
    """
    logs: dict[str, list[list[float]]] = {}
    means = []
    for each in rows:
        mine, its = (each.lost[name]['parts'] for name in (one, other))
        offered = [hours for hours, _ in mine]
        more = [own - others for (_, own), (_, others)
                in zip(mine, its, strict=True)]
        ratio = math.fsum(more) / math.fsum(offered)
        means.append(100 * ratio)
        logs.setdefault(each.log, []).append([
            100 * (extra - ratio * hours) / statistics.fmean(offered)
            for extra, hours in zip(more, offered, strict=True)])
    variances = []
    for residuals in logs.values():
        windows = [statistics.fmean(column)
                   for column in zip(*residuals, strict=True)]
        weight = len(residuals) / len(rows)
        variances.append(weight ** 2 * math.fsum(
            window ** 2 for window in windows)
            / (len(windows) * (len(windows) - 1)))
    total = math.fsum(variances)
    if not total:
        return Interval(statistics.fmean(means), 0.0)
    # Welch and Satterthwaite.
    freedom = total ** 2 / math.fsum(
        part ** 2 / (WINDOWS - 1) for part in variances)
    return Interval(statistics.fmean(means), math.sqrt(total) * float(
        special.stdtrit(freedom, 0.975)))


def _mean(rows: Sequence[Row], name: str) -> str:
    percent = statistics.fmean(each.lost[name]['lost_percent']
                               for each in rows)
    return f'{percent:.1f}'


def table(rows: Sequence[Row]) -> Iterator[list[str]]:
    """Yield the lines of the table: headings first."""
    names = [name for name in rows[0].lost if name != BOUND]
    bases = [name for name in names if not name.endswith('+fullest')]
    pairs = [(one, other) for one, other in PAIRED
             if one in names and other in names]
    yield ['Requests', 'Fleet', 'Cells first', *bases, BOUND,
           *(f'{one} - {other}' for one, other in pairs)]
    logs = list(dict.fromkeys(each.log for each in rows))
    fleets = list(dict.fromkeys(each.fleet for each in rows))
    groups = [([log], [fleet]) for log in logs for fleet in fleets]
    if len(logs) > 1:
        groups += [(logs, [fleet]) for fleet in fleets]
    if len(fleets) > 1:
        groups += [([log], fleets) for log in logs]
    if min(len(logs), len(fleets)) > 1:
        groups.append((logs, fleets))
    for log, fleet in groups:
        mine = [each for each in rows
                if each.log in log and each.fleet in fleet]
        if not mine:
            continue
        for ending in ('', '+fullest'):
            if not {name + ending for name in bases} <= {*names}:
                continue
            yield [log[0] if len(log) == 1 else 'all',
                   fleet[0] if len(fleet) == 1 else 'all',
                   'fullest' if ending else 'emptiest',
                   *(_mean(mine, name + ending) for name in bases),
                   _mean(mine, BOUND),
                   *(str(interval(mine, one + ending, other + ending))
                     for one, other in pairs)]


def main(argv: Sequence[str] | None = None) -> int:
    """Compute what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('log', nargs='+', help='a log, a trace or a model')
    parser.add_argument('--results', metavar='FOLDER', type=pathlib.Path,
                        required=True, help='where the results are')
    parser.add_argument('--fleet', nargs='+', choices=list(FLEETS),
                        default=list(FLEETS), metavar='FLEET',
                        help='; '.join(FLEETS))
    parser.add_argument('--load', nargs='+', type=float,
                        default=[0.8, 0.9, 1.0, 1.1])
    parser.add_argument('--compare', default=STRATEGIES)
    parser.add_argument('--csv', action='store_true',
                        help='print the table for the documentation')
    args = parser.parse_args(argv)
    args.results.mkdir(parents=True, exist_ok=True)
    try:
        rows = [kept(args.results, log, name, load, args.compare)
                for load in args.load for name in args.fleet
                for log in args.log]
    except exception.HpcvirtError as exc:
        print(f'replay: {exc}', file=sys.stderr)
        return 2
    if args.csv:
        csv.writer(sys.stdout, lineterminator='\n').writerows(table(rows))
    else:
        print(_text(table(rows)))
    return 0


def kept(folder: pathlib.Path, log: str, name: str, load: float,
         compared: str) -> Row:
    """Read results; compute and store those that are missing."""
    words = f'{pathlib.Path(log).name} {name} {load:g}'
    paths = {part: folder / f'{words} {part}.json'.replace(' ', '-')
             for part in (*compared.split(','), BOUND)}
    missing = [part for part, path in paths.items()
               if part != BOUND and not path.exists()]
    if missing:
        print(f'{words}: {", ".join(missing)}', file=sys.stderr, flush=True)
        for part, found in row(log, name, load, ','.join(missing)).items():
            output_file.replace(paths[part], json.dumps(found).encode())
    return Row(pathlib.Path(log).name, name, load, {
        part: json.loads(path.read_text()) for part, path in paths.items()})


def _text(lines: Iterator[list[str]]) -> str:
    headings, *rows = lines
    return text_table.draw(headings, rows, headings[3:])


if __name__ == '__main__':
    sys.exit(main())

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

"""Run the replays that the arguments ask for, and write what came of them."""

import argparse
import functools
import json
import sys
import warnings
from collections.abc import Callable
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt.cmd import extras
from hpcvirt.cmd import html_file
from hpcvirt.cmd import output
from hpcvirt.cmd import terminal
from hpcvirt.cmd.simulate import hosts
from hpcvirt.cmd.simulate import page
from hpcvirt.cmd.simulate import progress
from hpcvirt.cmd.simulate import workers
from hpcvirt.fit import supply as supplies
from hpcvirt.simulate import bounds
from hpcvirt.simulate import exact
from hpcvirt.simulate import mapping
from hpcvirt.simulate import outcome as outcomes
from hpcvirt.simulate import read
from hpcvirt.simulate import replay
from hpcvirt.simulate import report
from hpcvirt.simulate import requests as request_model
from hpcvirt.simulate import scaling
from hpcvirt.simulate import scenario as scenarios
from hpcvirt.simulate import strategy as strategies
from hpcvirt.simulate import synthetic
from hpcvirt.simulate import tally
from hpcvirt.simulate import workload as workloads

#: Replays requests over a fleet.
Engine = Callable[
    [Sequence[supplies.Supply], request_model.Requests, workers.Report],
    outcomes.Outcome]


def run(args: argparse.Namespace) -> int:
    """Replay the workload, and print what came of it."""
    if args.html is not None:
        html_file.check(args.html, page.TITLE)
    compared = strategies.parse(args.compare, args.moves)
    scenario = _scenario(args)
    result = simulate(scenario, compared, args.windows, args.nova_conf,
                      args.repacking)
    for name, replays in result.replays.items():
        _tell_speed(name, replays)
    if args.html is not None:
        html_file.write(args.html, page.page(result), page.TITLE)
    if args.format == 'json':
        sys.stdout.write(json.dumps(report.document(result), indent=1) + '\n')
    else:
        sys.stdout.write(report.text(result, terminal.width()))
    return 0


def _scenario(args: argparse.Namespace) -> scenarios.Scenario:
    fleet = hosts.read(args)
    model = synthetic.parse(args.workload)
    if model is not None:
        found = [model.workload(seed, fleet.flavors)
                 for seed in range(args.seeds)]
    elif args.seeds == 1:
        largest = max(((flavor.vcpus, flavor.ram_mib)
                       for flavor in fleet.flavors), default=(0, 0))
        found = [read.workload(args.workload, machine=largest)]
    else:
        raise exception.InvalidInput(
            '--seeds', 'is for models, which are '
            f'{" and ".join(synthetic.MODELS)}; a log is divided into '
            '--windows')
    return scenarios.Scenario(
        input_file.name(args.workload), found[0].notes, fleet, args.load,
        tuple(_requests(workload, seed, fleet, model is not None, args)
              for seed, workload in enumerate(found)))


def _requests(workload: workloads.Workload, seed: int, fleet: scenarios.Fleet,
              modelled: bool,
              args: argparse.Namespace) -> request_model.Requests:
    """Choose the flavors of a workload, and scale its times."""
    requests = mapping.map_jobs(
        workload, fleet.flavors, own=modelled or not args.flavors,
        vf_share=args.vf_share, seed=seed)
    tally.check(requests, workload.name)
    return requests if args.load is None else scaling.to_load(
        requests, fleet.cpus(requests.flavors), args.load)


def simulate(scenario: scenarios.Scenario,
             compared: Sequence[strategies.Strategy], windows: int,
             nova_conf: str | None = None,
             repacking: bool = True) -> scenarios.Result:
    """Replay the requests with all strategies, and find the bounds.

    :param nova_conf: a file that says how Nova's own code decides
    :param repacking: whether that bound is found, which takes longest
    """
    engines: dict[str, Engine] = {
        each.name: functools.partial(_replay, each) for each in compared}
    if nova_conf is not None:
        engines[strategies.NOVA_CONF] = _nova(nova_conf)
    bounding: dict[str, Engine] = {report.POOL: bounds.pool}
    if repacking:
        bounding[report.REPACKING] = bounds.repacked
    engines |= bounding
    fleet = scenario.fleet.hosts
    pairs = [(name, requests) for name in engines
             for requests in scenario.requests]
    with progress.shown([name for name, _ in pairs]) as show:
        found = workers.run([
            functools.partial(engines[name], fleet, requests)
            for name, requests in pairs], show)
    replays: dict[str, tuple[tally.Replay, ...]] = {}
    for (name, requests), outcome in zip(pairs, found, strict=True):
        replays[name] = (*replays.get(name, ()),
                         tally.Replay(requests, outcome))
    bounded = {name: replays.pop(name) for name in bounding}
    optima = [exact.outcome_of(fleet, requests)
              for requests in scenario.requests]
    known = [each for each in optima if each is not None]
    if len(known) == len(optima):
        bounded[report.OPTIMUM] = tuple(map(
            tally.Replay, scenario.requests, known))
    return scenarios.Result(scenario, windows, replays, bounded)


def _replay(strategy: strategies.Strategy, fleet: Sequence[supplies.Supply],
            requests: request_model.Requests,
            on_progress: workers.Report) -> outcomes.Outcome:
    return replay.replay(fleet, requests, strategy, on_progress)


def _nova(path: str) -> Engine:
    """Prepare the replay that a nova.conf decides."""
    # Nova takes seconds to load, and need not be there.
    with extras.named('nova'), warnings.catch_warnings():
        warnings.simplefilter('ignore')
        from hpcvirt.nova.replay import replay as nova_replay
        from hpcvirt.nova.replay import settings
    settings.load(path)
    return nova_replay.replay


def _tell_speed(name: str, replays: Sequence[tally.Replay]) -> None:
    number = sum(len(each.outcome.fates) for each in replays)
    seconds = sum(each.outcome.seconds for each in replays)
    output.complain(f'{name}: {number} decisions in {seconds:.1f} s'
                    + (f', {number / seconds:.0f} a second' if seconds
                       else ''))

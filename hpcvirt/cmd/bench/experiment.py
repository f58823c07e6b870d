# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt bench run`` with an experiment document: make trials.

The hosts are filled with instances of one configuration after the other. They
must have no other instances, and are held in quarantine meanwhile. At the end,
and after a failure, Ctrl-C or SIGTERM, everything that was created is removed,
and the hosts get today's settings. If the command is killed, the same command
continues, or gives up with ``--restore``.
"""

import argparse
import contextlib
import functools
import os
import time
from typing import Any

from hpcvirt import exception
from hpcvirt.bench.model import host_pattern
from hpcvirt.bench.model import judgement
from hpcvirt.cmd import cloud_arguments
from hpcvirt.cmd import command
from hpcvirt.cmd import extras
from hpcvirt.cmd import output
from hpcvirt.cmd import store_arguments
from hpcvirt.cmd.bench import documents
from hpcvirt.cmd.bench import targets
from hpcvirt.cmd.tune import experiment as experiments
from hpcvirt.tune import model

#: The metadata key of the instances, with which all names begin.
MARK = 'hpcvirt-tune'


def answer(args: argparse.Namespace,
           given: documents.RunDocument) -> command.CommandResult:
    """Print the steps, and with --apply take them.

    A check compares a profile with that of today in a few boots, for the day
    after a new kernel, Nova or firmware.
    """
    documents.refuse_hosts(given, args)
    space = experiments.plan(given.plain, given.path, args.check)
    for key in ('image', 'network'):
        if getattr(space.experiment, key) is None:
            raise exception.InvalidInput(given.place(key), 'is missing')
    if space.experiment.native is not None:
        given.check_target('native', host_pattern.fill(
            space.experiment.native, 'host'))
    name = space.experiment.name
    if args.check is not None:
        name = time.strftime(f'{name}-check-%Y%m%dT%H%M%S', time.gmtime())
    steps, trials = _carry_out(args, given, space, name)
    plain: dict[str, Any] = {'name': name, 'steps': steps}
    if trials is None:
        return command.CommandResult(plain, str)
    plain['trials'] = len(trials)
    if args.check is None or args.restore:
        return command.CommandResult(plain, str)
    from hpcvirt.tune import analysis
    word, reason = judge(analysis.analyse(space, trials).confirmation,
                         space.matters)
    plain.update({'result': word, 'reason': reason})
    return command.CommandResult(plain, lambda: f'{word}: {reason}\n',
                                 word.exit_status)


def judge(confirmed: model.Confirmation | None,
          matters: float) -> tuple[judgement.VerdictResult, str]:
    """Judge whether a profile is worse than today's by what matters."""
    from hpcvirt.tune import report
    if confirmed is None or confirmed.effect is None:
        return (judgement.VerdictResult.INCONCLUSIVE,
                'too few pairs of boots were measured')
    if confirmed.guard is not None:
        return judgement.VerdictResult.FAIL, confirmed.guard
    word = judgement.VerdictResult.INCONCLUSIVE
    if confirmed.effect.low >= -matters:
        word = judgement.VerdictResult.PASS
    elif confirmed.effect.high < -matters:
        word = judgement.VerdictResult.FAIL
    return word, (f'{report.percents(confirmed.effect)} against today in '
                  f'{confirmed.pairs} pairs of boots')


def _carry_out(args: argparse.Namespace, given: documents.RunDocument,
               space: model.Space, name: str,
               ) -> tuple[list[dict[str, str]],
                          tuple[model.Trial, ...] | None]:
    """Print the steps, and with --apply take them.

    :returns: the trials that come next, and all that were made; None without
        --apply
    """
    # The client libraries take half a second to load.
    with extras.bench():
        from hpcvirt.cloud import benchmark_instances
        from hpcvirt.cmd.bench import progress
        from hpcvirt.tune import analysis
        from hpcvirt.tune import tuning
    experiment = space.experiment
    names = [host.name for host in space.hosts]
    record = tuning.find_record(args.data, tuning.make_record(space, name))
    cloud = cloud_arguments.connect_quarantine(args)
    hosts = [benchmark_instances.BenchmarkInstances(
        cloud.nova, MARK, host).use(experiment.image or '',
                                    [experiment.network or ''])
        for host in names]
    steps: list[dict[str, str]] = []
    lines: list[str] = []
    for host in hosts:
        lines += [f'A run that was killed left {what}' for what in host.left()]
    if not args.restore:
        for host in hosts:
            host.check_host(host.owner)
        steps = [{'stage': str(step.stage),
                  'host': names[step.block % len(names)],
                  'values': experiment.format_levels(step.levels)}
                 for step in analysis.next_steps(space, record.trials)]
        lines += [f'Hold {", ".join(names)} in quarantine',
                  f'Continue after {len(record.trials)} trials:']
        lines += [f'  {step["stage"]} on {step["host"]}: {step["values"]}'
                  for step in steps]
    lines.append('At the end, remove what was created, restore the settings '
                 f'of {", ".join(names)}, and release from quarantine')
    documents.print_steps(args, lines)
    if not args.apply:
        return steps, None
    with (command.interrupting_signals(),
          contextlib.closing(store_arguments.open_store(args)) as store):
        return steps, tuning.Tuning(
            space=space, folder=os.path.dirname(given.path),
            cloud=cloud, hosts=hosts, store=store, data=args.data,
            record=record,
            connect=functools.partial(targets.find_server, args,
                                      experiment.user),
            connect_native=lambda host: targets.find_named(
                args, host_pattern.fill(experiment.native or '', host)),
            show=lambda: progress.Terminal(args.data),
            say=output.complain).run(args.restore)

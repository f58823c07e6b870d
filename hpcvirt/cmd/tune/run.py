# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt bench tune run``: make trials."""

import argparse
import contextlib
import functools
import os
import time

from hpcvirt import printable
from hpcvirt.bench.model import judgement
from hpcvirt.cmd import cloud_arguments
from hpcvirt.cmd import command
from hpcvirt.cmd import extras
from hpcvirt.cmd import output
from hpcvirt.cmd.bench import store_arguments
from hpcvirt.cmd.bench import targets
from hpcvirt.cmd.tune import experiment as experiments
from hpcvirt.tune import model

#: The metadata key of the instances, with which all names begin.
MARK = 'hpcvirt-tune'


class RunExperiment(command.Command):
    """Carry out an experiment, or only its confirmation.

    Fill the hosts with instances of one configuration after the other, run the
    programs in all instances of a host at once, and record what they reach.
    The hosts must have no other instances, and are held in quarantine
    meanwhile. At the end, and after a failure, Ctrl-C or SIGTERM, everything
    that was created is removed, and the hosts get today's settings. If the
    command is killed, repeat it to continue, or with --restore to give up.
    """

    epilog = """\
A check is the confirmation of an experiment alone, for the day after a new
kernel, Nova or firmware. Exit status: 0 at the end or at a limit, for PASS of
a check, or without --apply if the steps can be taken; 1 for FAIL or
INCONCLUSIVE of a check; 2 if a trial cannot be made, or a host could not be
restored.
"""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        experiments.add_experiment(parser)
        parser.add_argument('--image', required=True, metavar='NAME|UUID',
                            help='an image with the programs')
        parser.add_argument('--network', required=True, metavar='NAME',
                            help='a network over which this machine can reach '
                            'the instances by SSH')
        parser.add_argument('--check', metavar='PROFILE',
                            help='compare this profile, a file or the name of '
                            'a built-in one, with that of today in fresh '
                            'boots instead; a check that was killed begins '
                            'anew')
        parser.add_argument('--restore', action='store_true',
                            help='make no trials, but restore what a run left '
                            'that was killed')
        targets.add_instances(parser, has_settings=False)

    def take_action(self, args: argparse.Namespace) -> int:
        """Print the steps, and with --apply take them."""
        space = experiments.read(args.experiment, args.check)
        if args.check is None:
            _carry_out(args, space, space.experiment.name)
            return 0
        trials = _carry_out(args, space, time.strftime(
            f'{space.experiment.name}-check-%Y%m%dT%H%M%S', time.gmtime()))
        if trials is None or args.restore:
            return 0
        from hpcvirt.tune import analysis
        word, reason = judge(analysis.analyse(space, trials).confirmation,
                             space.matters)
        print(f'{word}: {reason}')
        return word.exit_status


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


def _carry_out(args: argparse.Namespace, space: model.Space, name: str,
               ) -> tuple[model.Trial, ...] | None:
    """Print the steps, and with --apply take them.

    :returns: all trials; None without --apply
    """
    # The client libraries take half a second to load.
    with extras.bench():
        from hpcvirt.cloud import benchmark_instances
        from hpcvirt.cmd.bench import progress
        from hpcvirt.tune import analysis
        from hpcvirt.tune import tuning
    experiment = space.experiment
    names = [host.name for host in space.hosts]
    record = tuning.find_record(args.data, tuning.make_record(space, name, (
        f'--image {args.image} --network {args.network} --user {args.user}')))
    cloud = cloud_arguments.connect_quarantine(args)
    hosts = [benchmark_instances.BenchmarkInstances(
        cloud.nova, MARK, host).use(args.image, [args.network])
        for host in names]
    lines: list[str] = []
    for host in hosts:
        lines += [f'A run that was killed left {what}' for what in host.left()]
    if not args.restore:
        for host in hosts:
            host.check_host(host.owner)
        lines += [f'Hold {", ".join(names)} in quarantine',
                  f'Continue after {len(record.trials)} trials:', *(
                      f'  {step.stage} on {names[step.block % len(names)]}: '
                      + experiment.format_levels(step.levels)
                      for step in analysis.next_steps(space, record.trials))]
    lines.append('At the end, remove what was created, restore the settings '
                 f'of {", ".join(names)}, and release from quarantine')
    if not args.apply:
        lines.append(output.NOT_APPLIED)
    print(printable.lines(lines), end='', flush=True)
    if not args.apply:
        return None
    with (command.interrupting_signals(),
          contextlib.closing(store_arguments.open_store(args)) as store):
        return tuning.Tuning(
            space=space, folder=os.path.dirname(args.experiment),
            cloud=cloud, hosts=hosts, store=store, data=args.data,
            record=record,
            connect=functools.partial(targets.find_server, args),
            connect_native=lambda host: targets.find_named(
                args, str(experiment.native).replace('{host}', host)),
            show=lambda: progress.Terminal(args.data),
            say=output.complain).run(args.restore)

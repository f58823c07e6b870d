# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt tune check``: compare a profile with today's."""

import argparse
import dataclasses
import functools
import math
import re
import typing

from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt.bench.model import judgement
from hpcvirt.cmd import command
from hpcvirt.cmd import extras
from hpcvirt.cmd import yaml_file
from hpcvirt.cmd.tune import documents
from hpcvirt.cmd.tune import run as run_command
from hpcvirt.tune import configurations
from hpcvirt.tune import experiment as experiments
from hpcvirt.tune import space as spaces

if typing.TYPE_CHECKING:
    from hpcvirt.tune import findings

Word = judgement.VerdictResult

_MAX_BYTES = 1024 * 1024


class CheckProfile(command.Report):
    """Compare a profile with today's in fresh boots.

    This is the confirmation of an experiment alone, for the day after a new
    kernel, Nova or firmware. The programs, the hosts and today's profile are
    those of the experiment. Everything that was created is removed at the end,
    as by "hpcvirt tune run".
    """

    epilog = """\
Exit status: 0 for PASS, if the profile is not worse than today's by what
matters, or without --apply if the steps can be taken; 1 for FAIL or
INCONCLUSIVE; 2 if a trial cannot be made, or a host could not be restored.
"""
    fields = ('word', 'pairs', 'reason')

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        documents.add_experiment(parser)
        parser.add_argument('profile', metavar='PROFILE',
                            help='the file of the profile, with as many '
                            'guests on a host as today')
        run_command.add_instances(parser)
        parser.set_defaults(native=None)

    def answer(self, args: argparse.Namespace,
               ) -> command.CommandResult | None:
        """Print the steps, and with --apply take them and judge."""
        with extras.bench():
            from hpcvirt.bench.run import sampler
            from hpcvirt.cmd.tune import trials
            from hpcvirt.tune import analysis
            from hpcvirt.tune import records
            from hpcvirt.tune import steps
        document = documents.read(args.experiment)
        experiment, today = document.experiment, document.space.today
        both = (document.configurations.plan(today),
                configurations.Configurations(
                    experiment, document.hosts,
                    yaml_file.read(args.profile, _MAX_BYTES) or {},
                    args.profile).plan(today))
        if both[0].needs_change(both[1]) and not experiment.apply:
            raise exception.InvalidInput(
                args.profile, 'changes the settings of hosts, which needs the '
                'key apply in the experiment')
        kept, options = records.TuneRecords(args.data), trials.read_options(
            args)
        digest = records.make_digest(experiment, both,
                                     [host.name for host in document.hosts])
        prefix, now = f'{experiment.name}-check-', sampler.read_clock()
        found = kept.find_unfinished(prefix, digest) or records.TuneRecord(
            prefix + re.sub('[^0-9T]', '', now.partition('+')[0]), digest,
            now, options)
        trials.check_options(found, options)
        values = (experiments.TODAY, 'checked')
        space = dataclasses.replace(document.space, interactions=(), choices=(
            spaces.Choice('profile', values, (both[0].cost, both[1].cost),
                          both[0].needs_change(both[1])),))
        budget = spaces.Budget(0, experiment.confirm_boots,
                               len(document.hosts), found.name)
        ended = trials.carry_out(
            args, document, found, lambda levels: both[levels[0]],
            lambda levels: values[levels[0]],
            functools.partial(steps.next_steps, space, budget))
        if ended is None:
            return None
        confirmed = analysis.analyse(space, budget, ended.trials).confirmation
        word, reason = judge(confirmed, space.matters)
        return command.CommandResult(
            {'word': word.value, 'reason': reason,
             'pairs': confirmed.pairs if confirmed else 0,
             'record': kept.path(found.name),
             'confirmation': serialization.dump(confirmed)},
            lambda: f'{word}: {reason}\n', int(word is not Word.PASS))


def judge(confirmed: 'findings.Confirmation | None',
          matters: float) -> tuple[Word, str]:
    """Judge whether a profile is not worse than today's.

    :param matters: the smallest difference that matters, as a logarithm
    :returns: the verdict, and its reason
    """
    if confirmed is None or confirmed.effect is None:
        return Word.INCONCLUSIVE, 'too few pairs of boots were measured'
    low, gain, high = (100 * math.expm1(each) for each in (
        confirmed.effect.low, confirmed.effect.gain, confirmed.effect.high))
    reason = (f'the profile reaches {gain:+.1f} % ({low:+.1f} to {high:+.1f} '
              f'%) against today\'s in {confirmed.pairs} pairs of boots')
    if confirmed.guard is not None:
        return Word.FAIL, confirmed.guard
    if confirmed.effect.low >= -matters:
        return Word.PASS, reason
    if confirmed.effect.high < -matters:
        return Word.FAIL, reason
    return Word.INCONCLUSIVE, f'{reason}: too few to tell'

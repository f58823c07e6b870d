# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt tune check``: compare a profile with today's."""

import argparse
import math
import typing

from hpcvirt import serialization
from hpcvirt.bench.model import judgement
from hpcvirt.cmd import command
from hpcvirt.cmd import extras
from hpcvirt.cmd.tune import documents
from hpcvirt.cmd.tune import run as run_command

if typing.TYPE_CHECKING:
    from hpcvirt.tune import findings

Word = judgement.VerdictResult


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
                            help='the profile: a file, or the name of a '
                            'built-in one')
        parser.add_argument('--guests', metavar='N',
                            type=command.whole_number(1, 1024),
                            help='how many guests fill a host with the '
                            'profile (default: as many as today)')
        run_command.add_instances(parser)
        parser.set_defaults(native=None)

    def answer(self, args: argparse.Namespace,
               ) -> command.CommandResult | None:
        """Print the steps, and with --apply take them and judge."""
        with extras.bench():
            from hpcvirt.cmd.tune import trials
            from hpcvirt.tune import analysis
        document = documents.read(args.experiment, profile=args.profile,
                                  guests=args.guests)
        ended = trials.carry_out(
            args, document,
            [document.configurations.plan((level,)) for level in (0, 1)],
            f'{document.experiment.name}-check-')
        if ended is None:
            return None
        confirmed = analysis.analyse(
            document.space, document.budget, ended.trials).confirmation
        word, reason = judge(confirmed, document.space.matters)
        return command.CommandResult(
            {'word': word.value, 'reason': reason,
             'pairs': confirmed.pairs if confirmed else 0,
             'record': ended.name,
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
    reason = (f'{gain:+.1f} % ({low:+.1f} to {high:+.1f} %) against today in '
              f'{confirmed.pairs} pairs of boots')
    if confirmed.guard is not None:
        return Word.FAIL, confirmed.guard
    if confirmed.effect.low >= -matters:
        return Word.PASS, reason
    if confirmed.effect.high < -matters:
        return Word.FAIL, reason
    return Word.INCONCLUSIVE, f'{reason}: too few to tell'

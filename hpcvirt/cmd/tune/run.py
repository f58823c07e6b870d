# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt tune run``: carry out an experiment."""

import argparse

from hpcvirt.cmd import command
from hpcvirt.cmd import extras
from hpcvirt.cmd.bench import targets
from hpcvirt.cmd.tune import documents


class RunExperiment(command.Command):
    """Carry out an experiment.

    Fill the hosts with instances of one configuration after the other, run the
    programs in all instances of a host at once, and record what they reach.
    The hosts must have no other instances, and are held in quarantine
    meanwhile. At the end, and after a failure, Ctrl-C or SIGTERM, everything
    that was created is removed, and the hosts get today's settings. If the
    command is killed, repeat it to continue, or with --restore to give up.
    """

    epilog = f"""\
A TARGET is {targets.FORMS}.
Exit status: 0 at the end of the experiment or at its time limit, or without
--apply if the steps can be taken; 2 if a trial cannot be made, or a host could
not be restored.
"""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        documents.add_experiment(parser)
        add_instances(parser)
        parser.add_argument('--native', metavar='TARGET',
                            help='the host itself, where the programs are run '
                            'natively as well; {host} stands for its name '
                            '(default: no native runs)')

    def take_action(self, args: argparse.Namespace) -> int:
        """Print the steps, and with --apply take them."""
        # The client libraries take half a second to load.
        with extras.bench():
            from hpcvirt.cmd.tune import trials
        document = documents.read(
            args.experiment, has_native=args.native is not None)
        ended = trials.carry_out(args, document, [
            document.configurations.plan(document.space.today)])
        if ended is not None:
            print(f'{len(ended.trials)} trials are recorded; "hpcvirt tune '
                  'show" shows what they say.')
        return 0


def add_instances(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of commands that make trials."""
    parser.add_argument('--image', required=True, metavar='NAME|UUID',
                        help='an image with the programs')
    parser.add_argument('--network', required=True, metavar='NAME',
                        help='a network over which this machine can reach the '
                        'instances by SSH')
    parser.add_argument('--restore', action='store_true',
                        help='make no trials, but restore what a run left '
                        'that was killed')
    targets.add_instances(parser, has_settings=False)

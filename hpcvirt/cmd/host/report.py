# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt host report``: compare the hosts of a fleet."""

import argparse
import sys
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt import printable
from hpcvirt import serialization
from hpcvirt.bench.model import judgement
from hpcvirt.cmd import command
from hpcvirt.cmd import extras
from hpcvirt.cmd import store_arguments


class ReportHosts(command.Report):
    """Report which hosts are slow, by how much, and what differs about them.

    Each host is judged against all others of its class, by what acceptances
    and quick gates have stored. The first hosts of a class are compared with
    each other, as soon as there are six of them. Benchmarks that spanned pairs
    of hosts show which hosts are slow in most pairs, and which links are bad.
    """

    epilog = """\
"Slower" is in percent, and "low" to "high" is its interval. Exit status: 0 if
no host is slow, 1 if one is, 2 if there are no results.
"""
    fields = ('host', 'result', 'slower', 'low', 'high', 'figure', 'differs')

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            '--rounds', metavar='HOST', nargs='+',
            help='report nothing, but print the pairs of these hosts to '
            'measure: each meets each other, and no host is twice in a round, '
            'which ends with an empty line')
        store_arguments.add(parser)

    def answer(self, args: argparse.Namespace,
               ) -> command.CommandResult | None:
        """Judge the hosts, or print the rounds of pairs."""
        if args.rounds is not None:
            _print_rounds(args.rounds)
            return None
        with extras.bench():
            from hpcvirt.acceptance import class_verdict
            from hpcvirt.acceptance import fleet
            from hpcvirt.acceptance import measurement
            from hpcvirt.acceptance import records
        store = store_arguments.open_existing(args)
        if store is None:
            raise exception.InvalidInput(args.data, 'has no results')
        try:
            runs = measurement.read_runs(store)
        finally:
            store.close()
        classes = fleet.find_classes(
            run for run in runs if ', ' not in run.host)
        kept = records.Records(args.data)
        hosts = [*fleet.report_hosts(
            class_verdict.judge_fleet(classes, kept.refused()), classes,
            {each.host: each.machine for each in kept.read()}),
            *fleet.report_pairs(runs)]
        return command.CommandResult(
            [serialization.dump(each) for each in hosts],
            status=int(any(each.result is judgement.VerdictResult.FAIL
                           for each in hosts)))


def _print_rounds(hosts: Sequence[str]) -> None:
    from hpcvirt.acceptance import fleet
    for pairs in fleet.make_rounds(hosts):
        sys.stdout.write(printable.lines([*map(' '.join, pairs), '']))

# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt host report``: compare the hosts of a fleet with each other."""

import argparse

from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt.bench.model import judgement
from hpcvirt.cmd import command
from hpcvirt.cmd import extras
from hpcvirt.cmd.bench import store_arguments


class ReportHosts(command.Report):
    """Report which hosts are slow, by how much, and what differs about them.

    Each host is judged against all others of its class, by what acceptances
    and quick gates have stored. The first hosts of a class are compared with
    each other, as soon as there are six of them.
    """

    epilog = """\
"Slower" is in percent, and "low" to "high" is its interval. Exit status: 0 if
no host is slow, 1 if one is, 2 if there are no results.
"""
    fields = ('host', 'result', 'slower', 'low', 'high', 'figure', 'differs')

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        store_arguments.add(parser)

    def answer(self, args: argparse.Namespace) -> command.CommandResult:
        """Judge the hosts."""
        with extras.bench():
            from hpcvirt.acceptance import class_verdict
            from hpcvirt.acceptance import fleet_report
            from hpcvirt.acceptance import measurement
            from hpcvirt.acceptance import peers
            from hpcvirt.acceptance import records
        store = store_arguments.open_existing(args)
        if store is None:
            raise exception.InvalidInput(args.data, 'has no results')
        try:
            classes = peers.find_classes(measurement.read_runs(store))
        finally:
            store.close()
        kept = records.Records(args.data)
        hosts = fleet_report.make(
            class_verdict.judge_fleet(classes, kept.refused()), classes,
            {each.host: each.machine for each in kept.read()})
        return command.CommandResult(
            [serialization.dump(each) for each in hosts],
            status=int(any(each.result is judgement.VerdictResult.FAIL
                           for each in hosts)))

# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt host report``: compare the hosts of a fleet with each other."""

import argparse

from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt.cmd import command
from hpcvirt.cmd import extras
from hpcvirt.cmd import terminal
from hpcvirt.cmd.bench import store_arguments
from hpcvirt.cmd.host import verdict_arguments


class ReportHosts(command.Report):
    """Report which hosts are slow, by how much, and what differs about them.

    Each host is judged against all others of its class, by what acceptances
    and quick gates have stored. So the first hosts of a class are compared
    with each other, when there are six of them.
    """

    epilog = """\
Exit status: 0 if no host failed, 1 if one did, 2 if there is no store.
"""
    rows = 'hosts'
    fields = ('host', 'word', 'slower', 'figure', 'acceptance', 'reason')

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        verdict_arguments.add(parser)
        store_arguments.add(parser)

    def answer(self, args: argparse.Namespace) -> command.CommandResult:
        """Judge the hosts."""
        with extras.bench():
            from hpcvirt.acceptance import class_verdict
            from hpcvirt.acceptance import fleet_report
            from hpcvirt.acceptance import measurement
            from hpcvirt.acceptance import peers
            from hpcvirt.acceptance import records
            from hpcvirt.acceptance import verdict_files
        verdict_arguments.check(args)
        store = store_arguments.open_existing(args)
        if store is None:
            raise exception.InvalidInput(args.data, 'has no results')
        try:
            classes = peers.find_classes(measurement.read_runs(store))
        finally:
            store.close()
        kept = records.Records(args.data)
        verdicts = class_verdict.judge_fleet(classes, kept.refused())
        report = fleet_report.make(kept.read(), verdicts, classes)
        verdict_arguments.write(args, [
            case for host, verdict in verdicts.items()
            for case in verdict_files.list_figures(host, verdict)],
            report.hosts)
        return command.CommandResult(
            serialization.dump(report),
            lambda: fleet_report.render(report, terminal.width()),
            int(any('FAIL' in (each.word, each.acceptance)
                    for each in report.hosts)))

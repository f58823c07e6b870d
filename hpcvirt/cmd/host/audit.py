# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt host audit`` and ``capture``: what costs guests performance."""

import argparse
import itertools
import sys
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt import serialization
from hpcvirt.audit import finding
from hpcvirt.cmd import command
from hpcvirt.cmd import hosts
from hpcvirt.cmd import output
from hpcvirt.topology import capture

_EPILOG = """\
Run it as root: what cannot be read is reported as unknown, never as fine. The
format nhc is for the configuration of LBNL Node Health Check. Exit
status: 0 if there is nothing but notes, 1 if there is an error, a warning or
something unknown, 2 if there is no host to read.
"""

_SCHEMA_VERSION = 1
_MAX_BYTES = 16 * 1024 * 1024


class AuditHost(command.Report):
    """Find what costs guests of a host performance.

    Read the state of compute hosts and report what is not as HPC guests need
    it: what was found, what is expected, why, and the change. Nothing is
    changed.
    """

    epilog = _EPILOG
    fields = ('host', 'severity', 'code', 'found', 'expected', 'cost',
              'change')
    more_formats = ('nhc',)

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            '--root', metavar='DIR|FILE', nargs='+', default=['/'],
            help='another host: what the script of "hpcvirt host capture" '
            'wrote, or a directory with its sys, proc and etc; several for a '
            'summary of these hosts (default: this host)')
        parser.add_argument(
            '--profile', metavar='NAME|FILE',
            help='compare the host with the settings that the flavors of '
            'this profile need, as "hpcvirt flavor plan" works them out '
            '(default: judge the host by itself)')

    def answer(self, args: argparse.Namespace) -> command.CommandResult:
        """Audit the hosts."""
        from hpcvirt.audit import audit
        from hpcvirt.audit import report
        from hpcvirt.audit import summary
        from hpcvirt.audit.reading import host
        profile = (None if args.profile is None
                   else hosts.read_profile(args.profile))
        results = []
        described = []
        names: dict[str, str] = {}
        for path in args.root:
            with capture.open_root(path) as root:
                facts = host.read(root)
                other = names.setdefault(facts.name, path)
                if other != path:
                    raise exception.InvalidInput(
                        path, f'is of {facts.name}, as is {other}')
                results.append(audit.audit(facts, profile))
                if len(args.root) > 1:
                    described.append(summary.describe(facts))
        hosts.warn(tuple(dict.fromkeys(itertools.chain.from_iterable(
            result.warnings for result in results))))
        document = (summary.make_document(results, described) if described
                    else report.make_document(results[0]))

        def write_nhc() -> str:
            lines: list[str] = []
            for result in results:
                lines += report.nhc_lines(result)
            return ''.join(f'{line}\n' for line in lines)

        return command.CommandResult(
            document,
            (lambda: summary.text(document)) if described else
            lambda: report.text(results[0], output.width()),
            status=int(not document['clean']),
            others={'nhc': write_nhc})

    def make_rows(self, document: Any) -> Sequence[Mapping[str, Any]]:
        """List the findings of all hosts."""
        rows: list[Mapping[str, Any]] = []
        for each in document.get('hosts', [document]):
            rows += [{'host': each['host'], **item}
                     for item in each['findings']]
        return rows


class CaptureHost(command.Command):
    """Print a script that captures a host.

    The script writes what "host audit --root" and "host show" read of the
    host that it runs on, and nothing secret, to a tar file. It needs a POSIX
    shell and no Python.
    """

    epilog = """\
Run the script as root: ssh root@n17 sh <capture.sh >n17.tar
"""

    def take_action(
            self,
            parsed_args: argparse.Namespace) -> None:  # noqa: ARG002
        """Print the script."""
        from hpcvirt.audit import collector
        sys.stdout.write(collector.make_script())


def read_findings(path: str) -> tuple[finding.Finding, ...]:
    """Read the findings that the command printed as JSON.

    :raises InvalidInput: if the file cannot be read, or is no audit
    """
    where = input_file.name(path)
    plain = serialization.json_value(
        input_file.content(path, _MAX_BYTES), where)
    serialization.require_version(plain, _SCHEMA_VERSION, where)
    if not {'findings', 'checked'} <= plain.keys():
        raise exception.InvalidInput(
            where, 'is not the output of "hpcvirt host audit --format json"')
    return serialization.load(tuple[finding.Finding, ...], plain['findings'],
                              f'{where}: findings')

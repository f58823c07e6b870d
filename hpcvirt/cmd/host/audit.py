# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt host audit``: find what costs guests of a host performance."""

import argparse
import pathlib

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt import serialization
from hpcvirt.audit import finding
from hpcvirt.cmd import command
from hpcvirt.cmd import hosts
from hpcvirt.cmd import terminal

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

    Read the state of a compute host and report what is not as HPC guests need
    it: what was found, what is expected, why, and the change. Nothing is
    changed.
    """

    epilog = _EPILOG
    rows = 'findings'
    fields = ('severity', 'code', 'found', 'expected', 'cost', 'change')
    more_formats = ('nhc',)

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            '--root', metavar='DIR', default='/',
            help='a directory with a copy of the sys, proc and etc of '
            'another host (default: this host)')
        parser.add_argument(
            '--profile', metavar='NAME|FILE',
            help='compare the host with the settings that the flavors of '
            'this profile need, as "hpcvirt flavor plan" works them out '
            '(default: judge the host by itself)')

    def answer(self, args: argparse.Namespace) -> command.CommandResult:
        """Audit the host."""
        from hpcvirt.audit import audit
        from hpcvirt.audit import report
        from hpcvirt.audit.reading import host
        profile = (None if args.profile is None
                   else hosts.read_profile(args.profile))
        result = audit.audit(host.read(pathlib.Path(args.root)), profile)
        hosts.warn(result.warnings)
        return command.CommandResult(
            report.make_document(result),
            lambda: report.text(result, terminal.width()),
            status=int(not result.is_clean),
            others={'nhc': lambda: '\n'.join(report.nhc_lines(result)) + '\n'})


def read_findings(path: str) -> tuple[finding.Finding, ...]:
    """Read the findings that the command printed as JSON.

    :raises InvalidInput: if the file cannot be read, or is no audit
    """
    where = input_file.name(path)
    plain = serialization.json_value(
        input_file.content(path, _MAX_BYTES), where)
    serialization.require_version(plain, _SCHEMA_VERSION, where)
    found = plain.get('findings') if isinstance(plain, dict) else None
    if not isinstance(found, list) or 'checked' not in plain:
        raise exception.InvalidInput(
            where, 'is not the output of "hpcvirt host audit --format json"')
    return tuple(serialization.load(
        finding.Finding, item, f'{where}: finding {number}')
        for number, item in enumerate(found, 1))

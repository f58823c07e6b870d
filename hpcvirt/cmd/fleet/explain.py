# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""``hpcvirt explain``: say why a guest fits on no host."""

import argparse
import json
import sys

from hpcvirt import exception
from hpcvirt.cmd import terminal
from hpcvirt.cmd.fleet import arguments
from hpcvirt.cmd.fleet import explain_cloud
from hpcvirt.cmd.fleet import explain_log
from hpcvirt.fleet import changes
from hpcvirt.fleet import explain_report

_ABOUT = """\
Say of each host whether it takes one more instance of a flavor, which step of
Nova refuses it and why, and with which small change it would fit. With --log,
explain a request that nova-scheduler has refused.
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = _ABOUT
    parser.epilog = arguments.EPILOG
    arguments.add_flavor(parser, required=False)
    explain_cloud.add(parser)
    arguments.add(parser)
    explain_log.add(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the verdicts, or what a log has of them."""
    if args.log is not None:
        return explain_log.run(args)
    if args.request_id is not None:
        raise exception.InvalidInput('--request-id', 'needs --log')
    found = explain_cloud.explain(args)
    fits = any(item.fits for item in found.verdicts)
    nearest = () if fits else changes.nearest(found.guest, found.hosts)
    if args.format == 'json':
        document = explain_report.document(found.verdicts, nearest)
        sys.stdout.write(json.dumps(document, indent=1) + '\n')
    else:
        sys.stdout.write(explain_report.text(found.name, found.verdicts,
                                             nearest, terminal.width()))
    return 0 if fits else 1

# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt host capture``: take what an audit reads from another host."""

import argparse
import sys

from hpcvirt.cmd import command

_EPILOG = """\
The script needs a POSIX shell and no Python. Run it as root:
hpcvirt host capture >capture.sh; ssh root@n17 sh <capture.sh >n17.tar
"""


class CaptureHost(command.Command):
    """Print a script that captures a host.

    The script writes what "host audit --root" and "topology show" read of the
    host that it runs on, and nothing secret, to a tar file.
    """

    epilog = _EPILOG

    def take_action(
            self,
            parsed_args: argparse.Namespace) -> None:  # noqa: ARG002
        """Print the script."""
        from hpcvirt.audit import collector
        sys.stdout.write(collector.make_script())

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

"""``hpcvirt bench``: run benchmarks and compare guest and native.

Each verb has a module, whose ``add(verbs)`` adds it. The modules import heavy
libraries (scipy, SQLAlchemy, paramiko) only when the verb runs, so that
reading an output starts fast.
"""

import argparse

from hpcvirt.cmd.bench import compare
from hpcvirt.cmd.bench import describe
from hpcvirt.cmd.bench import listing
from hpcvirt.cmd.bench import parse
from hpcvirt.cmd.bench import report
from hpcvirt.cmd.bench import run
from hpcvirt.cmd.bench import runs
from hpcvirt.cmd.bench import stop

#: In the order in which they are used.
VERBS = (listing, describe, run, runs, stop, parse, compare, report)


def add_verbs(parser: argparse.ArgumentParser) -> None:
    """Add the verbs of this noun."""
    verbs = parser.add_subparsers(dest='verb', metavar='VERB', required=True)
    for module in VERBS:
        module.add(verbs)

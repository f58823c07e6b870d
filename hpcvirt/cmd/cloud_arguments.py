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

"""The argument that names a cloud."""

import argparse
from typing import Any


def add(parser: argparse.ArgumentParser) -> None:
    """Add --os-cloud."""
    parser.add_argument('--os-cloud', metavar='NAME',
                        help='an entry of clouds.yaml (default: OS_CLOUD)')
    parser.set_defaults(connect=None)


def connect(args: argparse.Namespace) -> Any:
    """Create a novaclient for the cloud.

    A program around this command that has a session sets ``args.connect``,
    which is called instead unless --os-cloud names another cloud.

    :raises Unreachable: if the cloud is not configured or refuses access
    """
    if args.connect is not None and args.os_cloud is None:
        return args.connect()
    # The client libraries take half a second to load.
    from hpcvirt.cloud import session
    return session.compute(args.os_cloud)

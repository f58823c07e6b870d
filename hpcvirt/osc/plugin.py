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

"""The plugin of OpenStackClient: ``openstack hpc ...``.

OpenStackClient finds it by the entry point ``openstack.cli.extension``, and
its commands by ``openstack.hpc.v1``.
"""

import argparse
from typing import Any

API_NAME = 'hpc'
API_VERSION_OPTION = 'os_hpc_api_version'
API_VERSIONS = ('1',)
DEFAULT_API_VERSION = '1'


def make_client(instance: Any) -> Any:
    """Create a novaclient on the session of OpenStackClient.

    :param instance: its ClientManager
    """
    # OpenStackClient imports this module at every start.
    from hpcvirt.cloud import session
    return session.of_session(
        instance.session, instance.get_endpoint_for_service_type(
            'compute', region_name=instance.region_name,
            interface=instance.interface))


def build_option_parser(
        parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Add no options; there is one version."""
    return parser

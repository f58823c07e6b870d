# SPDX-License-Identifier: Apache-2.0

"""The plugin of OpenStackClient: ``openstack hpc ...``.

OpenStackClient finds the plugin by the entry point ``openstack.cli.extension``
and its commands by ``openstack.hpc.v1``.
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
    # A global import would slow down every start of OpenStackClient.
    from hpcvirt.cloud import session
    return session.make_client(
        instance.session, instance.get_endpoint_for_service_type(
            'compute', region_name=instance.region_name,
            interface=instance.interface))


def make_placement(instance: Any) -> Any:
    """Create an adapter for Placement on the session of OpenStackClient.

    :param instance: its ClientManager
    """
    from keystoneauth1 import adapter
    return adapter.Adapter(
        instance.session, service_type='placement',
        region_name=instance.region_name, interface=instance.interface,
        connect_retries=0)


def build_option_parser(
        parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Add no options, since the API has only one version."""
    return parser

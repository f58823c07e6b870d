# SPDX-License-Identifier: Apache-2.0

"""Create clients of a cloud from ``clouds.yaml`` and the ``OS_*`` variables.

``--os-cloud`` or ``OS_CLOUD`` names an entry of ``clouds.yaml``; without it
the ``OS_*`` variables describe the cloud. openstacksdk is used only to read
this configuration, because keystoneauth1 and python-novaclient cannot read
``clouds.yaml``, and os-client-config is now part of openstacksdk. The Compute
microversion is pinned, so that responses keep their form when the cloud is
upgraded.
"""

import contextlib
import logging
import os
from collections.abc import Iterator
from typing import Any

import openstack
import openstack.config
import yaml
from keystoneauth1 import adapter
from keystoneauth1 import exceptions as auth_exceptions
from novaclient import client as nova_client
from novaclient import exceptions as nova_exceptions
from openstack import exceptions as sdk_exceptions

from hpcvirt import exception

#: The first microversion in which Nova validates extra specs.
COMPUTE_MICROVERSION = '2.86'

#: The last in which it stores any extra spec.
UNVALIDATED_MICROVERSION = '2.85'

#: Seconds without a response after which a cloud is unreachable.
TIMEOUT_S = 60

#: Items requested from the API at once; it may return fewer.
PAGE_SIZE = 500

# The errors of these libraries repeat their warnings.
for _name in ('keystoneauth', 'novaclient', 'openstack'):
    logging.getLogger(_name).addHandler(logging.NullHandler())


def compute(cloud: str | None = None, timeout_s: int = TIMEOUT_S) -> Any:
    """Create a novaclient for a cloud.

    :param cloud: an entry of ``clouds.yaml``; None to use the environment
    :param timeout_s: seconds without a response until it is unreachable
    :raises Unreachable: if the cloud is not configured or refuses access
    """
    with one_line_errors():
        region = _region(cloud, timeout_s)
        session = region.get_session()
        return nova_client.Client(
            COMPUTE_MICROVERSION, session=session,
            region_name=region.get_region_name('compute'),
            endpoint_type=region.get_interface('compute'),
            service_type=region.get_service_type('compute') or 'compute',
            endpoint_override=region.get_endpoint('compute'),
            timeout=timeout_s)


def placement(cloud: str | None = None, timeout_s: int = TIMEOUT_S) -> Any:
    """Create an adapter of keystoneauth for the Placement API of a cloud.

    The parameters are those of :func:`compute`.

    :raises Unreachable: if the cloud is not configured or refuses access
    """
    with one_line_errors():
        region = _region(cloud, timeout_s)
        return adapter.Adapter(
            region.get_session(),
            service_type=region.get_service_type('placement') or 'placement',
            region_name=region.get_region_name('placement'),
            interface=region.get_interface('placement'),
            endpoint_override=region.get_endpoint('placement'),
            connect_retries=0)


def make_client(session: Any, endpoint: str) -> Any:
    """Create a novaclient on the session of another client.

    :param session: a session of keystoneauth1
    :param endpoint: the URL of the Compute API
    """
    return nova_client.Client(COMPUTE_MICROVERSION, session=session,
                              endpoint_override=endpoint, timeout=TIMEOUT_S)


def _region(cloud: str | None, timeout_s: int) -> Any:
    try:
        config = openstack.config.OpenStackConfig(app_name='hpcvirt')
        # Without clouds.yaml, openstacksdk would ignore OS_CLOUD and ask for
        # an auth_url.
        return config.get_one(cloud=cloud or os.environ.get('OS_CLOUD'),
                              api_timeout=timeout_s)
    except (AttributeError, KeyError, TypeError, ValueError,
            yaml.YAMLError) as exc:
        # openstacksdk does not validate the content of clouds.yaml.
        raise exception.Unreachable(
            f'clouds.yaml cannot be understood: {exc}') from exc


@contextlib.contextmanager
def one_line_errors() -> Iterator[None]:
    """Convert the errors of the client libraries to one line.

    :raises Unreachable: instead of these errors
    """
    try:
        yield
    except sdk_exceptions.ConfigException as exc:
        raise exception.Unreachable(
            f'the cloud is not configured: {exc}') from exc
    except auth_exceptions.MissingRequiredOptions as exc:
        raise exception.Unreachable(
            'the cloud is not configured: set OS_CLOUD, or OS_AUTH_URL and '
            f'the other OS_* variables ({exc})') from exc
    except (auth_exceptions.http.NotAcceptable,
            nova_exceptions.NotAcceptable,
            nova_exceptions.UnsupportedVersion) as exc:
        raise exception.Unreachable(
            'the Compute API does not have microversion '
            f'{COMPUTE_MICROVERSION} (Nova 21.0.0) that hpcvirt needs: '
            f'{exc}') from exc
    except (auth_exceptions.Unauthorized,
            nova_exceptions.Unauthorized) as exc:
        raise exception.Unreachable(
            f'the cloud does not accept the credentials: {exc}') from exc
    except (auth_exceptions.ClientException,
            nova_exceptions.ClientException,
            sdk_exceptions.SDKException) as exc:
        raise exception.Unreachable(
            f'the cloud cannot be used: {exc}') from exc
    except Exception as exc:
        # keystoneauth raises a plain Exception for an entry of clouds.yaml
        # without a password.
        if type(exc) is not Exception:
            raise
        raise exception.Unreachable(
            f'the cloud is not configured: {exc}') from exc


def list_all(manager: Any, **filters: Any) -> Iterator[Any]:
    """Yield every item of a list of the Compute API, page by page.

    :param manager: a manager of novaclient whose list has pages
    :param filters: arguments of its ``list``
    """
    marker = None
    while page := manager.list(marker=marker, limit=PAGE_SIZE, **filters):
        yield from page
        # A server that ignores the marker would repeat the page.
        if page[-1].id == marker:
            return
        marker = page[-1].id

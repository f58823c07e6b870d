# SPDX-License-Identifier: Apache-2.0

"""Find the resource providers of a compute host, which are its nodes."""

import contextlib
from typing import Any

from novaclient import exceptions as nova_exceptions

from hpcvirt import exception
from hpcvirt.cloud import session


def find_providers(nova: Any, host: str) -> tuple[str, ...]:
    """Find the UUIDs of the resource providers of a compute host.

    It has one, unless its driver is Ironic's.

    :param nova: a client of :func:`hpcvirt.cloud.session.compute`
    :param host: the name in ``openstack compute service list``
    :raises InvalidInput: if the cloud has no such host
    :raises Unreachable: if the cloud does not answer
    """
    with session.one_line_errors():
        # The name of the node usually contains that of the host.
        alike = ()
        with contextlib.suppress(nova_exceptions.BadRequest,
                                 nova_exceptions.NotFound):
            alike = nova.hypervisors.search(host, detailed=True)
        found = (_of_host(alike, host)
                 or _of_host(session.list_all(nova.hypervisors), host))
    if not found:
        raise exception.InvalidInput(
            f'host {host}', 'the cloud has no compute host of this name')
    return found


def _of_host(hypervisors: Any, host: str) -> tuple[str, ...]:
    return tuple(each.id for each in hypervisors
                 if each.service['host'] == host)

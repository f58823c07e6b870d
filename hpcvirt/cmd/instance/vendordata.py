# SPDX-License-Identifier: Apache-2.0

"""The dynamic vendordata service, which tells an instance of its devices.

A WSGI server runs ``hpcvirt.cmd.instance.vendordata:make_application()``. The
file ``/etc/hpcvirt/vendordata.conf`` has the section ``[keystone_authtoken]``
and the option below. ``OS_CLOUD`` names the credentials for Nova and
Placement.
"""

import logging
import pathlib
import re
import threading
import typing

import webob
import webob.dec
import webob.exc
from keystonemiddleware import auth_token
from novaclient import exceptions as nova_exceptions
from oslo_config import cfg

from hpcvirt import exception
from hpcvirt import printable
from hpcvirt import serialization
from hpcvirt import topology
from hpcvirt.cloud import placement
from hpcvirt.cloud import servers
from hpcvirt.cloud import session
from hpcvirt.instance_topology import description

LOG = logging.getLogger(__name__)

OPTION = cfg.StrOpt(
    'topologies', default='/etc/hpcvirt/topologies',
    help='The folder with the topology of each compute node: NODE.json, as '
         '"hpcvirt host show -f json" prints it.')

#: Only users of OpenStack's services have this role.
_ROLE = 'service'

#: The most that is read; user data has 64 KiB, and metadata less.
_MAX_BYTES = 1024 * 1024

#: Nova waits for 5 seconds, unless it is configured otherwise.
_TIMEOUT_S = 2

_UUID = re.compile('[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}')


class _Clients(threading.local):
    def __init__(self) -> None:
        self.nova = session.compute(timeout_s=_TIMEOUT_S)
        self.placement = placement.PlacementClient(
            session.placement(timeout_s=_TIMEOUT_S))


class VendordataService:
    """The application behind the authentication.

    :param topologies: the folder with the topologies of the compute nodes
    """

    def __init__(self, topologies: str) -> None:
        self._topologies = pathlib.Path(topologies)
        self._clients = _Clients()

    @webob.dec.wsgify  # type: ignore[untyped-decorator]
    def __call__(self, request: typing.Any) -> typing.Any:
        """Answer Nova; a refusal is one line in the log."""
        try:
            return webob.Response(json_body=self._describe(request))
        except webob.exc.HTTPError as exc:
            refusal = exc
        except (exception.HpcvirtError, OSError, LookupError, TypeError,
                AttributeError) as exc:
            # It may quote an answer or a name that cannot be encoded.
            refusal = webob.exc.HTTPServiceUnavailable(
                printable.one_line(str(exc)))
        LOG.warning('%d: %s', refusal.code, printable.one_line(refusal.detail))
        return refusal

    def _describe(self, request: typing.Any) -> typing.Any:
        project, instance = _read(request)
        with session.one_line_errors():
            try:
                server = self._clients.nova.servers.get(instance)
            except nova_exceptions.NotFound:
                server = None
        if server is None or server.tenant_id != project:
            raise webob.exc.HTTPNotFound(
                f'project {project} has no instance {instance}')
        held = self._clients.placement.list_devices(instance)
        node = pathlib.PurePath(servers.get_node(server) or '-').name
        return description.describe(
            topology.read(str(self._topologies / f'{node}.json')),
            servers.read_cells(self._clients.nova, server),
            [*map(description.HeldDevice, held)])


def _read(request: typing.Any) -> tuple[str, str]:
    """Return the ids of the project and the instance of a request."""
    if _ROLE not in request.headers.get('X-Roles', '').split(','):
        raise webob.exc.HTTPForbidden('the user is not one of a service')
    if request.method != 'POST':
        raise webob.exc.HTTPMethodNotAllowed('is not POST')
    if not 0 < (request.content_length or 0) <= _MAX_BYTES:
        raise webob.exc.HTTPRequestEntityTooLarge('has no or too much content')
    try:
        body = serialization.json_value(request.body, 'body')
        project, instance = body['project-id'], body['instance-id']
        if _UUID.fullmatch(instance) and isinstance(project, str):
            return project[:64], instance
    except (exception.InvalidInput, LookupError, OSError, TypeError):
        pass
    raise webob.exc.HTTPBadRequest('names no instance and project')


def make_application() -> typing.Any:
    """Create the application, with the authentication before it."""
    conf = cfg.ConfigOpts()
    conf.register_opt(OPTION)
    conf([], project='hpcvirt', prog='vendordata')
    return auth_token.AuthProtocol(VendordataService(conf.topologies),
                                   {'oslo_config_config': conf})

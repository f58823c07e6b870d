# SPDX-License-Identifier: Apache-2.0

"""A Compute API over HTTP with flavors and servers, which fails on demand.

It implements some calls of Nova's API reference, so that the real client
libraries can be tested with all kinds of responses.
"""

import http.server
import json
import re
import threading
import urllib.parse
import uuid

from keystoneauth1 import session as auth_session
from keystoneauth1 import token_endpoint
from novaclient import client as nova_client

from hpcvirt.cloud import session

PATH = re.compile(r'/v2\.1/flavors(?:/([^/?]+))?'
                  r'(/os-extra_specs|/os-flavor-access|/action)?'
                  r'(?:/([^/?]+))?(?:\?(.*))?$')
SERVER_PATH = re.compile(r'/v2\.1/servers/([^/?]+)(?:/(topology|action))?'
                         r'(?:\?(.*))?$')


class ComputeAPI:
    """The service.

    :ivar flavors: flavors by id, as the API shows them
    :ivar projects: the projects with access, by the id of the flavor
    :ivar servers: servers by id, likewise
    :ivar topologies: NUMA topologies by the server's id
    :ivar consoles: console logs by the server's id
    :ivar reboots: (id, type) of each reboot requested
    :ivar reboot_ends_as: status of a server some responses after a reboot
    :ivar failures: (method, part of the path) -> status of the response
    :ivar requests: (method, path, microversion) of each request
    :ivar most: maximum number of flavors in one response
    """

    def __init__(self, most=1000):
        self.flavors = {}
        self.projects = {}
        self.servers = {}
        self.topologies = {}
        self.consoles = {}
        self.reboots = []
        self.reboot_ends_as = 'ACTIVE'
        self.failures = {}
        self.requests = []
        self.most = most
        api = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def answer(self):
                api.answer(self)

            do_GET = do_POST = do_DELETE = do_PUT = answer  # noqa: N815

        self._server = http.server.ThreadingHTTPServer(
            ('127.0.0.1', 0), Handler)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def endpoint(self):
        return f'http://127.0.0.1:{self._server.server_port}/v2.1'

    def client(self):
        """Create a novaclient for this API."""
        return nova_client.Client(
            session.COMPUTE_MICROVERSION,
            session=auth_session.Session(token_endpoint.Token(
                self.endpoint, 'secret')),
            endpoint_override=self.endpoint)

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def add(self, name, vcpus=1, ram=64, disk=0, extra_specs=None, **more):
        """Add a flavor, as another user would."""
        flavor = {'id': str(uuid.uuid4()), 'name': name, 'vcpus': vcpus,
                  'ram': ram, 'disk': disk, 'swap': 0, 'description': None,
                  'OS-FLV-EXT-DATA:ephemeral': 0,
                  'os-flavor-access:is_public': True,
                  'extra_specs': dict(extra_specs or {}), **more}
        self.flavors[flavor['id']] = flavor
        return flavor

    def add_server(self, name, addresses, status='ACTIVE', **more):
        """Add a server.

        :param addresses: network to [(address, fixed or floating)]
        """
        server = {
            'id': str(uuid.uuid4()), 'name': name, 'status': status,
            'addresses': {network: [
                {'addr': address, 'version': 4, 'OS-EXT-IPS:type': kind}
                for address, kind in entries]
                for network, entries in addresses.items()},
            'OS-EXT-STS:task_state': None,
            'flavor': {'original_name': 'hpc.4c', 'vcpus': 4, 'ram': 4096,
                       'disk': 0, 'swap': 0, 'ephemeral': 0,
                       'extra_specs': {}}, **more}
        self.servers[server['id']] = server
        return server

    def named(self, name):
        return next((flavor for flavor in self.flavors.values()
                     if flavor['name'] == name), None)

    def answer(self, request):
        length = int(request.headers.get('Content-Length') or 0)
        body = json.loads(request.rfile.read(length) or b'{}')
        self.requests.append((
            request.command, request.path,
            request.headers.get('OpenStack-API-Version')))
        for (method, part), status in self.failures.items():
            if method == request.command and part in request.path:
                self._send(request, status, {
                    'error': {'code': status, 'message': 'not today'}})
                return
        status, content = self._act(request.command, request.path, body)
        self._send(request, status, content)

    @staticmethod
    def _send(request, status, content):
        data = json.dumps(content).encode() if content is not None else b''
        request.send_response(status)
        request.send_header('Content-Type', 'application/json')
        request.send_header('Content-Length', str(len(data)))
        request.send_header('OpenStack-API-Version', 'compute 2.86')
        request.end_headers()
        request.wfile.write(data)

    def _act(self, method, path, body):
        match = SERVER_PATH.match(path)
        if match is not None:
            return self._act_on_server(method, body, *match.groups())
        match = PATH.match(path)
        if match is None:
            return 404, {}
        flavor_id, specs, key, query = match.groups()
        if flavor_id == 'detail':
            return 200, {'flavors': self._page(query or '')}
        if flavor_id is None:
            return self._create(body['flavor'])
        flavor = self.flavors.get(flavor_id)
        if flavor is None:
            return 404, {'itemNotFound': {'message': 'no such flavor'}}
        if specs == '/action':
            project = body['addTenantAccess']['tenant']
            self.projects.setdefault(flavor_id, []).append(project)
        if specs in ('/action', '/os-flavor-access'):
            return 200, {'flavor_access': [
                {'flavor_id': flavor_id, 'tenant_id': project}
                for project in self.projects.get(flavor_id, ())]}
        if specs and method == 'POST':
            flavor['extra_specs'].update(body['extra_specs'])
            return 200, body
        if specs and method == 'DELETE':
            flavor['extra_specs'].pop(key)
            return 202, None
        if method == 'DELETE':
            del self.flavors[flavor_id]
            return 202, None
        return 200, {'flavor': flavor}

    def _act_on_server(self, method, body, server_id, what, query):
        if server_id == 'detail':
            asked = urllib.parse.parse_qs(query or '')
            pattern, marker = asked.get('name', [''])[0], 'marker' in asked
            return 200, {'servers': [] if marker else [
                server for server in self.servers.values()
                if re.search(pattern, server['name'])]}
        server = self.servers.get(server_id)
        if server is None:
            return 404, {'itemNotFound': {'message': 'no such server'}}
        if what == 'topology':
            return 200, self.topologies[server_id]
        if method == 'POST' and 'os-getConsoleOutput' in body:
            if server_id not in self.consoles:
                return 404, {'itemNotFound': {'message': 'no console'}}
            return 200, {'output': self.consoles[server_id]}
        if method == 'POST':
            self.reboots.append((server_id, body['reboot']['type']))
            server.update({'status': 'HARD_REBOOT', 'left': 2,
                           'OS-EXT-STS:task_state': 'reboot_pending_hard'})
            return 202, None
        shown = {key: value for key, value in server.items() if key != 'left'}
        if 'left' in server:
            server['left'] -= 1
            if not server['left']:
                del server['left']
                server.update({'status': self.reboot_ends_as,
                               'OS-EXT-STS:task_state': None})
        return 200, {'server': shown}

    def _page(self, query):
        found = list(self.flavors.values())
        marker = re.search('marker=([^&]+)', query)
        if marker:
            ids = [flavor['id'] for flavor in found]
            found = found[ids.index(marker[1]) + 1:]
        return found[:self.most]

    def _create(self, wanted):
        if self.named(wanted['name']):
            return 409, {'conflictingRequest': {'message': 'it exists'}}
        flavor = self.add(wanted['name'], wanted['vcpus'], wanted['ram'],
                          wanted['disk'],
                          description=wanted.get('description'),
                          swap=wanted.get('swap', 0),
                          rxtx_factor=wanted.get('rxtx_factor', 1.0))
        flavor['OS-FLV-EXT-DATA:ephemeral'] = wanted.get(
            'OS-FLV-EXT-DATA:ephemeral', 0)
        flavor['os-flavor-access:is_public'] = wanted.get(
            'os-flavor-access:is_public', True)
        return 200, {'flavor': flavor}


CLOUDS = """
clouds:
  test:
    auth_type: admin_token
    auth: {{endpoint: '{endpoint}', token: secret}}
"""

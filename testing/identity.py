# SPDX-License-Identifier: Apache-2.0

"""Authenticate clients: the Keystone and clouds.yaml of the embedded Nova."""

import os
import pathlib
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import MutableMapping
from typing import Any

import fixtures
import yaml
from nova.tests import fixtures as nova_fixtures

#: The token of an administrator. Without Keystone, Placement accepts no other.
TOKEN = 'admin'
CLOUD = 'embedded'

_IDENTITY = {
    'HTTP_X_AUTH_USER': 'admin',
    'HTTP_X_USER_ID': 'admin',
    'HTTP_X_AUTH_PROJECT_ID': nova_fixtures.PROJECT_ID,
    'HTTP_X_ROLES': 'admin,member,reader',
}

_App = Callable[[MutableMapping[str, Any], Any], Iterable[bytes]]


class Token(fixtures.Fixture):
    """Let the Compute API accept a token of an administrator.

    Nova's own test client sends an identity instead of a token, which other
    clients cannot do. The fixture must be set up before the API.
    """

    def _setUp(self) -> None:  # noqa: N802
        stub = nova_fixtures.OSAPIFixture._stub_keystone

        def stub_and_accept_token(api: Any) -> None:
            stub(api)
            api.useFixture(fixtures.MonkeyPatch(
                'keystonemiddleware.auth_token.filter_factory',
                lambda *_, **__: _accept_token))

        self.useFixture(fixtures.MonkeyPatch(
            'nova.tests.fixtures.OSAPIFixture._stub_keystone',
            stub_and_accept_token))


class CloudsFile(fixtures.Fixture):
    """A clouds.yaml with one cloud, and ``OS_CLOUD`` that names it.

    :param url: URL of the Compute API
    :param placement_url: URL of the Placement API
    """

    def __init__(self, url: str, placement_url: str) -> None:
        super().__init__()
        self._url = url
        self._placement_url = placement_url

    def _setUp(self) -> None:  # noqa: N802
        path = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path, 'clouds.yaml')
        path.write_text(yaml.safe_dump({'clouds': {CLOUD: {
            'auth_type': 'admin_token',
            'auth': {'endpoint': self._url, 'token': TOKEN},
            'compute_endpoint_override': self._url,
            'placement_endpoint_override': self._placement_url,
        }}}), encoding='utf-8')
        for name in [name for name in os.environ if name.startswith('OS_')]:
            self.useFixture(fixtures.EnvironmentVariable(name))
        self.useFixture(fixtures.EnvironmentVariable(
            'OS_CLIENT_CONFIG_FILE', str(path)))
        self.useFixture(fixtures.EnvironmentVariable('OS_CLOUD', CLOUD))


def _accept_token(app: _App) -> _App:
    def middleware(environ: MutableMapping[str, Any],
                   start_response: Any) -> Iterable[bytes]:
        if environ.get('HTTP_X_AUTH_TOKEN') == TOKEN:
            environ.update(_IDENTITY)
        return app(environ, start_response)
    return middleware

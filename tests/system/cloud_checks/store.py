# SPDX-License-Identifier: Apache-2.0

"""Check the store of benchmark results on MariaDB and PostgreSQL.

Most sites store results in SQLite, which the unit tests use. This check
repeats them on both servers, and adds cases that only servers have: long
documents, concurrent writers, tables that several processes make at once, and
a wrong password.
"""

import dataclasses
import os
import pathlib
import subprocess
from collections.abc import Callable

from tests.system.cloud import cloud as clouds
from tests.system.cloud import database
from tests.system.cloud import errors
from tests.system.cloud import progress
from tests.system.cloud_checks import postgres

CLIENT = pathlib.Path(__file__).resolve().parent / 'store_client.py'
DATABASE = 'hpcvirt_bench'
WRITERS = 4
SAMPLES = 75
SECONDS = 120


@dataclasses.dataclass(frozen=True)
class Server:
    """A database server.

    :ivar recreate: creates the database anew
    """

    name: str
    url: str
    recreate: Callable[[], None]


def check(cloud: clouds.Cloud) -> None:
    """Check the store on both servers.

    :raises CloudError: if results are lost or mixed up
    """
    settings = cloud.settings
    try:
        postgres.start(cloud)
        servers = (
            Server('MariaDB', settings.database_url(DATABASE),
                   lambda: database.recreate(settings, DATABASE)),
            Server('PostgreSQL', postgres.url(settings, DATABASE),
                   lambda: postgres.recreate(cloud, DATABASE)),
        )
        for server in servers:
            with progress.step(f'{server.name} stores results'):
                _check(cloud, server)
    finally:
        postgres.stop(cloud)


def _check(cloud: clouds.Cloud, server: Server) -> None:
    server.recreate()
    _wait([_client(cloud, server.url, 'exercise')])
    # There are no tables yet: the first writer creates them.
    server.recreate()
    _wait([_client(cloud, server.url, 'write', f'writer{number}',
                   str(SAMPLES)) for number in range(WRITERS)])
    _wait([_client(cloud, server.url, 'count', str(WRITERS), str(SAMPLES))])
    wrong = server.url.replace(f':{cloud.settings.password}@', ':secret@')
    _wait([_client(cloud, wrong, 'refused')])
    server.recreate()


def _client(cloud: clouds.Cloud, url: str,
            *words: str) -> 'subprocess.Popen[str]':
    settings = cloud.settings
    return subprocess.Popen(
        [settings.program('python'), str(CLIENT), *words],
        env={**os.environ, 'STORE_URL': url,
             'STORE_RAW': str(settings.run / 'store-raw')},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def _wait(clients: 'list[subprocess.Popen[str]]') -> None:
    try:
        for client in clients:
            text, _ = client.communicate(timeout=SECONDS)
            if client.returncode:
                raise errors.CloudError(f'a client of the store: '
                                        f'{text[-2000:]}')
    except subprocess.TimeoutExpired:
        raise errors.CloudError('a client of the store did not end within '
                                f'{SECONDS} s') from None
    finally:
        for client in clients:
            if client.poll() is None:
                client.kill()
                client.wait()

# SPDX-License-Identifier: Apache-2.0

"""Settings of the cloud: directories, ports, passwords and sizes.

Environment variables configure the cloud, in the same way for tox, a CI job
and a person:

``HPCVIRT_CLOUD_DIR``
    the state directory, /var/tmp/hpcvirt-cloud by default
``HPCVIRT_CLOUD_PORT_BASE``
    the first of the 40 ports on 127.0.0.1 that it may use, 25000 by default
``HPCVIRT_CLOUD_SUBNET``
    the first three numbers of the guests' /24 network, 10.199.99 by default
``HPCVIRT_CLOUD_PAGES``
    the number of 2 MiB pages for guests of the libvirt host, 320 by default
``HPCVIRT_CLOUD_VIRT_TYPE``
    ``qemu`` (the default), which runs everywhere, or ``kvm``
``HPCVIRT_CLOUD_FILTER``
    ``hpcvirt`` (the default), or ``upstream`` for a cloud with the filter and
    weighers of Nova, to compare with
"""

import contextlib
import dataclasses
import os
import pathlib
import secrets
import stat

from tests.system.cloud import errors

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
IP = '127.0.0.1'

#: It has enough space for the programs, and a reboot does not empty it.
DEFAULT_STATE = '/var/tmp/hpcvirt-cloud'

#: Port of each listener, counted from the base.
PORTS = {
    'keystone': 0,
    'placement': 1,
    'nova-api': 2,
    'glance': 4,
    'neutron': 5,
    'mariadb': 10,
    'rabbit': 11,
    'rabbit-distribution': 12,
    'epmd': 13,
    'ovsdb': 15,
    'openflow': 16,
    'postgres': 17,
}

DATABASES = ('keystone', 'placement', 'glance', 'neutron', 'nova_api',
             'nova_cell0', 'nova_cell1')

#: The path of a Unix socket has at most 107 bytes; the longest ones here are
#: ``<state>/run/libvirt/run/virtlogd-admin-sock`` and
#: ``<state>/run/libvirt/lib/qemu/domain-NN-instance-XXXXXXXX/monitor.sock``.
MAX_STATE_PATH = 40


#: Modes of directories: for the owner alone, and one that others can pass.
PRIVATE = 0o700
PASSAGE = 0o711


@dataclasses.dataclass(frozen=True)
class Settings:
    """The settings of one cloud.

    :ivar state: the state directory
    :ivar pages: number of 2 MiB pages for guests of the libvirt host
    """

    state: pathlib.Path
    port_base: int = 25000
    subnet: str = '10.199.99'
    pages: int = 320
    virt_type: str = 'qemu'
    filter: str = 'hpcvirt'

    @property
    def cache(self) -> pathlib.Path:
        """The directory for files that a later start reuses."""
        return self.state / 'cache'

    @property
    def run(self) -> pathlib.Path:
        """The directory for files that are removed with the cloud."""
        return self.state / 'run'

    @property
    def log(self) -> pathlib.Path:
        return self.state / 'log'

    @property
    def etc(self) -> pathlib.Path:
        return self.run / 'etc'

    @property
    def venv(self) -> pathlib.Path:
        return self.cache / 'venv'

    @property
    def guest(self) -> pathlib.Path:
        return self.cache / 'guest'

    @property
    def key(self) -> pathlib.Path:
        return self.cache / 'id_ed25519'

    @property
    def libvirt_uri(self) -> str:
        socket = self.run / 'libvirt' / 'run' / 'libvirt-sock'
        return f'qemu+unix:///system?socket={socket}'

    @property
    def password(self) -> str:
        return (self.cache / 'password').read_text().strip()

    def program(self, name: str) -> str:
        """Return the path of a program of the Python environment."""
        return str(self.venv / 'bin' / name)

    def port(self, name: str) -> int:
        """Return the port of a listener."""
        return self.port_base + PORTS[name]

    def url(self, name: str) -> str:
        """Return the URL of an API."""
        return f'http://{IP}:{self.port(name)}'

    def database_url(self, name: str) -> str:
        """Return the SQLAlchemy URL of a database."""
        return (f'mysql+pymysql://cloud:{self.password}@{IP}:'
                f'{self.port("mariadb")}/{name}?charset=utf8mb4')

    @property
    def cache_socket(self) -> pathlib.Path:
        """The socket of memcached, in a directory that only root enters."""
        return self.run / 'memcached' / 'socket'

    @property
    def message_url(self) -> str:
        return f'rabbit://cloud:{self.password}@{IP}:{self.port("rabbit")}/'

    def credentials(self) -> dict[str, str]:
        """Return the administrator's credentials as environment variables."""
        return {
            'OS_AUTH_TYPE': 'password',
            'OS_AUTH_URL': f'{self.url("keystone")}/v3',
            'OS_USERNAME': 'admin',
            'OS_PASSWORD': self.password,
            'OS_PROJECT_NAME': 'admin',
            'OS_USER_DOMAIN_NAME': 'Default',
            'OS_PROJECT_DOMAIN_NAME': 'Default',
            'OS_REGION_NAME': 'RegionOne',
            'OS_IDENTITY_API_VERSION': '3',
            'OS_INTERFACE': 'public',
        }

    def own(self) -> None:
        """Create the state directory, or check that nobody else did.

        :raises CloudError: if another user could change its content
        """
        self.state.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            self.state.mkdir(PASSAGE)
        status = self.state.lstat()
        if not stat.S_ISDIR(status.st_mode):
            raise errors.CloudError(f'{self.state} is not a directory')
        if status.st_uid != os.geteuid():
            raise errors.CloudError(
                f'{self.state} belongs to the user {status.st_uid}; remove '
                'it, or set HPCVIRT_CLOUD_DIR to a directory of your own')
        if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise errors.CloudError(
                f'others may write to {self.state}; remove it')

    def require_passage(self) -> None:
        """Check that the users of servers can enter the state directory."""
        for directory in self.state.parents:
            if not directory.stat().st_mode & stat.S_IXOTH:
                raise errors.CloudError(
                    f'the users mysql and rabbitmq cannot enter {directory}; '
                    'set HPCVIRT_CLOUD_DIR to another directory')

    def prepare(self) -> None:
        """Create the directories and the password."""
        self.own()
        # Servers with users of their own have directories in "run".
        for directory, mode in ((self.state, PASSAGE), (self.run, PASSAGE),
                                (self.cache, PRIVATE), (self.log, PRIVATE),
                                (self.etc, PRIVATE)):
            directory.mkdir(mode, exist_ok=True)
            directory.chmod(mode)
        path = self.cache / 'password'
        if not path.exists() or not path.read_text().strip():
            path.touch(mode=0o600)
            path.write_text(secrets.token_hex(12) + '\n')


def load() -> Settings:
    """Read the settings from the environment."""
    state = pathlib.Path(os.environ.get('HPCVIRT_CLOUD_DIR') or DEFAULT_STATE)
    if not state.is_absolute() or len(str(state)) > MAX_STATE_PATH:
        raise errors.CloudError(
            f'HPCVIRT_CLOUD_DIR must be an absolute path of at most '
            f'{MAX_STATE_PATH} characters, not {state}: longer paths of Unix '
            'sockets would not work')
    virt_type = os.environ.get('HPCVIRT_CLOUD_VIRT_TYPE') or 'qemu'
    if virt_type not in ('qemu', 'kvm'):
        raise errors.CloudError(
            f'HPCVIRT_CLOUD_VIRT_TYPE must be qemu or kvm, not {virt_type!r}')
    filter_ = os.environ.get('HPCVIRT_CLOUD_FILTER') or 'hpcvirt'
    if filter_ not in ('hpcvirt', 'upstream'):
        raise errors.CloudError(
            'HPCVIRT_CLOUD_FILTER must be hpcvirt or upstream, not '
            f'{filter_!r}')
    return Settings(
        state=state,
        port_base=_number('HPCVIRT_CLOUD_PORT_BASE', 25000, 1024, 65000),
        subnet=os.environ.get('HPCVIRT_CLOUD_SUBNET') or '10.199.99',
        pages=_number('HPCVIRT_CLOUD_PAGES', 320, 64, 1 << 20),
        virt_type=virt_type, filter=filter_)


def _number(name: str, default: int, low: int, high: int) -> int:
    text = os.environ.get(name) or str(default)
    if not text.isdigit() or not low <= int(text) <= high:
        raise errors.CloudError(
            f'{name} must be a number from {low} to {high}, not {text!r}')
    return int(text)

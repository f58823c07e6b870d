# SPDX-License-Identifier: Apache-2.0

"""Start and stop the cloud and its services."""

import contextlib
import fcntl
import json
import pathlib
import shutil
import threading
from collections.abc import Iterator

from tests.system.cloud import commands
from tests.system.cloud import database
from tests.system.cloud import environment
from tests.system.cloud import errors
from tests.system.cloud import fleet
from tests.system.cloud import hugepages
from tests.system.cloud import image
from tests.system.cloud import node
from tests.system.cloud import packages
from tests.system.cloud import probes
from tests.system.cloud import processes
from tests.system.cloud import progress
from tests.system.cloud import rabbit
from tests.system.cloud import services
from tests.system.cloud import settings as cloud_settings
from tests.system.cloud.config import compute
from tests.system.cloud.config import control
from tests.system.cloud.config import network

HERE = pathlib.Path(__file__).resolve().parent
#: Seconds for a service to end before it is killed. It has no data to save,
#: because they are removed with the cloud.
PATIENCE_S = 4.0
ONLINE = pathlib.Path('/sys/devices/system/cpu/online')


class Cloud:
    """A cloud on this machine."""

    def __init__(self, settings: cloud_settings.Settings) -> None:
        self.settings = settings
        self.running = processes.Processes(settings)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other commands from changing the cloud meanwhile."""
        self.settings.own()
        with open(self.settings.state / 'lock', 'w') as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise errors.CloudError(
                    'another command is changing this cloud and holds '
                    f'{self.settings.state / "lock"}') from None
            yield

    def dead(self) -> list[str]:
        """List the services that should run but do not."""
        return [name for name in services.all_names()
                if not self.running.alive(name)]

    def up(self, keep: bool = False) -> None:
        """Start everything.

        :param keep: keep what was started if something fails
        """
        self.settings.require_passage()
        packages.ensure(self.settings)
        dead = self.dead()
        if not dead and (self.settings.run / 'complete').exists():
            progress.say('the cloud is already up')
            return
        if len(dead) < len(services.all_names()) or self.leftovers():
            progress.say('cleaning up after a run that was interrupted')
            self.down(quiet=True)
        self.settings.prepare()
        try:
            self._up()
        except BaseException:
            if not keep:
                progress.say('failed; stopping what was started '
                             f'(logs are kept in {self.settings.log})')
                self.down(quiet=True)
            raise

    def down(self, quiet: bool = False) -> None:
        """Stop all programs, and remove all files except logs and caches."""
        names = set(self.running.names())
        infrastructure = [name for name in services.INFRASTRUCTURE
                          if name in names]
        self.running.stop(sorted(names - set(infrastructure)), PATIENCE_S)
        node.clear(self.settings, self.running)
        for name in ('libvirtd', 'virtlogd', 'vswitchd', 'ovsdb', 'rabbit',
                     'mariadb', 'memcached', 'node'):
            if name in infrastructure:
                self.running.stop([name], PATIENCE_S)
        rabbit.stop(self.settings)
        self.running.sweep()
        node.clear_bridges(self.settings)
        hugepages.restore(self.settings)
        shutil.rmtree(self.settings.run, ignore_errors=True)
        if not quiet:
            progress.say('the cloud is down' if names
                         else 'the cloud is already down')

    def purge(self) -> None:
        """Delete the state directory with its caches and logs."""
        shutil.rmtree(self.settings.state, ignore_errors=True)

    def leftovers(self) -> bool:
        """Tell whether an earlier run ended without ``down``."""
        return (self.settings.run.exists()
                or (self.settings.state / 'hugepages-before').exists())

    def restart(self, name: str) -> None:
        """Stop and start one service."""
        self._check_name(name)
        self.running.stop([name])
        self.start(name)

    def start(self, name: str) -> None:
        """Start one service of the control plane or of a compute."""
        self._check_name(name)
        services.start(self.settings, self.running, name)
        if name in services.APIS:
            services.wait(self.settings, self.running, name)

    def stop(self, name: str, patience_s: float = 15.0) -> None:
        """Stop one service; kill it if ``patience_s`` is 0."""
        self._check_name(name)
        if patience_s:
            self.running.stop([name], patience_s)
        else:
            self.running.kill(name)

    def _check_name(self, name: str) -> None:
        names = [*services.control_names(), *services.compute_names(),
                 services.SPARE]
        if name not in names:
            raise errors.CloudError(
                f'no service {name!r}; there are ' + ', '.join(names))

    def _up(self) -> None:
        settings = self.settings
        self._check_ports()
        environment.ensure(settings)
        image.ensure(settings)
        image.ensure_key(settings)
        for old in settings.log.glob('*.log'):
            old.unlink()
        hugepages.reserve(settings)
        with progress.step('wrote the configuration'):
            control.write(settings)
            network.write(settings)
            compute.write(settings)
            fleet.write(settings)
            compute.write_libvirt(settings, ONLINE.read_text().strip())
        with progress.step('MariaDB and RabbitMQ are up'):
            rabbit.start(settings, self.running)
            database.start(settings, self.running)
            rabbit.wait(settings, self.running)
        with _in_thread(lambda: node.start(settings, self.running)):
            has_catalog = database.fill(settings)
        progress.say('libvirt and Open vSwitch are up')
        self._start_control(has_catalog)
        with progress.step('compute services are up'):
            for name in services.compute_names():
                services.start(settings, self.running, name)
            self._seed()
        self._check_alive()
        (settings.run / 'complete').touch()
        progress.say(f'the cloud is up: {settings.url("keystone")}/v3, '
                     f'logs in {settings.log}')

    def _start_control(self, has_catalog: bool) -> None:
        settings = self.settings
        with progress.step('APIs, conductor and scheduler are up'):
            # The others request a token when they start, and end if Keystone
            # does not answer.
            services.start(settings, self.running, 'keystone')
            services.wait(settings, self.running, 'keystone')
            if not has_catalog:
                self._catalog()
                database.keep(settings)
            for name in services.control_names():
                services.start(settings, self.running, name)
            for name in services.APIS:
                services.wait(settings, self.running, name)

    def _catalog(self) -> None:
        words: list[str] = []
        for name, kind, path in (
                ('placement', 'placement', ''),
                ('nova', 'compute', '/v2.1'),
                ('glance', 'image', ''),
                ('neutron', 'network', '')):
            port = 'nova-api' if name == 'nova' else name
            words += [name, kind, self.settings.url(port) + path]
        self.python('catalog', [str(HERE / 'catalog.py'), *words])

    def _seed(self) -> None:
        missing = self.settings.run / 'missing-hosts'
        missing.unlink(missing_ok=True)
        try:
            self.python('seed', [str(HERE / 'seed.py'), json.dumps({
                'subnet': self.settings.subnet,
                'network': network.PHYSICAL_NETWORK,
                'guest': str(self.settings.guest),
                'public_key': f'{self.settings.key}.pub',
                'hosts': [compute.LIBVIRT_HOST, *fleet.FLEET],
                'missing': str(missing)})])
        except errors.CloudError as exc:
            if not missing.exists():
                raise
            name = missing.read_text().split()[0]
            raise errors.ServiceError(
                name, 'runs, but its host is not up',
                self.running.tail(name)) from exc

    def python(self, name: str, words: list[str],
               limit_s: float = 900) -> None:
        """Run a script in the cloud's environment with admin credentials."""
        commands.run(self.settings, name,
                     [self.settings.program('python'), *words],
                     self.settings.credentials(), limit_s,
                     watch=self._check_started)

    def _check_ports(self) -> None:
        taken = [f'{name} {self.settings.port(name)}'
                 for name in cloud_settings.PORTS
                 if probes.port_open(self.settings.port(name))]
        if taken:
            raise errors.CloudError(
                'other programs listen on ports of the cloud: '
                f'{", ".join(taken)}; set HPCVIRT_CLOUD_PORT_BASE to choose '
                'others')

    def _check_alive(self) -> None:
        for name in self.dead():
            raise errors.ServiceError(name, 'ended', self.running.tail(name))

    def _check_started(self) -> None:
        for name in self.running.names():
            if not self.running.alive(name):
                raise errors.ServiceError(name, 'ended',
                                          self.running.tail(name))


@contextlib.contextmanager
def _in_thread(job) -> Iterator[None]:  # type: ignore[no-untyped-def]
    """Run a job in a thread while the block runs; both must succeed."""
    failures: list[BaseException] = []

    def work() -> None:
        try:
            job()
        except BaseException as exc:  # noqa: BLE001 - raised again below
            failures.append(exc)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        thread.join()
    if failures:
        raise failures[0]

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

"""Bring the cloud up, look at it, take it down."""

import contextlib
import fcntl
import json
import pathlib
import shutil
import threading
from collections.abc import Iterator

from tools.cloud import commands
from tools.cloud import database
from tools.cloud import environment
from tools.cloud import errors
from tools.cloud import fleet
from tools.cloud import hugepages
from tools.cloud import image
from tools.cloud import node
from tools.cloud import packages
from tools.cloud import processes
from tools.cloud import progress
from tools.cloud import rabbit
from tools.cloud import services
from tools.cloud import settings as cloud_settings
from tools.cloud import waiting
from tools.cloud.config import compute
from tools.cloud.config import control
from tools.cloud.config import network

HERE = pathlib.Path(__file__).resolve().parent
#: Nothing that a service could still write outlives the cloud.
PATIENCE_S = 4.0
ONLINE = pathlib.Path('/sys/devices/system/cpu/online')


class Cloud:
    """One cloud on this machine."""

    def __init__(self, settings: cloud_settings.Settings) -> None:
        self.settings = settings
        self.running = processes.Processes(settings)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep a second ``up`` or ``down`` out."""
        self.settings.state.mkdir(parents=True, exist_ok=True)
        with open(self.settings.state / 'lock', 'w') as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise errors.CloudError(
                    'another command is at work on this cloud; its lock is '
                    f'{self.settings.state / "lock"}') from None
            yield

    def dead(self) -> list[str]:
        """List the services that should run and do not."""
        return [name for name in services.all_names()
                if not self.running.alive(name)]

    def up(self, keep: bool = False) -> None:
        """Bring everything up.

        :param keep: leave what was started when something fails
        """
        packages.ensure(self.settings)
        dead = self.dead()
        if not dead and (self.settings.run / 'complete').exists():
            progress.say('the cloud is up already')
            return
        if len(dead) < len(services.all_names()) or self.leftovers():
            progress.say('clearing what a former run left')
            self.down(quiet=True)
        self.settings.prepare()
        try:
            self._up()
        except BaseException:
            if not keep:
                progress.say('failed; stopping what was started '
                             f'(logs stay in {self.settings.log})')
                self.down(quiet=True)
            raise

    def down(self, quiet: bool = False) -> None:
        """Stop what was started and take every trace away, logs excepted."""
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
                         else 'the cloud was down already')

    def purge(self) -> None:
        """Delete the state directory: caches and logs too."""
        shutil.rmtree(self.settings.state, ignore_errors=True)

    def leftovers(self) -> bool:
        """Tell whether a former run ended without ``down``."""
        return (self.settings.run.exists()
                or (self.settings.state / 'hugepages-before').exists())

    def restart(self, name: str) -> None:
        """Stop and start one service."""
        self._known(name)
        self.running.stop([name])
        self.start(name)

    def start(self, name: str) -> None:
        """Start one service of the control plane or of a compute."""
        self._known(name)
        services.start(self.settings, self.running, name)
        if name in services.APIS:
            services.wait(self.settings, self.running, name)

    def stop(self, name: str, patience_s: float = 15.0) -> None:
        """Stop one service, at once if ``patience_s`` is 0."""
        self._known(name)
        if patience_s:
            self.running.stop([name], patience_s)
        else:
            self.running.kill(name)

    def _known(self, name: str) -> None:
        known = [*services.control_names(), *services.compute_names(),
                 services.SPARE]
        if name not in known:
            raise errors.CloudError(
                f'no service {name!r}; there are ' + ', '.join(known))

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
        with progress.step('database and messages are up'):
            rabbit.start(settings, self.running)
            database.start(settings, self.running)
            rabbit.wait(settings, self.running)
        with _beside(lambda: node.start(settings, self.running)):
            known = database.fill(settings)
        progress.say('hypervisor node is up')
        self._start_control(known)
        with progress.step('computes are up'):
            for name in services.compute_names():
                services.start(settings, self.running, name)
            self._seed()
        self._check_alive()
        (settings.run / 'complete').touch()
        progress.say(f'the cloud is up: {settings.url("keystone")}/v3, '
                     f'logs in {settings.log}')

    def _start_control(self, known: bool) -> None:
        settings = self.settings
        with progress.step('APIs, conductor and scheduler are up'):
            # The others ask Keystone for a token when they start, and end
            # if there is none to have.
            services.start(settings, self.running, 'keystone')
            services.wait(settings, self.running, 'keystone')
            if not known:
                self._catalog()
                database.keep(settings)
            for name in services.control_names():
                services.start(settings, self.running, name)
            for name in services.APIS:
                services.wait(settings, self.running, name)

    def _catalog(self) -> None:
        words = [self.settings.password]
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
                name, 'runs but does not report its host',
                self.running.tail(name)) from exc

    def python(self, name: str, words: list[str],
               seconds: float = 900) -> None:
        """Run a script in the cloud's environment as its administrator."""
        commands.run(self.settings, name,
                     [self.settings.program('python'), *words],
                     self.settings.credentials(), seconds,
                     watch=self._check_started)

    def _check_ports(self) -> None:
        taken = [f'{name} {self.settings.port(name)}'
                 for name in cloud_settings.PORTS
                 if waiting.port_open(self.settings.port(name))]
        if taken:
            raise errors.CloudError(
                'somebody else listens on ports of ours (choose others by '
                'HPCVIRT_CLOUD_PORT_BASE): ' + ', '.join(taken))

    def _check_alive(self) -> None:
        for name in self.dead():
            raise errors.ServiceError(name, 'ended',
                                      self.running.tail(name))

    def _check_started(self) -> None:
        for name in self.running.names():
            if not self.running.alive(name):
                raise errors.ServiceError(name, 'ended',
                                          self.running.tail(name))


@contextlib.contextmanager
def _beside(job) -> Iterator[None]:  # type: ignore[no-untyped-def]
    """Run a job in a thread beside the block; both must end well."""
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

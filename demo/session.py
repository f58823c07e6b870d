# SPDX-License-Identifier: Apache-2.0

"""An embedded Nova with the fleet, its flavors and its guests."""

import logging
import unittest
from collections.abc import Callable
from collections.abc import Mapping
from typing import Any

from demo import command
from demo import fleet
from demo import strategies
from hpcvirt.conf import weights
from testing import ledger
from testing import libvirt
from testing import nova
from testing import planned

#: Options for all strategies, as group, name and value. No periodic task
#: runs here; in a cloud nova-compute reports every minute that guests have
#: started, so that IoOpsWeigher no longer counts them as building.
_OPTIONS = (
    ('filter_scheduler', 'io_ops_weight_multiplier', 0.0),
    (None, 'report_interval', 3600),
    (None, 'service_down_time', 7200),
)

#: How a request may end.
ENDS = ('ACTIVE', 'ERROR')


class Broken(Exception):
    """Nova or the demonstration failed."""


class Session(nova.EmbeddedNova):
    """A Nova with the hosts and flavors of some plans."""

    plans: tuple[fleet.Plan, ...] = ()

    def setUp(self) -> None:
        weights.register_opts(nova.CONF)
        super().setUp()
        self.use_as_cloud()
        self.reasons = Reasons()
        logger = logging.getLogger('hpcvirt.nova.filters')
        logger.addHandler(self.reasons)
        self.addCleanup(logger.removeHandler, self.reasons)
        self.documents = [command.plan(each) for each in self.plans]
        self.flavors = {}
        for document in self.documents:
            for flavor in document['flavors']:
                self.flavors[flavor['name']] = flavor
        self.add_machines(*machines(self.documents))
        self.steps = [command.apply(each) for each in self.plans]
        self.flavor_of: dict[str, str] = {}
        self.ids = {flavor['name']: flavor['id']
                    for flavor in self.api.get_flavors()}

    def ask(self, flavor: str, name: str, host: str | None = None,
            ) -> dict[str, Any]:
        """Request a guest and wait until it is ACTIVE or in ERROR.

        :param flavor: name of the flavor
        :param name: name of the server
        :param host: the host on which it must start; None for any
        """
        more: dict[str, object] = {} if host is None else {'host': host}
        server = self.request(self.ids[flavor], name=name,
                              ports=self.ports(flavor), **more)
        self.flavor_of[server['id']] = flavor
        return self.wait_for(server, ENDS)

    def ports(self, flavor: str) -> list[str]:
        """Create the ports that a guest of a flavor needs."""
        wanted = ('hw:pci_numa_affinity_policy'
                  in self.flavors[flavor]['extra_specs'])
        return [self.create_sriov_port(fleet.PHYSNET)] if wanted else []

    def ledgers(self) -> dict[str, ledger.Ledger]:
        """Return the ledger of each host."""
        return {name: self.ledger(name) for name in self.connections}


class Reasons(logging.Handler):
    """A handler that keeps the messages of HPCTopologyFilter about hosts."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self._messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno == logging.DEBUG:
            self._messages.append(record.getMessage())

    def take(self) -> list[str]:
        """Return the messages since the last call."""
        messages, self._messages = self._messages, []
        return messages


def machines(documents: list[dict[str, Any]]) -> list[libvirt.Machine]:
    """Configure the hosts of plans.

    :raises Broken: if two plans need different settings of a host
    """
    found: dict[str, libvirt.Machine] = {}
    for document in documents:
        for name in document['host_config']:
            config = document['host_config'][name]
            machine = planned.machine(
                fleet.read(name), document, fleet.VFS_PER_DEVICE)
            other = found.get(name)
            if other is not None and machine.host != other.host:
                raise Broken(f'{name}: plans need different pages')
            if other is None or config['pci_device_spec']:
                found[name] = machine
    return list(found.values())


def run(strategy: str, plans: tuple[fleet.Plan, ...],
        job: Callable[[Session], dict[str, Any]]) -> dict[str, Any]:
    """Run a job on a new embedded Nova.

    :param strategy: a key of :data:`demo.strategies.STRATEGIES`
    :returns: the result of the job
    :raises Broken: if the job failed
    """
    chosen = strategies.STRATEGIES[strategy]
    outcome: dict[str, Any] = {}

    def run_test(session: Session) -> None:
        outcome.update(job(session))

    attributes: Mapping[str, Any] = {
        'plans': plans,
        'AVAILABLE_FILTERS': chosen.available_filters,
        'ENABLED_FILTERS': chosen.enabled_filters,
        'WEIGHT_CLASSES': chosen.weight_classes,
        'OPTIONS': (*_OPTIONS, *chosen.options),
        'runTest': run_test,
    }
    result = unittest.TestResult()
    type('Session', (Session,), dict(attributes))('runTest').run(result)
    for _, trace in (*result.errors, *result.failures):
        raise Broken(trace)
    return outcome

# SPDX-License-Identifier: Apache-2.0

"""Compare the verdicts of explain with nova-scheduler on random requests."""

import collections
import itertools
import random
from typing import ClassVar

import fixtures
from nova import context as nova_context
from nova import objects
from nova.scheduler.client import report
from oslo_messaging.rpc import dispatcher

from hpcvirt import exception
from hpcvirt.model import flavor as flavor_model
from hpcvirt.nova_live import boot_request as requests
from hpcvirt.nova_live import judging
from hpcvirt.nova_live import view as views
from testing import machines
from testing import nova
from tests.functional import base

SEED = 20261124
REQUESTS = 10

TRAITS = ('CUSTOM_RED', 'CUSTOM_BLUE')
MAX_HOSTS = 5

#: A key, the share of the flavors that have it, and its values.
SPECS = (
    ('hw:cpu_policy', 0.8, ('dedicated', 'dedicated', 'shared')),
    ('hw:cpu_thread_policy', 0.3, ('prefer', 'isolate', 'require')),
    ('hw:numa_nodes', 0.6, ('1', '2', '2', '4')),
    ('hw:mem_page_size', 0.7, ('2048', '2048', 'large', 'small', 'any')),
    ('hw:emulator_threads_policy', 0.1, ('isolate', 'share')),
    ('pci_passthrough:alias', 0.3, ('fast:1', 'fast:2', 'fast:4')),
    ('hw:pci_numa_affinity_policy', 0.3, ('required', 'preferred',
                                          'socket')),
    ('trait:CUSTOM_RED', 0.08, ('required', 'forbidden')),
    ('trait:CUSTOM_BLUE', 0.08, ('required', 'forbidden')),
    ('aggregate_instance_extra_specs:kind', 0.1, ('this', 'other')),
    ('resources:CUSTOM_SLOT', 0.05, ('1', '2')),
    ('hpcvirt:exclusive_cells', 0.1, ('true',)),
    ('hpcvirt:numa_scope', 0.1, ('socket',)),
)

IMAGE = (
    ('hw_numa_nodes', 0.2, ('1', '2')),
    ('hw_mem_page_size', 0.2, ('2048', 'small')),
    ('hw_cpu_policy', 0.2, ('dedicated',)),
    ('trait:CUSTOM_RED', 0.1, ('required',)),
)


def some(dice, table):
    return {key: dice.choice(values) for key, share, values in table
            if dice.random() < share}


class AgreementTest(base.HPCNova):
    """One random fleet, and requests to it.

    ``benchmarks/explain_agreement.py`` changes the class attributes and reads
    the tally, which is that of all tests.
    """

    ENABLED_FILTERS = (*nova.USUAL_FILTERS, 'HPCTopologyFilter',
                       'AggregateInstanceExtraSpecsFilter')
    OPTIONS = (
        base.PCI_ALIAS,
        ('scheduler', 'enable_isolated_aggregate_filtering', True),
        # Alternates are all hosts that pass.
        ('scheduler', 'max_attempts', MAX_HOSTS + 1),
    )
    tally: ClassVar = collections.Counter()
    seed = SEED
    requests = REQUESTS
    most_hosts = 2
    #: Whether Placement is asked why a host is no candidate.
    reasons = True

    def setUp(self):
        super().setUp()
        self.dice = random.Random(self.seed)
        self.flags(group='compute',
                   packing_host_numa_cells_allocation_strategy=(
                       self.dice.random() < 0.3))
        # The records of the hosts are read once for all requests.
        self.flags(service_down_time=100_000)
        # The second request to Placement takes half of the time.
        self.flags(disable_fallback_pcpu_query=bool(self.seed % 4),
                   group='workarounds')
        self.differences = []
        if not self.reasons:
            self.useFixture(fixtures.MonkeyPatch(
                'hpcvirt.nova_live.candidates._that_meet', lambda *_: set()))

    def a_machine(self, name):
        dice = self.dice
        cells = dice.choice((1, 2, 2, 4))
        return machines.build(
            name, cells=cells, cores=dice.choice((2, 4, 8)),
            threads=dice.choice((1, 2)),
            sockets=dice.choice((None, 1)),
            pages={2048: [dice.choice((64, 512, 1024))
                          for _ in range(cells)]},
            vfs={cell: dice.choice((1, 2)) for cell in range(cells)
                 if dice.random() < 0.4},
            housekeeping_cores=dice.choice((0, 1)))

    def a_fleet(self):
        dice = self.dice
        names = [f'node{number}' for number
                 in range(dice.randrange(2, self.most_hosts + 1))]
        self.add_machines(*map(self.a_machine, names))
        self._create_resource_class('CUSTOM_SLOT')
        for trait in TRAITS:
            self._create_trait(trait)
        for name in names:
            uuid = self._get_provider_uuid_by_name(name)
            self._set_provider_traits(uuid, [
                *self._get_provider_traits(uuid),
                *(trait for trait in TRAITS if dice.random() < 0.4)])
        for name, metadata in (
                ('zone', {'availability_zone': 'az1'}),
                ('kind', {'kind': 'this'}),
                ('kept', {'trait:CUSTOM_RED': 'required'})):
            aggregate = self.api.post_aggregate({'aggregate': {'name': name}})
            for host in names:
                if dice.random() < 0.2:
                    self.api.add_host_to_aggregate(aggregate['id'], host)
            self.api.post_aggregate_action(aggregate['id'], {
                'set_metadata': {'metadata': metadata}})
        report.report_client_singleton().clear_provider_cache()
        for _ in range(dice.randrange(2, 2 + self.most_hosts)):
            self.boot(self.create_hpc_flavor(
                pcpus=dice.choice((1, 2)), mib=dice.choice((64, 256))),
                status=('ACTIVE', 'ERROR'))
        # nova-compute removes the inventories that are not its own.
        for name in names:
            if dice.random() < 0.5:
                self._set_inventory(self._get_provider_uuid_by_name(name), {
                    'resource_class': 'CUSTOM_SLOT', 'total': 1})
        if dice.random() < 0.4:
            service = self.api.get_services(host=dice.choice(names))[0]
            self.api.put_service(service['id'], {'status': 'disabled'})

    def a_request(self, context):
        dice = self.dice
        while True:
            flavor = flavor_model.Flavor(
                'random', dice.choice((1, 1, 2, 2, 2, 4, 4, 6, 12)),
                dice.choice((32, 64, 64, 128, 128, 256, 1024)), 0,
                some(dice, SPECS))
            image = some(dice, IMAGE) if dice.random() < 0.3 else {}
            try:
                request = requests.new(
                    context, requests.flavor_of(flavor),
                    {'disk_format': 'raw', 'properties': image})
            except exception.InvalidInput:
                continue
            request.spec.project_id = request.spec.user_id = 'someone'
            if dice.random() < 0.15:
                request.spec.availability_zone = 'az1'
            if dice.random() < 0.1:
                request.spec.ignore_hosts = ['node0']
            return request

    def scheduled(self, spec):
        """Ask nova-scheduler; return the hosts that pass, best first."""
        context = nova_context.get_admin_context()
        try:
            (selections,) = self.scheduler.manager.select_destinations(
                context, spec_obj=spec, instance_uuids=[spec.instance_uuid],
                return_objects=True, return_alternates=True)
        except dispatcher.ExpectedException:
            # No valid host.
            return []
        except TypeError:
            # Nova crashes if Placement refuses the request as a whole, such
            # as one for a trait that it forbids, too.
            return []
        report.report_client_singleton().delete_allocation_for_instance(
            context, spec.instance_uuid, force=True)
        return [selection.service_host for selection in selections]

    def compare(self, view):
        request = self.a_request(view.context)
        chosen = self.scheduled(objects.RequestSpec.obj_from_primitive(
            request.spec.obj_to_primitive(), view.context))
        verdicts = {item.name: item for item in judging.judge(view, request)}
        fitting = {name for name, item in verdicts.items() if item.fits}
        self.tally['requests'] += 1
        self.tally['that fit on a host'] += bool(fitting)
        weights = [verdicts[name].weight for name in chosen]
        if fitting != set(chosen) or any(
                later > earlier + 1e-6 for earlier, later
                in itertools.pairwise(weights)):
            self.tally['differences'] += 1
            self.differences.append((
                self.seed, request.flavor, chosen, {
                    name: (item.fits, item.weight, item.code, item.reason)
                    for name, item in verdicts.items()}))
        for item in verdicts.values():
            self.assertEqual(item.fits, item.reason is None)

    def test_explain_says_what_the_scheduler_does(self):
        self.a_fleet()
        view = views.read()
        self.assertEqual({}, view.fleet.broken)
        for _ in range(self.requests):
            self.compare(view)
        self.assertEqual([], self.differences)

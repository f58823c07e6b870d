# SPDX-License-Identifier: Apache-2.0

"""The files of every deployer give Nova the hosts that the plan counts on.

They are read with the options of Nova itself, and its functions count.
"""

import json
import random
import tempfile
import unittest

from nova import conf
from oslo_config import cfg

from hpcvirt import exception
from hpcvirt.deployment import formats
from hpcvirt.deployment import nova_conf
from hpcvirt.deployment import read_back
from hpcvirt.deployment import written_files
from hpcvirt.flavors import compiled_flavor
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from tests.builders import hosts
from tests.builders import random_fleets
from tests.functional import mixed_fleets
from tests.functional import planned_nova


def read(text):
    """Read the options of a service of Nova."""
    found = cfg.ConfigOpts()
    for module in (conf.base, conf.compute, conf.pci, conf.scheduler):
        module.register_opts(found)
    with tempfile.NamedTemporaryFile('w', suffix='.conf') as file:
        file.write(text)
        file.flush()
        found([], project='nova', default_config_dirs=[],
              default_config_files=[file.name])
    return found


def make_host(planned, own, aliases):
    """Make the host of Nova that the options of a nova-compute describe."""
    return planned_nova.ComputeHost(planned.host, {
        'cpu_dedicated_set': own.compute.cpu_dedicated_set or '',
        'cpu_shared_set': own.compute.cpu_shared_set or '',
        'reserved_host_memory_mb': own.reserved_host_memory_mb,
        'reserved_host_cpus': own.reserved_host_cpus,
        'reserved_huge_pages': [
            {key: int(value) for key, value in item.items()}
            for item in own.reserved_huge_pages or ()],
        'cpu_allocation_ratio': own.initial_cpu_allocation_ratio,
        'ram_allocation_ratio': own.initial_ram_allocation_ratio,
        'pages': {str(cell): pages for cell, pages
                  in planned.settings.pages.items()},
        'pci_device_spec': [json.loads(spec) for spec in own.pci.device_spec],
        'device_counts': planned.settings.device_counts,
        'pci_alias': aliases})


class WrittenFilesTest(unittest.TestCase):
    def plan(self, seed):
        document = random_fleets.make_document(random.Random(seed),
                                               pack_cells=seed % 2 == 1)
        return document, random_fleets.plan(document)

    def check(self, seed):
        """Count under the files of each deployer; return how many fit."""
        document, plan = self.plan(seed)
        counted = 0
        known = {}
        for deployer, write in formats.FORMATS.items():
            files = write(plan)
            read_back.check(deployer, files, plan)
            written = written_files.sort_files(deployer, files, plan)
            aliases = [json.loads(text) for text in read(
                written.services['nova-api'].text).pci.alias]
            scheduler = read(written.services['nova-scheduler'].text)
            for planned in plan.hosts:
                files_of_host = written.hosts[planned.name]
                own = read(files_of_host.conf.text)
                traits = self.read_traits(files_of_host.provider.values)
                key = (files_of_host.conf.text, str(aliases),
                       planned.name, frozenset(traits))
                if key not in known:
                    known[key] = self.count(
                        plan, make_host(planned, own, aliases),
                        self.find_demand(document, planned, scheduler),
                        traits, own, scheduler)
                self.assertEqual(
                    {row.flavor.name: row.per_host[planned.name]
                     for row in plan.flavors}, known[key],
                    f'seed {seed}, {deployer}, {planned.name}')
                counted += sum(known[key].values())
        return counted

    @staticmethod
    def read_traits(document):
        return {trait for provider in (document or {}).get('providers', ())
                for trait in provider['traits']['additional']}

    @staticmethod
    def find_demand(document, planned, scheduler):
        """Return the traits that the aggregate of a host demands."""
        own = document.classes[planned.fleet_class]
        enabled = scheduler.scheduler.enable_isolated_aggregate_filtering
        return set(own.traits) if own.isolated and enabled else set()

    def count(self, plan, nova, demanded, traits, own, scheduler):
        found = {}
        packing = 'packing_host_numa_cells_allocation_strategy'
        conf.CONF.set_override(packing, getattr(own.compute, packing),
                               'compute')
        self.addCleanup(conf.CONF.clear_override, packing, 'compute')
        for row in plan.flavors:
            guest = compiled_flavor.make(row.flavor)
            asks = scheduler.filter_scheduler.pci_in_placement
            lost = (bool(guest.shape.devices) and asks
                    and not own.pci.report_in_placement)
            found[row.flavor.name] = 0
            if lost or guest.required - traits or demanded - guest.required:
                continue
            kept = nova.snapshot()
            found[row.flavor.name] = nova.fill(mixed_fleets.plain(row.flavor))
            nova.restore(kept)
        return found

    def test_random_fleets(self):
        self.assertGreater(sum(map(self.check, range(3))), 300)

    def test_periodic_more_random_fleets(self):
        for seed in (*range(3, 8), *range(100, 160)):
            self.check(seed)

    def test_equal_cells_of_unequal_ones_are_counted_as_nova_does(self):
        equal = 0
        for cores in ((22, 20, 22, 22, 20, 22), (5, 4, 5, 4, 5, 5),
                      (4, 5, 4, 5), (6, 5, 6, 6, 6, 5)):
            for affinity in ('preferred', 'required'):
                host = hosts.build(
                    cells=len(cores), cores=cores, sockets=2, mib=65536,
                    gpus={0: 1, 2: 1, 3: 1, len(cores) - 1: 1}, name='n')
                profile = profiles.build({
                    'base': 'dense', 'devices': [{
                        'kind': 'whole', 'vendor_id': '10de',
                        'product_id': '20b0', 'alias': 'gpu',
                        'per_instance': 'share', 'affinity': affinity}]}, 'p')
                plan = planner.plan([host], profile)
                (planned,) = plan.hosts
                own = read('\n'.join(nova_conf.compute(planned, plan)))
                nova = make_host(planned, own, planned.settings.pci_alias)
                for row in plan.flavors:
                    kept = nova.snapshot()
                    self.assertEqual(
                        row.per_host['n'],
                        nova.fill(mixed_fleets.plain(row.flavor)),
                        (cores, affinity, row.flavor.name))
                    nova.restore(kept)
                    equal += any(share.words.endswith('equal cells')
                                 for share in row.shares.values())
        self.assertGreater(equal, 0)

    def test_files_without_reports_are_refused(self):
        for seed in range(40):
            _, plan = self.plan(seed)
            cards = [host for host in plan.hosts
                     if host.settings.pci_device_spec
                     and not host.settings.has_sets]
            if plan.has_sets and cards:
                break
        files = [type(file)(file.path, file.text.replace(
            'report_in_placement = true', '')) if (
                file.path.startswith(cards[0].name)) else file
            for file in formats.write_hosts(plan)]
        with self.assertRaisesRegex(
                exception.InvalidInput, f'^{cards[0].name}/etc/nova/.*: gives '
                'report_in_placement = False, and the plan says True'):
            read_back.check('files', files, plan)

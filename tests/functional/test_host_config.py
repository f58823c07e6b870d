# SPDX-License-Identifier: Apache-2.0

"""Nova reads the configuration of hosts as the plan means it.

The files are read by oslo.config with the options of Nova, by Nova's parsers
of devices and of provider.yaml, and by the checks with which nova-compute
starts.
"""

import collections
import dataclasses
import sys
import types
import unittest
from unittest import mock

import nova.conf
import yaml
from nova import exception
from nova import objects
from nova import test
from nova.compute import manager
from nova.compute import pci_placement_translator
from nova.compute import provider_config
from nova.objects import fields
from nova.pci import request
from nova.pci import whitelist
from nova.virt import hardware
from nova.virt.libvirt import driver
from oslo_config import cfg
from placement.conf import placement as placement_conf

from hpcvirt import exception as hpcvirt_exception
from hpcvirt.deployment import formats
from hpcvirt.deployment import host_files
from hpcvirt.deployment import read_back
from hpcvirt.deployment import tree
from hpcvirt.fit import device_sets
from hpcvirt.flavors import device_choice
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from tests.builders import folders
from tests.builders import hosts
from tests.builders import wired

CONF = nova.conf.CONF

#: What these checks use of a driver, which itself needs libvirt.
DRIVER = types.SimpleNamespace(capabilities={'supports_pcpus': True})
#: Nova 34 has moved this check from the manager to the driver.
MOVED = '_validate_pinning_configuration'
VALIDATE = getattr(driver.LibvirtDriver, MOVED, None) or getattr(
    manager.ComputeManager, MOVED)


def shipped():
    """Plan every machine with every shipped profile that suits it."""
    choices = [profiles.build(yaml.safe_load(path.read_text()), path.name)
               for path in sorted(
                   (hosts.TOPOLOGIES.parent / 'profiles').glob('*.yaml'))]
    for host in hosts.shipped():
        for profile in choices:
            try:
                yield planner.plan([host], dataclasses.replace(
                    profile, smallest_cores=None, extra_specs=(
                        ('trait:CUSTOM_HPC', 'required'),)))
            except hpcvirt_exception.InvalidInput:
                # The machine has no GPUs.
                if not profile.devices:
                    raise


class FilesTest(unittest.TestCase):
    def setUp(self):
        self.addCleanup(CONF.reset)
        self.addCleanup(request.get_alias_from_config.cache_clear)
        self.folder = folders.make(self)

    def write(self, path, text):
        place = self.folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        return place

    def test_nova_reads_what_the_plan_says(self):
        plans = list(shipped())
        self.assertLess(30, len(plans))
        for number, plan in enumerate(plans):
            with self.subTest(plan.hosts[0].name, profile=number):
                self.check(plan, number)

    def check(self, plan, number):
        (planned,) = plan.hosts
        files = {file.path: file.text
                 for file in host_files.files(planned, plan)}
        CONF([], project='nova', default_config_files=[str(self.write(
            f'{number}.conf', files[host_files.NOVA_CONF]))],
            default_config_dirs=[])
        settings = planned.settings
        self.assertEqual(set(settings.dedicated),
                         hardware.get_cpu_dedicated_set())
        self.assertEqual(set(settings.shared),
                         hardware.get_cpu_shared_set() or set())
        self.assertEqual(settings.reserved_host_memory_mb,
                         CONF.reserved_host_memory_mb)
        reserved = hardware.numa_get_reserved_huge_pages()
        self.assertEqual(
            {(item.node, item.size): item.count
             for item in settings.reserved_huge_pages},
            {(node, size): count for node, pages in reserved.items()
             for size, count in pages.items()})
        self.assertEqual(
            plan.hosts[0].profile.pack_cells,
            CONF.compute.packing_host_numa_cells_allocation_strategy)
        specs = whitelist.Whitelist(CONF.pci.device_spec).specs
        self.assertEqual([True] * len(planned.offered), [
            spec.address.match(item.device.address, None) for spec, item
            in zip(specs, planned.offered, strict=True)])
        wanted = plan.hosts[0].profile.device
        request.get_alias_from_config.cache_clear()
        names = [wanted.alias] if wanted and wanted.has_alias else []
        if plan.hosts[0].profile.has_sets:
            names = [alias['name'] for alias in settings.pci_alias]
        self.assertEqual(names, list(request.get_alias_from_config()))
        driver.LibvirtDriver._check_cpu_set_configuration(DRIVER)
        folder = self.folder / str(number)
        self.write(f'{number}/hpcvirt.yaml', files[host_files.PROVIDER])
        (found,) = provider_config.get_provider_configs(str(folder)).values()
        self.assertEqual(['CUSTOM_HPC'], found['traits']['additional'])

    def test_options_that_are_read_back_are_those_of_nova(self):
        for group, options in read_back.OPTIONS.items():
            owner = None if group == 'DEFAULT' else group
            for option in options:
                theirs = CONF._get_opt_info(option.dest, owner)['opt']
                # A bound of Nova's type does not change what is read.
                self.assertEqual(
                    (type(option), option.multi, theirs.default or None),
                    (type(theirs), theirs.multi, option.default or None),
                    option.name)

        theirs = {option.dest: option for option
                  in placement_conf.placement_opts}
        for option in read_back.PLACEMENT_OPTIONS:
            self.assertEqual(
                (type(option), option.default),
                (type(theirs[option.dest]), theirs[option.dest].default))

    def load(self, *paths):
        CONF([], project='nova', default_config_dirs=[],
             default_config_files=[str(self.folder / path) for path in paths])
        request.get_alias_from_config.cache_clear()

    def test_nova_requests_one_device_for_each_place_of_a_set(self):
        vfs = wired.tree(name='tree')
        profile = hosts.TOPOLOGIES.parent / 'profiles/gpu-nic.yaml'
        shipped_profile = profiles.build(
            yaml.safe_load(profile.read_text()), profile.name)
        for host, choices in (
                (hosts.named('xeon-2s-20c-smt-8gpu'), shipped_profile),
                (vfs, dataclasses.replace(profiles.DENSE, devices=(
                    dataclasses.replace(
                        shipped_profile.devices[0], product_id='2330'),
                    dataclasses.replace(
                        hosts.VFS, per_instance=None, alias='ib',
                        near=device_choice.Nearness.SWITCH))))):
            with self.subTest(host.name):
                self.check_sets(planner.plan([host], choices))

    def check_sets(self, plan):
        (planned,) = plan.hosts
        for file in formats.write_hosts(plan):
            self.write(file.path, file.text)
        self.load('controllers/nova.conf')
        self.assertTrue(CONF.filter_scheduler.pci_in_placement)
        self.assertTrue(CONF.workarounds.disable_fallback_pcpu_query)
        self.assertEqual(1000, CONF.scheduler.max_placement_results)
        requests = {}
        for row in plan.flavors:
            # Nova refuses aliases with several specs, or without ids.
            found = request.get_pci_requests_from_flavor(objects.Flavor(
                extra_specs=row.flavor.extra_specs)).requests
            self.assertEqual([device.alias for device in row.guest.devices],
                             [each.alias_name for each in found])
            self.assertEqual({1}, {each.count for each in found})
            self.assertEqual({row.flavor.extra_specs[
                'hw:pci_numa_affinity_policy']},
                {each.numa_policy for each in found})
            requests[row.guest.device_set] = found
        self.load(f'{planned.name}/{host_files.NOVA_CONF}')
        self.assertTrue(CONF.pci.report_in_placement)
        specs = whitelist.Whitelist(CONF.pci.device_spec).specs
        places = collections.Counter()
        for spec, item in zip(specs, planned.offered, strict=True):
            tags = spec.get_tags()
            kinds = {each.kind for each
                     in device_sets.parse(tags[device_sets.TAG])}
            traits = pci_placement_translator.get_traits(tags['traits'])
            for kind, found in requests.items():
                own = [each for each in found
                       if {each.spec[0]['traits']} <= traits]
                # The claim compares the ids, and Placement the traits.
                if kind is not None:
                    self.assertEqual(kind in kinds, bool(own))
                self.assertLessEqual(
                    {(each.spec[0]['vendor_id'], each.spec[0]['product_id'])
                     for each in own}, {(item.device.vendor_id,
                                         item.wanted.product_id)})
                places.update(each.alias_name for each in own)
        self.assertEqual(
            {device.alias for row in plan.flavors
             for device in row.guest.devices}, set(places))
        conf = cfg.ConfigOpts()
        placement_conf.register_opts(conf)
        conf([], default_config_dirs=[], default_config_files=[
            str(self.folder / 'controllers/placement.conf')])
        self.assertEqual((1000, 'breadth-first'), (
            conf.placement.max_allocation_candidates,
            conf.placement.allocation_candidates_generation_strategy))

    def read(self, *words):
        """Read nova.conf and the folder, as the service would."""
        conf = cfg.ConfigOpts()
        conf.register_opts([cfg.StrOpt('host'), cfg.MultiStrOpt('several')])
        conf(list(words), project='nova',
             default_config_files=[str(self.folder / 'nova.conf')],
             default_config_dirs=[str(self.folder / 'nova.conf.d')])
        return conf

    def test_a_file_that_the_command_line_names_wins(self):
        path = self.write('nova.conf', '[DEFAULT]\nhost = own\nseveral = a\n')
        self.write('nova.conf.d/90.conf', '[DEFAULT]\nhost = hpcvirt\n'
                   'several = b\n')
        found = self.read()
        self.assertEqual(('hpcvirt', ['a', 'b']), (found.host, found.several))
        found = self.read('--config-file', str(path))
        self.assertEqual(('own', ['b', 'a']), (found.host, found.several))

    def test_the_document_without_traits_is_valid(self):
        self.write('p/a.yaml', tree.MARK + "\nmeta: {schema_version: '1.0'}\n")
        self.assertEqual({}, provider_config.get_provider_configs(
            str(self.folder / 'p')))


def instance(policy, cpus=()):
    """Build an instance with the cell and the pins that Nova stores."""
    topology = policy and objects.InstanceNUMATopology(cells=[
        objects.InstanceNUMACell(
            id=0, cpuset=set(), pcpuset=set(cpus), memory=512,
            cpu_policy=policy, cpu_pinning={cpu: cpu for cpu in cpus})])
    return objects.Instance(deleted=False, numa_topology=topology,
                            uuid='2f6d1c7e-0000-4000-8000-000000000001')


class ChangeUnderInstancesTest(test.NoDBTestCase):
    """What the page configure-hosts-in-use says of hosts with instances."""

    DEDICATED = fields.CPUAllocationPolicy.DEDICATED
    MIXED = fields.CPUAllocationPolicy.MIXED

    def validate(self, found, **sets):
        self.flags(group='compute', **{
            'cpu_dedicated_set': None, 'cpu_shared_set': None, **sets})
        driver.LibvirtDriver._check_cpu_set_configuration(DRIVER)
        VALIDATE(types.SimpleNamespace(
            capabilities=DRIVER.capabilities, driver=DRIVER), [found])

    def refuses(self, found, **sets):
        self.assertRaises(exception.InvalidConfiguration, self.validate,
                          found, **sets)

    def test_sets_that_overlap_and_older_options_are_refused(self):
        self.refuses(instance(None), cpu_dedicated_set='0-3',
                     cpu_shared_set='3')
        for option, value in (('reserved_host_cpus', 1),
                              ('vcpu_pin_set', '0-3')):
            self.flags(**{option: value})
            self.refuses(instance(None), cpu_dedicated_set='0-3')
            self.flags(**{option: None})

    def test_instances_need_the_set_that_they_use(self):
        self.refuses(instance(None), cpu_dedicated_set='0-3')
        self.refuses(instance(self.DEDICATED, [1]), cpu_shared_set='0-3')
        self.refuses(instance(self.MIXED, [1]), cpu_dedicated_set='0-3')
        self.refuses(instance(self.MIXED, [1]), cpu_shared_set='0-3')
        self.validate(instance(self.MIXED, [1]), cpu_dedicated_set='0-3',
                      cpu_shared_set='4')

    @mock.patch.object(sys.modules[VALIDATE.__module__].LOG, 'warning',
                       autospec=True)
    def test_a_pin_outside_of_the_set_is_only_a_warning(self, warning):
        self.validate(instance(self.DEDICATED, [1]), cpu_dedicated_set='1-3')
        warning.assert_not_called()
        self.validate(instance(self.DEDICATED, [1]), cpu_dedicated_set='2-3')
        self.assertIn('Instance is pinned', warning.call_args.args[0])

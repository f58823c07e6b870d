# SPDX-License-Identifier: Apache-2.0

"""Nova reads the configuration of hosts as the plan means it.

The files are read by oslo.config with the options of Nova, by Nova's parsers
of devices and of provider.yaml, and by the checks with which nova-compute
starts.
"""

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
from nova.compute import provider_config
from nova.objects import fields
from nova.pci import request
from nova.pci import whitelist
from nova.virt import hardware
from nova.virt.libvirt import driver
from oslo_config import cfg

from hpcvirt import exception as hpcvirt_exception
from hpcvirt.deployment import host_files
from hpcvirt.deployment import tree
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from tests.builders import folders
from tests.builders import hosts

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
        self.assertEqual([wanted.alias] if wanted and wanted.has_alias else [],
                         list(request.get_alias_from_config()))
        driver.LibvirtDriver._check_cpu_set_configuration(DRIVER)
        folder = self.folder / str(number)
        self.write(f'{number}/hpcvirt.yaml', files[host_files.PROVIDER])
        (found,) = provider_config.get_provider_configs(str(folder)).values()
        self.assertEqual(['CUSTOM_HPC'], found['traits']['additional'])

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

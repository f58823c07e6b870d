# SPDX-License-Identifier: Apache-2.0

import dataclasses
import pathlib
import unittest

import yaml

from hpcvirt import exception
from hpcvirt.flavors import device_choice
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile
from hpcvirt.model import shape
from tests.builders import hosts
from tests.builders import refusals

DEFAULT = (pathlib.Path(__file__).parents[3]
           / 'etc/hpcvirt/profiles/default.yaml')


class ProfileTest(unittest.TestCase):
    def assert_refused(self, pattern, **content):
        self.assertRegex(
            refusals.message(self, profile.build, content, 'p.yaml'),
            f'^p.yaml: {pattern}')

    def test_the_files_that_are_shipped_are_the_built_in_profiles(self):
        for name, built_in in profile.BUILT_IN.items():
            path = DEFAULT.with_name(f'{name}.yaml')
            self.assertEqual(built_in, profile.build(
                yaml.safe_load(path.read_text()), str(path)))

    def test_a_file_changes_its_base(self):
        for base, other in profile.BUILT_IN.items():
            found = profile.build({'base': base, 'disk_gib': 7}, 'p.yaml')
            self.assertEqual(dataclasses.replace(other, disk_gib=7), found)
        self.assertEqual(profile.DEFAULT, profile.build(None, 'p.yaml'))
        self.assert_refused('base: must be one of default, dense',
                            base='sparse')
        self.assert_refused('base: must be one of', base=['dense'])

    def test_ordinary_users_can_boot_from_the_disk(self):
        for found in profile.BUILT_IN.values():
            self.assertGreater(found.disk_gib, 0)

    def test_the_file_that_is_shipped_explains_every_key(self):
        content = yaml.safe_load(DEFAULT.read_text())
        self.assertEqual(
            {field.name for field in dataclasses.fields(profile.Profile)},
            set(content))
        text = DEFAULT.read_text()
        for field in dataclasses.fields(device_choice.Devices):
            self.assertRegex(text, f'#   [ -] {field.name}:')

    def test_every_shipped_profile_plans_some_shipped_host(self):
        for path in sorted(DEFAULT.parent.glob('*.yaml')):
            choices = profile.build(yaml.safe_load(path.read_text()),
                                    str(path))
            served = 0
            for host in hosts.shipped():
                try:
                    served += bool(planner.plan([host], choices).flavors)
                except exception.InvalidInput as exc:
                    self.assertIn('no guest fits', str(exc))
            # Only one host has GPUs.
            self.assertGreater(served, 0 if 'gpu' in path.stem else 2,
                               path)

    def test_values_become_what_the_program_uses(self):
        found = profile.build({
            'smt': 'leave', 'page_size': '1G', 'emulator_threads': 'isolate',
            'host_pages_per_cell': {'1G': 2, '2M': 10},
            'devices': [{'ports': 'neutron', 'physical_network': 'net',
                         'affinity': 'socket'}]}, 'p.yaml')
        self.assertIs(profile.SMT.LEAVE, found.smt)
        self.assertEqual(1048576, found.page_size)
        self.assertIs(shape.EmulatorThreads.ISOLATE, found.emulator_threads)
        self.assertEqual(((2048, 10), (1048576, 2)), found.host_pages_per_cell)
        self.assertIs(shape.PCIAffinity.SOCKET, found.device.affinity)

    def test_an_unknown_key_is_named_beside_the_known_ones(self):
        self.assert_refused("unknown key 'pagesize'; known: .*page_size",
                            pagesize='2M')
        self.assert_refused(
            r"devices\[0\]: unknown key 'vendor'; known: .*vendor_id",
            devices=[{'vendor': '15b3'}])

    def test_an_unknown_key_has_a_suggestion(self):
        self.assert_refused(r'.*\(did you mean page_size\?\)', pagesize='2M')
        self.assert_refused(
            r'.*hw:cpu_real_time.*\(did you mean hw:cpu_realtime\?\)',
            extra_specs={'hw:cpu_real_time': 'yes'})

    def test_a_wrong_type_names_the_key_and_what_it_takes(self):
        for key, value, pattern in (
                ('disk_gib', '20', 'must be a whole number'),
                ('disk_gib', -1, 'must be a whole number from 0'),
                ('smt', 'on', 'must be one of use, leave'),
                ('pack_cells', 'yes', 'must be true or false'),
                ('page_size', 2048, 'must be a page size such as 2M'),
                ('page_size', '2MX', 'must be a page size such as 2M'),
                ('page_size', '0M', 'must be a page size such as 2M'),
                ('name_prefix', '', 'must be text'),
                ('name_prefix', 'a b', 'must be text'),
                ('host_pages_per_cell', [1],
                 'must be a mapping of page sizes'),
                ('host_pages_per_cell', {'2M': -1}, 'must be a whole'),
                ('host_pages_per_cell', {'1G': 1, '1024M': 1},
                 'must not name 1024M twice'),
                ('host_steps', 0, 'must be a whole number from 1'),
                ('emulator_threads', 'none', 'must be one of')):
            self.assert_refused(f'{key}: {pattern}', **{key: value})

    def test_devices_of_two_kinds_are_refused(self):
        gpu = {'kind': 'whole', 'alias': 'gpu', 'vendor_id': '10de',
               'product_id': '20b0'}
        self.assert_refused('devices: has 2 entries, but without sets in the '
                            'first, the flavors of a profile have devices of '
                            'one kind',
                            devices=[gpu, {'ports': 'neutron'}])

    def test_values_that_contradict_each_other_are_refused(self):
        self.assert_refused('emulator_threads: share needs',
                            emulator_threads='share', shared_cores_per_cell=0)
        self.assert_refused('devices.ports: alias needs', devices=[{}])
        self.assert_refused('devices.ports: neutron needs',
                            devices=[{'ports': 'neutron'}])

    def test_devices_are_whole_or_a_part(self):
        ids = {'vendor_id': '10de', 'product_id': '20b0'}
        whole = profile.build({'devices': [{
            'kind': 'whole', 'alias': 'gpu', 'per_instance': 'share',
            'affinity': 'required', **ids}]}, 'p.yaml').device
        self.assertIs(device_choice.DeviceKind.WHOLE, whole.kind)
        self.assertIsNone(whole.per_instance)
        vgpu = profile.build({'devices': [{
            'kind': 'vgpu', 'mdev_type': 'nvidia-474', 'vgpus_per_device': 4,
            'traits': ['CUSTOM_A100'], **ids}]}, 'p.yaml').device
        self.assertEqual(('VGPU', ('CUSTOM_A100',)),
                         (vgpu.resource_class, vgpu.traits))
        self.assertFalse(vgpu.has_alias)

    def test_keys_that_a_kind_of_devices_does_not_have_are_refused(self):
        ids = {'vendor_id': '10de', 'product_id': '20b0'}
        whole = {'kind': 'whole', 'alias': 'gpu', **ids}
        vgpu = {'kind': 'vgpu', 'mdev_type': 'nvidia-474',
                'vgpus_per_device': 4, **ids}
        for devices, fault in (
                ({'kind': 'gpu'}, 'kind: must be one of vf, whole, vgpu'),
                ({**ids, 'kind': 'whole'},
                 'alias: whole devices need an alias of'),
                ({**whole, 'alias': 'hpc-vf'}, 'alias: whole devices need'),
                ({'kind': 'whole', 'alias': 'gpu'}, 'vendor_id: is required'),
                ({**whole, 'product_id': None}, 'product_id: is required'),
                ({**whole, 'vfs_per_device': 4},
                 'vfs_per_device: is not a key .* kind whole'),
                ({**whole, 'ports': 'neutron'}, 'ports: is not a key'),
                ({**whole, 'mdev_type': 'a'}, 'mdev_type: is not a key'),
                ({**whole, 'per_instance': 0},
                 'per_instance: must be a whole number from 1 to 32, or '),
                ({**whole, 'per_instance': True}, 'per_instance: must be'),
                ({**whole, 'per_instance': None}, 'per_instance: must be'),
                ({**ids, 'per_instance': 'share'},
                 'per_instance: must be a number with the kind vf'),
                ({**vgpu, 'per_instance': 'share'},
                 'per_instance: must be a number with the kind vgpu'),
                ({**vgpu, 'per_instance': 5},
                 'per_instance: must not be more than devices.vgpus_per'),
                ({**vgpu, 'affinity': 'required'},
                 'affinity: Nova cannot place vGPUs close'),
                ({**vgpu, 'alias': 'gpu'}, 'alias: is not a key .* kind vgpu'),
                ({**vgpu, 'vgpus_per_device': None},
                 'vgpus_per_device: is required'),
                ({**vgpu, 'mdev_type': 'a b'}, 'mdev_type: must be text'),
                ({**vgpu, 'resource_class': 'GPU'},
                 'resource_class: must be text such as VGPU'),
                ({**vgpu, 'traits': 'A'}, 'traits: must be a list'),
                ({**vgpu, 'traits': ['a']}, r'traits\[0\]: must be text'),
                ({'vgpus_per_device': 4},
                 'vgpus_per_device: is not a key .* kind vf')):
            with self.subTest(fault):
                self.assert_refused(rf'devices(\[0\])?.{fault}',
                                    devices=[devices])

    def test_extra_specs_that_vgpus_set_are_refused(self):
        vgpu = {'kind': 'vgpu', 'mdev_type': 'nvidia-474',
                'vgpus_per_device': 4, 'traits': ['CUSTOM_A'],
                'vendor_id': '10de', 'product_id': '20b0'}
        for key, value in (('resources:VGPU', '2'),
                           ('trait:CUSTOM_A', 'forbidden')):
            self.assert_refused(f'extra_specs: {key} is set by devices',
                                devices=[vgpu], extra_specs={key: value})

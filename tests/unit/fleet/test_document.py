# SPDX-License-Identifier: Apache-2.0

import dataclasses
import json
import random
import unittest

from hpcvirt import exception
from hpcvirt import yaml_document
from hpcvirt.fit import devices
from hpcvirt.flavors import profile as profiles
from hpcvirt.fleet import assemble
from hpcvirt.fleet import classes as fleet_classes
from hpcvirt.fleet import count
from hpcvirt.fleet import document
from hpcvirt.fleet import state
from hpcvirt.model import flavor as flavor_model
from hpcvirt.topology import snapshot
from tests.builders import fleets
from tests.builders import hosts

FLAVOR = {'name': 'x', 'vcpus': 4, 'ram_mib': 1024, 'disk_gib': 0,
          'extra_specs': {'hw:numa_nodes': '2', 'hw:mem_page_size': 'large'}}
INSTANCE = {'id': 'a', 'host': 'h', 'flavor': FLAVOR, 'cells': [
    {'id': 1, 'pages': {'2048': 256}}, {'id': 0, 'pages': {'4': 131072}}],
    'cpus': [3], 'devices': ['0000:41:00.1'], 'stays': 'is locked',
    'only_cold': 'is stopped', 'hosts': ['h2']}
HOST = {'topology': snapshot.make_json(hosts.build(name='h'))}


def read(*instances, classes=None, **others):
    return document.read({
        'schema_version': 1, 'classes': classes or {'c': {'hosts': [HOST]}},
        'instances': list(instances), **others}, 'f.yaml')


class FleetDocumentTest(unittest.TestCase):
    def check(self, *cases, take):
        for change, message in cases:
            with self.assertRaisesRegex(exception.InvalidInput,
                                        f'^f.yaml: {message}'):
                take(change)

    def test_the_example_of_the_module_is_read_and_written(self):
        text = document.__doc__.split('::\n', 1)[1].split('\n\nA host')[0]
        found = document.read(yaml_document.value(text, 'f'), 'f')
        self.assertEqual({'gpu': 'gpu.yaml', 'plain': 'default'}, {
            name: own.profile for name, own in found.classes.items()})
        (instance,) = found.instances
        self.assertEqual((1 << 20, 2048), instance.holding.placement.pages_kib)
        self.assertEqual(1, instance.group.most_per_host)
        again = json.loads(''.join(document.format_json(found)))
        self.assertEqual(document.dump(found), again)
        self.assertEqual(found, document.read(again, 'f'))

    def test_an_instance_is_read(self):
        (found,) = read(INSTANCE).instances
        self.assertEqual(
            ((1, 0), {3}, (2048, 4), ('0000:41:00.1',), 'is locked',
             'is stopped', {'h2'}),
            (found.cells, found.holding.cpus,
             found.holding.placement.pages_kib, found.devices,
             found.stays, found.only_cold, found.hosts))

    def test_cpus_may_be_text(self):
        (found,) = read({**INSTANCE, 'cpus': '3,8-10'}).instances
        self.assertEqual({3, 8, 9, 10}, found.holding.cpus)

    def test_what_is_left_out_is_none(self):
        (found,) = read({'id': 'a', 'host': 'h', 'flavor': 'y'}, flavors=[
            {**FLAVOR, 'name': 'y', 'extra_specs': {}}]).instances
        self.assertEqual(((), frozenset(), (), (), None, None, None), (
            found.cells, found.holding.cpus,
            found.holding.placement.pages_kib, found.devices,
            found.stays, found.hosts, found.group))

    def test_sizes_of_pages_have_any_usual_unit(self):
        first, second = INSTANCE['cells']
        for size in ('2048', '2M', '2MB', '2 MiB'):
            with self.subTest(size=size):
                (found,) = read({**INSTANCE, 'cells': [
                    {**first, 'pages': {size: 256}}, second]}).instances
                self.assertEqual(2048, found.holding.placement.pages_kib[0])

    def test_an_error_names_the_instance(self):
        cells = INSTANCE['cells']
        self.check(
            ({'cells': cells[:1]}, '.cells: has 1 host cell for the 2 guest'),
            ({'cells': cells[:1] * 2}, '.cells: has a host cell twice'),
            ({'cells': [{**cells[0], 'pages': {'2048': 3}}, cells[1]]},
             r'.cells\[0\].pages: has 3 pages of 2 MiB, but the 512'),
            ({'cells': [{**cells[0], 'pages': {'2X': 3}}, cells[1]]},
             r'.cells\[0\].pages: must have one page size, in KiB or'),
            ({'cpus': [3, 3]}, '.cpus: has 3 twice'),
            ({'cpus': [-1]}, r'.cpus: \[0\]: must be a whole number'),
            ({'cpus': '3-1'}, ".cpus: CPU list: the range '3-1' runs back"),
            ({'cpus': 3}, '.cpus: must be a list, not 3'),
            ({'host': ''}, ".host: must be text such as node1, not ''"),
            ({'colour': 1}, ": unknown key 'colour'"),
            ({'flavor': 3}, '.flavor: must be a mapping of keys'),
            ({'flavor': {**FLAVOR, 'vcpus': 0}},
             '.flavor: vcpus: must be a whole number'),
            ({'flavor': {**FLAVOR, 'extra_specs': {'hw:numa_nodes': 'x'}}},
             ': flavor x: hw:numa_nodes: '),
            take=self.check_instance)

    def check_instance(self, change):
        try:
            read({**INSTANCE, **change})
        except exception.InvalidInput as exc:
            prefix = 'f.yaml: instances[0]'
            self.assertTrue(str(exc).startswith(prefix), exc)
            raise exception.InvalidInput(
                'f.yaml', str(exc).removeprefix(prefix)) from exc

    def test_server_groups_are_read(self):
        others = [{**INSTANCE, 'id': name} for name in 'bc']
        found = read(INSTANCE, *others, server_groups=[
            {'policy': 'anti-affinity', 'members': ['a', 'c'],
             'max_server_per_host': 2}]).instances
        group = state.ServerGroup(state.Policy.ANTI_AFFINITY,
                                  frozenset('ac'), 2)
        self.assertEqual([group, None, group], [
            instance.group for instance in found])

    def test_an_error_names_the_server_group(self):
        group = {'policy': 'affinity', 'members': ['a']}
        self.check(
            ([{**group, 'policy': 'x'}],
             r'server_groups\[0\].policy: must be one of affinity, anti-'),
            ([{**group, 'members': ['b']}],
             r"server_groups\[0\].members: 'b' is not the id of an instance"),
            ([{**group, 'max_server_per_host': 0}],
             r'server_groups\[0\].max_server_per_host: must be a whole'),
            ([group, group],
             r"server_groups\[1\].members: 'a' also belongs to a server"),
            take=lambda groups: read(INSTANCE, server_groups=groups))

    def test_an_error_names_the_class_and_the_host(self):
        self.check(
            ({'hosts': [3]}, r"classes\['c'\].hosts\[0\]: must be a mapping"),
            ({'hosts': [{'name': 'h'}]},
             r"classes\['c'\].hosts\[0\]: the key 'topology' is missing"),
            ({'hosts': [{'broken': 'x'}]},
             r"classes\['c'\].hosts\[0\]: the key 'name' is missing"),
            ({'hosts': [{**HOST, 'reported': {}}]},
             r"classes\['c'\].hosts\[0\]: reported: the key 'supply' is"),
            ({'hosts': [{'path': 'x'}]},
             r"classes\['c'\].hosts\[0\]: path: must not be a key"),
            ({'hosts': ['x'], 'profile': {'smt': 3}},
             r"classes\['c'\].profile: smt: must be"),
            ({'hosts': ['x'], 'profile': ['x']},
             r"classes\['c'\].profile: must be"),
            ({'hosts': ['x'], 'traits': ['a b']},
             r"classes\['c'\].traits\[0\]: must be text"),
            ({'hosts': ['x'], 'profile_fil': 'x'},
             r"classes\['c'\]: unknown key 'profile_fil'; (?!.*, conf)"),
            ({'hosts': ['x'], 'conf': 'x'},
             r"classes\['c'\].conf: 'x' must not be in a file"),
            # Nova reports these itself, also for hosts of other classes.
            ({'hosts': ['x'], 'traits': ['HW_CPU_X86_AVX2']},
             r"classes\['c'\].traits\[0\]: must be text such as CUSTOM_"),
            take=lambda own: read(classes={'c': own}))

    def test_hosts_have_different_names(self):
        for classes, message in (
                ({'a': {'hosts': [HOST, HOST]}},
                 r"classes\['a'\]: 'h' is the name of two hosts; NAME"),
                ({'a': {'hosts': [HOST]}, 'b': {'hosts': [HOST]}},
                 r"classes\['b'\]: 'h' is the .* \(the other is in a\)"),
                ({'a': {'hosts': [{**HOST, 'count': 2},
                                  {**HOST, 'name': 'h-2'}]}},
                 "'h-2' is the name of two hosts"),
                ({' ': {'hosts': [HOST]}}, 'has a class without a name'),
                ({'a': {'hosts': []}}, 'has no hosts')):
            with self.assertRaisesRegex(exception.InvalidInput, message):
                read(classes=classes).check_names()

    def test_other_versions_and_ids_that_occur_twice_are_refused(self):
        with self.assertRaisesRegex(exception.InvalidInput, 'is 2; this'):
            document.read({'schema_version': 2}, 'f')
        with self.assertRaisesRegex(exception.InvalidInput,
                                    r"instances\[1\].id: 'a' is also the id"):
            read(INSTANCE, INSTANCE)
        with self.assertRaisesRegex(exception.InvalidInput,
                                    'flavors: two flavors have the same name'):
            read(flavors=[FLAVOR, FLAVOR])

    def test_a_class_has_its_names_of_flavors(self):
        own = read(classes={'c': {
            'hosts': [HOST], 'profile': {'base': 'dense', 'smt': 'leave'},
            'name_prefix': 'gpu'}}).classes['c']
        self.assertEqual(
            dataclasses.replace(profiles.DENSE, smt=profiles.SMT.LEAVE,
                                name_prefix='gpu'), own.read_profile('f'))
        with self.assertRaisesRegex(exception.InvalidInput,
                                    "profile: 'p.yaml' is none of default"):
            dataclasses.replace(own, profile='p.yaml').read_profile('f')


class ReportedFleetTest(unittest.TestCase):
    def test_a_fleet_in_use_is_the_same_after_writing_and_reading(self):
        dice = random.Random(20261123)
        for number in range(5):
            fleet, flavors = fleets.a_fleet(dice, 3)
            fleet = fleets.constrained(dice, fleet, cold=True)
            entries = [fleet_classes.HostEntry(
                name=host.name, reported=dataclasses.replace(
                    host.state, closed='it is down' if number == 3 else None,
                    traits=frozenset(('A', 'B')) if number else None))
                for host in fleet.hosts]
            entries.append(fleet_classes.HostEntry(
                name='odd', broken='no record'))
            own = fleet_classes.FleetClass(hosts=tuple(entries))
            written = document.FleetDocument(
                'f', {'c': own}, tuple(flavors), (), tuple(
                    instance for host in fleet.hosts
                    for instance in host.instances))
            text = ''.join(document.format_json(written))
            read_back = document.read(json.loads(text), 'f')
            self.assertEqual(own, read_back.classes['c'])
            found, offered = assemble.make_fleet(read_back)
            self.assertEqual(tuple(flavors), offered)
            self.assertEqual({'odd': 'no record'}, found.broken)
            for before, entry, after in zip(fleet.hosts, entries[:-1],
                                            found.hosts, strict=True):
                self.assertEqual(entry.reported, after.state)
                names = frozenset(read_back.classes['c'].names)
                self.assertEqual(
                    [dataclasses.replace(item, where='', hosts=(
                        names if item.hosts is None else item.hosts))
                     for item in before.instances],
                    [dataclasses.replace(item, where='')
                     for item in after.instances])

    def test_what_operators_wrote_of_a_quarantine_can_be_left_out(self):
        fleet, _ = fleets.with_devices()
        (host, _) = fleet.hosts
        reported = dataclasses.replace(
            host.state, closed='operator by me@here: it swaps',
            quarantined=True)
        (entry,) = document.replace_names(document.FleetDocument('f', {
            'c': fleet_classes.FleetClass(hosts=(fleet_classes.HostEntry(
                name=host.name, reported=reported),))})).classes['c'].hosts
        self.assertTrue(entry.reported.quarantined)
        self.assertNotIn('swaps', entry.reported.closed)

    def test_devices_are_reported(self):
        fleet, _ = fleets.with_devices()
        for pools in (None, (devices.Pool(None, 2, {
                'vendor_id': '8086', 'trusted': 'true', 'alias a': True},
                'uuid'),)):
            (host, _) = fleet.hosts
            reported = dataclasses.replace(
                host.state, supply=dataclasses.replace(
                    host.state.supply, pools=pools))
            entry = fleet_classes.HostEntry(name='h', reported=reported)
            written = document.FleetDocument('f', {
                'c': fleet_classes.FleetClass(hosts=(entry,))})
            read_back = document.read(document.dump(written), 'f')
            self.assertEqual((entry,), read_back.classes['c'].hosts)


class FleetOfClassesTest(unittest.TestCase):
    def test_each_class_is_planned_with_its_profile(self):
        found, flavors = assemble.make_fleet(read(classes={
            'a': {'hosts': [{**HOST, 'name': 'a', 'count': 2}],
                  'profile': 'dense'},
            'b': {'hosts': [{**HOST, 'name': 'b'}], 'name_prefix': 'big'}}))
        self.assertEqual(['a-1', 'a-2', 'b'],
                         [host.name for host in found.hosts])
        self.assertLess(found.hosts[2].state.free.pcpus,
                        found.hosts[0].state.free.pcpus)
        self.assertEqual({'hpc', 'big'}, {
            flavor.name.split('.')[0] for flavor in flavors})
        self.assertIsNone(found.hosts[0].state.traits)

    def test_two_flavors_of_one_name_are_refused(self):
        with self.assertRaisesRegex(exception.InvalidInput,
                                    'class b: plans a flavor hpc.* name_pre'):
            assemble.make_fleet(read(classes={
                'a': {'hosts': [{**HOST, 'name': 'a'}]},
                'b': {'hosts': [{**HOST, 'name': 'b'}],
                      'profile': {'disk_gib': 7}}}))

    def test_traits_of_a_class_let_its_hosts_alone_take_a_flavor(self):
        found, _ = assemble.make_fleet(read(classes={
            'a': {'hosts': [{**HOST, 'name': 'a'}], 'traits': ['CUSTOM_A']},
            'b': {'hosts': [{**HOST, 'name': 'b'}], 'name_prefix': 'b'}}))
        flavor = flavor_model.Flavor('x', 1, 64, 0, {
            'trait:CUSTOM_A': 'required'})
        (item,) = count.count(found, [flavor])
        self.assertEqual([False, True], [
            item.per_host[name] == 0 for name in ('a', 'b')])

    def test_flavors_of_a_class_require_its_traits(self):
        found, flavors = assemble.make_fleet(read(classes={
            'a': {'hosts': [{**HOST, 'name': 'a'}], 'traits': ['CUSTOM_A']},
            'b': {'hosts': [{**HOST, 'name': 'b'}], 'name_prefix': 'b'}}))
        for item in count.count(found, flavors):
            required = item.flavor.extra_specs.get('trait:CUSTOM_A')
            if item.flavor.name.startswith('b.'):
                self.assertIsNone(required)
                self.assertGreater(min(item.per_host.values()), 0)
            else:
                self.assertEqual('required', required)
                self.assertEqual((True, 0), (item.per_host['a'] > 0,
                                             item.per_host['b']))

    def test_an_isolated_class_has_traits_and_an_aggregate_alone(self):
        classes = {'gpu': {'hosts': [HOST], 'isolated': True},
                   'other': {'hosts': [], 'aggregate': 'all, gpu'}}
        with self.assertRaisesRegex(
                exception.InvalidInput,
                r"classes\['gpu'\].isolated: needs traits"):
            read(classes=classes)
        classes['gpu']['traits'] = ['CUSTOM_HPC_GPU']
        with self.assertRaisesRegex(
                exception.InvalidInput,
                r"classes\['gpu'\].aggregate: 'gpu' is also an aggregate of "
                'the class other'):
            read(classes=classes)
        classes['gpu']['aggregate'] = 'gpus, all'
        own = read(classes=classes).classes['gpu']
        self.assertEqual(('gpus', 'all'), own.name_aggregates('gpu'))
        self.assertTrue(fleet_classes.dump_class(own)['isolated'])

    def test_an_instance_names_a_planned_flavor(self):
        plain = {'host': 'h', 'flavor': 'hpc.15c1n.2m'}
        a, b = ({**plain, 'id': 'a', 'cells': [{'id': 0}],
                 'cpus': [*range(1, 16)]},
                {**plain, 'id': 'b', 'cells': [{'id': 1}],
                 'cpus': [*range(17, 32)]})
        named = read(a, b, server_groups=[
            {'policy': 'soft-affinity', 'members': ['b']}])
        found, flavors = assemble.make_fleet(named)
        by_name = {flavor.name: flavor for flavor in flavors}
        self.assertEqual([by_name['hpc.15c1n.2m']] * 2, [
            instance.flavor for instance in found.hosts[0].instances])
        self.assertEqual([False, True], [
            instance.group is not None
            for instance in found.hosts[0].instances])

    def test_an_instance_of_an_unknown_flavor_is_refused(self):
        instance = {'id': 'a', 'host': 'h', 'flavor': 'y'}
        for flavors in ([], [FLAVOR]):
            with self.assertRaisesRegex(
                    exception.InvalidInput, r"^f.yaml: instances\[0\].flavor: "
                    "'y' is neither a flavor of the document nor"):
                assemble.make_fleet(read(instance, flavors=flavors))

    def test_a_broken_host_does_not_stop_the_rest(self):
        wrong = {**HOST['topology'], 'cells': []}
        found, flavors = assemble.make_fleet(read(classes={'c': {'hosts': [
            HOST, {'name': 'w', 'topology': wrong}]}}))
        self.assertEqual(['h'], [host.name for host in found.hosts])
        self.assertEqual(['w'], list(found.broken))
        self.assertTrue(flavors)

    def test_pages_are_charged_on_their_cell(self):
        topology = snapshot.make_json(hosts.build(
            cells=2, cores=4, mib=8192, name='h'))
        plain = {'schema_version': 1, 'classes': {'c': {
            'hosts': [{'topology': topology}],
            'profile': {'page_size': '4K'}}}, 'instances': [
                {**INSTANCE, 'cpus': [], 'devices': [], 'cells': [
                    {'id': 0, 'pages': {'4': 131072}}, {'id': 1}]}]}
        found, _ = assemble.make_fleet(document.read(plain, 'f'))
        self.assertEqual({}, found.broken)
        plain['instances'][0]['cells'][0]['pages'] = {'2048': 256}
        found, _ = assemble.make_fleet(document.read(plain, 'f'))
        self.assertIn('a has 256 pages of 2048 KiB on cell 0, where 0',
                      found.broken['h'])

    def test_an_instance_on_another_host_is_an_error(self):
        for flavor in (FLAVOR, 'planned'):
            with self.assertRaisesRegex(
                    exception.InvalidInput,
                    r"^f.yaml: instances\[0\].host: 'a' is on 'h9', which is "
                    r'not a host of the document \(did you mean h\?\)$'):
                read({**INSTANCE, 'host': 'h9',
                      'flavor': flavor}).check_names()

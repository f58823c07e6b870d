# SPDX-License-Identifier: Apache-2.0

import dataclasses
import json
import unittest

from hpcvirt.fit import admission
from hpcvirt.fit import reasons
from hpcvirt.flavors import compiled_flavor
from hpcvirt.fleet import assemble
from hpcvirt.fleet import document
from hpcvirt.fleet import nearness
from hpcvirt.topology import snapshot
from tests.builders import commands
from tests.builders import folders
from tests.builders import hosts
from tests.builders import wired

GPUS = {'base': 'dense', 'devices': [{
    'kind': 'whole', 'vendor_id': '10de', 'product_id': '2330',
    'alias': 'gpu', 'sets': 'link', 'sizes': [1, 2, 4, 8],
    'affinity': 'preferred'}]}


def a_fleet():
    """Describe hosts without and with eight GPUs; instances hold some."""
    return {'schema_version': 1, 'classes': {
        'cpu': {'hosts': [{'topology': snapshot.make_json(hosts.build(
            name='cmp')), 'count': 3}], 'name_prefix': 'c'},
        'gpu': {'hosts': [{'topology': snapshot.make_json(wired.tree(
            name='g')), 'count': 3}], 'profile': GPUS, 'name_prefix': 'g'}}}


class NearnessTest(unittest.TestCase):
    def setUp(self):
        self.plain = a_fleet()
        _, flavors = assemble.make_fleet(document.read(self.plain, 'f'))
        self.by_gpus = {
            sum(device.count for device
                in compiled_flavor.make(flavor).shape.devices): flavor
            for flavor in flavors if flavor.name.startswith('g')}

    def fill(self, *numbers):
        """Put instances with these numbers of GPUs on the GPU hosts."""
        self.plain['instances'] = [
            {'id': f'i{number}', 'host': f'g-{number}',
             'flavor': self.by_gpus[count].name,
             'cells': [{'id': cell} for cell in range(
                 len(compiled_flavor.make(self.by_gpus[count]).shape.cells))],
             'cpus': list(range(self.by_gpus[count].vcpus))}
            for number, count in enumerate(numbers, 1) if count]
        found, _ = assemble.make_fleet(document.read(self.plain, 'f'))
        self.assertEqual({}, found.broken)
        return found

    def test_a_host_that_lacks_less_is_nearer(self):
        found = self.fill(4, 1, 2)
        guest = compiled_flavor.make(self.by_gpus[8])
        lacks = {host.name: nearness.measure(guest, host.state)
                 for host in found.hosts}
        self.assertEqual(['g-2', 'g-3', 'g-1'], sorted(
            (name for name in lacks if name.startswith('g-')),
            key=lacks.get))
        for host in found.hosts:
            self.assertIsInstance(admission.predict(guest, host.state),
                                  reasons.Misfit)
            self.assertGreater(lacks[host.name], 0)
            closed = dataclasses.replace(host.state, closed='is down')
            self.assertGreaterEqual(nearness.measure(guest, closed),
                                    nearness.CLOSED)

    def test_explain_shows_the_nearest_host_of_each_class(self):
        text = self.explain(4, 1, 2)
        self.assertRegex(text, r'\ngpu +3  g-2, g-3, g-1 ')
        self.assertRegex(text, r'\ncpu +3  cmp-1, cmp-2, cmp-3 ')
        self.assertIn('- i2 moves cold from g-2 to g-1', text)
        self.assertIn('"hpcvirt make-room --cold" makes cold moves', text)

    def test_explain_lists_what_was_tried_in_vain(self):
        text = self.explain(4, 4, 4).replace('\n', ' ')
        self.assertIn('were tried: other numbers of guest cells, fewer CPUs, ',
                      text)
        self.assertIn('up to 2 live migrations of other instances, up to 2 '
                      'cold migrations of other instances.', text)

    def explain(self, *numbers):
        self.fill(*numbers)
        path = folders.make(self) / 'fleet.json'
        path.write_text(json.dumps(self.plain))
        status, text, _ = commands.run(
            'explain', '--fleet', str(path), '--flavor',
            self.by_gpus[8].name)
        self.assertEqual(1, status)
        return text

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

"""Differences between a flavor and the topology of its server."""

import unittest

from hpcvirt.tempest_plugin import contract

FLAVOR = {'name': 'f', 'vcpus': 4, 'ram_mib': 2048, 'disk_gib': 0,
          'extra_specs': {'hw:cpu_policy': 'dedicated',
                          'hw:mem_page_size': '2048', 'hw:numa_nodes': '2'}}


def answer(**changes):
    nodes = [
        {'memory_mb': 1024, 'vcpu_set': [0, 1], 'host_node': 0,
         'cpu_pinning': {'0': 4, '1': 5}, 'siblings': []},
        {'memory_mb': 1024, 'vcpu_set': [2, 3], 'host_node': 1,
         'cpu_pinning': {'2': 8, '3': 9}, 'siblings': []}]
    nodes[1].update(changes)
    return {'nodes': nodes, 'pagesize_kb': 2048}


class ViolationsTest(unittest.TestCase):

    def violations(self, **changes):
        return contract.violations(FLAVOR, contract.nodes(answer(**changes)))

    def test_matching_server_has_none(self):
        self.assertEqual([], self.violations())

    def test_missing_guest_cell_is_named(self):
        found = contract.nodes(answer())[:1]
        self.assertEqual(['1 guest cells instead of 2'],
                         contract.violations(FLAVOR, found))

    def test_each_difference_is_named(self):
        for changes, words in (
                ({'memory_mb': 512}, '512 MiB instead of 1024'),
                ({'vcpu_set': [2]}, '1 CPUs instead of 2'),
                ({'cpu_pinning': {}}, '0 pins instead of 2'),
                ({'cpu_pinning': {'2': 8, '3': 8}}, 'on one host CPU'),
                ({'cpu_pinning': {'2': 4, '3': 9}}, 'on one host CPU'),
                ({'host_node': 0}, 'on one host cell'),
                ({'pagesize_kb': 4}, 'pages of 4 KiB instead of 2048')):
            with self.subTest(changes=changes):
                found = self.violations(**changes)
                self.assertTrue(any(words in text for text in found), found)

    def test_answer_without_pins_is_read(self):
        nodes = contract.nodes(
            {'nodes': [{'memory_mb': 64, 'cpu_pinning': None}]})
        self.assertEqual({}, nodes[0].pins)
        self.assertIsNone(nodes[0].page_kib)

    def test_host_cpus_are_those_of_all_cells(self):
        self.assertEqual({4, 5, 8, 9},
                         contract.host_cpus(contract.nodes(answer())))

    def test_guest_threads_on_one_core(self):
        found = contract.nodes(answer())
        together = [frozenset({4, 5}), frozenset({8, 9})]
        apart = [frozenset({4, 8}), frozenset({5, 9})]
        self.assertEqual([], contract.split_cores(found, 2, together))
        self.assertEqual(2, len(contract.split_cores(found, 2, apart)))

# SPDX-License-Identifier: Apache-2.0

import dataclasses
import json
import pathlib
import random
import re
import unittest

import yaml
from prometheus_client import parser

from hpcvirt import exception
from hpcvirt.cmd.fleet import exporter
from hpcvirt.fleet import count
from hpcvirt.fleet import log_reading
from hpcvirt.fleet import metrics
from tests.builders import commands
from tests.builders import fleets
from tests.builders import folders
from tests.builders import log_records

ETC = pathlib.Path(__file__).parents[4] / 'etc/hpcvirt'


class AddressTest(unittest.TestCase):

    def test_a_host_a_port_or_both(self):
        for words, expected in (
                ('127.0.0.1:80', ('127.0.0.1', 80)),
                ('10.0.0.1', ('10.0.0.1', 9834)), (':80', ('127.0.0.1', 80)),
                ('80', ('127.0.0.1', 80)), ('host.name', ('host.name', 9834)),
                ('::1', ('::1', 9834)), ('[::1]', ('::1', 9834)),
                ('[::1]:0', ('::1', 0)), ('::', ('::', 9834))):
            self.assertEqual(expected, exporter.address(words), words)
        self.assertEqual(('::', 9835), exporter.address('::', 9835))

    def test_what_is_none_is_refused(self):
        for words in ('host:name', '[zz]:1', '::1:99999', 'host:65536',
                      'a:b:c', 'host:-1', '[host]'):
            with self.assertRaisesRegex(exception.InvalidInput,
                                        '--serve: .* is not an address'):
                exporter.address(words)


class CommandTest(unittest.TestCase):

    def test_what_cannot_be_served_is_said_in_one_line(self):
        folder = folders.make(self)
        fleet = folder / 'fleet.json'
        fleet.write_text(json.dumps({'schema_version': 1, 'classes': {'c': {
            'hosts': [str(ETC / 'topologies/hs06-2s-16c.json')]}}}))
        for words, expected in (
                (('a:b',), "--serve: 'a:b' is not an address"),
                ((':0', '--format=json'), '--format: is not for --serve'),
                ((':0', '--interval=0'), '--interval: must be a number from'),
                ((':0', '--column=nme'), 'nme: is not a column: choose from '),
                ((':0', '--fleet=-'), '--serve: reads the fleet repeat')):
            commands.check_refused(self, expected, commands.run(
                'capacity', '--fleet', fleet, '--serve', *words))


def read(text):
    return list(parser.text_string_to_metric_families(text))


def in_projects(fleet):
    """Give the instances of a fleet projects, and the hosts zones."""
    return dataclasses.replace(fleet, hosts=tuple(dataclasses.replace(
        host, zone=f'az{number % 2}', instances=tuple(dataclasses.replace(
            item, project=f'p{place % 3}')
            for place, item in enumerate(host.instances)))
        for number, host in enumerate(fleet.hosts)))


class WriteTest(unittest.TestCase):

    def test_names_that_do_not_print_are_escaped_so_that_all_is_read(self):
        name = 'a"\\\n\x1b[31m\x85\N{SNOWMAN}'
        family, = read(exporter.write([metrics.Family(
            'figure', 'A figure', ('host',), {(name,): 3})]))
        sample, = family.samples
        self.assertEqual((3, {'host': 'a"\\\\u000a\\u001b[31m\\u0085'
                              '\N{SNOWMAN}'}),
                         (sample.value, sample.labels))


def served():
    """Return the labels of each metric that is served."""
    fleet, flavors = fleets.a_fleet(random.Random(9), 2)
    labels = {}
    refused = log_reading.read([log_records.LINE], None)
    for family in (*read(exporter.write(metrics.families(
            in_projects(fleet), count.count(fleet, flavors), refused))),
            *exporter.FleetReader((), 60).collect()):
        for sample in family.samples:
            # Prometheus itself adds the job.
            labels.setdefault(sample.name, {'job'}).update(sample.labels)
    return labels


class DashboardTest(unittest.TestCase):

    def test_each_rule_asks_for_metrics_and_labels_that_are_served(self):
        labels = served()
        groups = yaml.safe_load(
            (ETC / 'prometheus/hpcvirt.rules.yml').read_text())['groups']
        rules = [rule for group in groups for rule in group['rules']]
        recorded = {rule['record'] for rule in rules if 'record' in rule}
        self.assertGreater(len(recorded), 5)
        for rule in rules:
            names = set(re.findall(
                r'\w+:[\w:]+|\b(?:hpcvirt|openstack)_\w+', rule['expr']))
            self.assertLessEqual(names, recorded | set(labels), rule)
            for name in names - recorded:
                for group in re.findall(r'by \((.*?)\)', rule['expr']):
                    # Prometheus itself adds the instance.
                    self.assertLessEqual({*group.split(', ')},
                                         labels[name] | {'instance'}, rule)

    def test_each_query_asks_for_metrics_and_labels_that_are_served(self):
        labels = served()
        dashboard = json.loads(
            (ETC / 'grafana/capacity.json').read_text())
        queries = [target['expr'] for panel in dashboard['panels']
                   for target in panel['targets']]
        queries += [variable['query'] for variable
                    in dashboard['templating']['list']
                    if variable['type'] == 'query']
        self.assertGreater(len(queries), 20)
        asked = set()
        for query in queries:
            names = re.findall(r'\b((?:hpcvirt|openstack)_\w+)(?:\{(.*?)\})?',
                               query)
            self.assertTrue(names, query)
            for name, chosen in names:
                asked.add(name)
                self.assertIn(name, labels, query)
                for label in re.findall(r'(\w+)=', chosen):
                    self.assertIn(label, labels[name], query)
                for group in re.findall(r'by \((.*?)\)', query):
                    self.assertLessEqual({*group.split(', ')}, labels[name])
        # Whatever is served is drawn.
        self.assertEqual(asked, set(labels))

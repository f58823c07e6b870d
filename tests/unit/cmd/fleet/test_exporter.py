# SPDX-License-Identifier: Apache-2.0

import contextlib
import io
import json
import pathlib
import random
import re
import threading
import unittest

import prometheus_client
from prometheus_client import registry

from hpcvirt import exception
from hpcvirt.cmd.fleet import exporter
from hpcvirt.fleet import count
from hpcvirt.fleet import metrics
from tests.builders import commands
from tests.builders import fleets
from tests.builders import folders

ETC = pathlib.Path(__file__).parents[4] / 'etc/hpcvirt'
SOME = metrics.Family('figure', 'A figure', ('host',), {('n1',): 3})


class Fleet:
    """Is read; fails while it is broken."""

    def __init__(self):
        self.readings = 0
        self.broken = None
        self.now = 1000.0

    def read(self):
        self.readings += 1
        if self.broken is not None:
            raise self.broken
        return [SOME]

    def scrape(self, collectors):
        text = prometheus_client.generate_latest(collectors).decode()
        return dict(line.rsplit(' ', 1) for line in text.splitlines()
                    if not line.startswith('#'))

    def collector(self, max_age_s=60):
        collectors = registry.CollectorRegistry()
        collectors.register(exporter.FleetCollector(
            self.read, max_age_s, clock=lambda: self.now))
        return collectors


class CollectorTest(unittest.TestCase):

    def test_a_scrape_reads_afresh_unless_the_last_reading_is_recent(self):
        fleet = Fleet()
        collectors = fleet.collector()
        for later, readings in ((0, 1), (59, 1), (1, 2), (30, 2), (31, 3)):
            fleet.now += later
            found = fleet.scrape(collectors)
            self.assertEqual(readings, fleet.readings)
            self.assertEqual(('3.0', '1.0'), (
                found['figure{host="n1"}'], found['hpcvirt_up']))

    def test_a_failure_is_shown_and_old_figures_are_not(self):
        fleet = Fleet()
        collectors = fleet.collector(0)
        before = fleet.scrape(collectors)
        for error in (exception.Unreachable('Nova cannot be read'),
                      exception.InvalidInput('usage.json', 'is not JSON'),
                      KeyError('a defect')):
            fleet.broken = error
            with contextlib.redirect_stderr(io.StringIO()) as complaint:
                found = fleet.scrape(collectors)
            self.assertEqual(1, complaint.getvalue().count('\n'))
            self.assertIn(str(error), complaint.getvalue())
            self.assertNotIn('figure{host="n1"}', found)
            self.assertEqual('0.0', found['hpcvirt_up'])
            self.assertEqual(
                before['hpcvirt_last_success_timestamp_seconds'],
                found['hpcvirt_last_success_timestamp_seconds'])
        self.assertEqual('3.0', found['hpcvirt_read_failures_total'])
        fleet.broken = None
        found = fleet.scrape(collectors)
        self.assertEqual(('3.0', '1.0'), (
            found['figure{host="n1"}'], found['hpcvirt_up']))

    def test_a_wrong_argument_ends_the_start_and_a_missing_cloud_does_not(
            self):
        fleet = Fleet()
        fleet.broken = exception.InvalidInput('--flavor', 'is no flavor')
        self.assertRaises(exception.InvalidInput, fleet.collector)
        fleet.broken = exception.Unreachable('the database does not answer')
        with contextlib.redirect_stderr(io.StringIO()):
            found = fleet.scrape(fleet.collector())
        self.assertEqual('0.0', found['hpcvirt_up'])

    def test_two_scrapes_at_once_share_one_reading(self):
        fleet = Fleet()
        collectors = fleet.collector()
        fleet.now += 100
        running, both = [], threading.Event()
        read = fleet.read

        def slow():
            running.append(1)
            both.wait(0.2)
            self.assertEqual(1, len(running))
            running.pop()
            return read()

        (collector,) = collectors._collector_to_names
        collector._read = slow
        found = []
        threads = [threading.Thread(
            target=lambda: found.append(fleet.scrape(collectors)))
            for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(2, fleet.readings)
        self.assertEqual(['1.0'] * 3, [each['hpcvirt_up'] for each in found])


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
                (('192.0.2.1:1',), '--serve: 192.0.2.1:1 cannot be used '),
                ((':0', '--format=json'), '--format: is not for --serve'),
                ((':0', '--max-age=-1'), '--max-age: must be a number from 0'),
                ((':0', '--flavor=x'), "--flavor: 'x' is not a flavor"),
                ((':0', '--column=nme'), 'nme: is not a column: choose from '),
                ((':0', '--fleet=-'), '--serve: reads the fleet repeat')):
            commands.check_refused(self, expected, commands.run(
                'capacity', '--fleet', fleet, '--serve', *words))


class DashboardTest(unittest.TestCase):

    def test_each_query_asks_for_metrics_and_labels_that_are_served(self):
        fleet, flavors = fleets.a_fleet(random.Random(9), 2)
        collectors = registry.CollectorRegistry()
        collectors.register(exporter.FleetCollector(lambda: [*metrics.families(
            fleet, count.count(fleet, flavors))], 60))
        labels = {}
        for family in collectors.collect():
            for sample in family.samples:
                # Prometheus itself adds the job.
                labels.setdefault(sample.name, {'job'}).update(sample.labels)
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

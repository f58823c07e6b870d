# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt capacity --serve`` as Prometheus and systemd see it."""

import json
import pathlib
import signal
import subprocess
import sys
import unittest
import urllib.request

from tests.builders import folders

ETC = pathlib.Path(__file__).parents[4] / 'etc/hpcvirt'
HPCVIRT = (sys.executable, '-m', 'hpcvirt.cmd.main')


class ServeTest(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.folder = folders.make(self)
        document = json.loads((ETC / 'fleets/three-hosts.json').read_text())
        hosts = document['classes']['plain']['hosts']
        hosts[:] = [host.replace('..', str(ETC)) for host in hosts]
        self.fleet = self.folder / 'fleet.json'
        self.fleet.write_text(json.dumps(document))

    def start(self, *words):
        return subprocess.Popen(
            [*HPCVIRT, 'capacity', f'--fleet={self.fleet}', *words],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def scrape(self, url):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(url, timeout=30) as answer:
            return answer.read().decode()

    def test_it_serves_until_sigterm_whatever_happens_to_the_files(self):
        with self.start('--serve', '[::1]:0', '--max-age=0') as process:
            self.addCleanup(process.kill)
            line = process.stdout.readline()
            self.assertRegex(line, r'^Serving http://\[::1\]:\d+/metrics\n$')
            url = line.split()[1]
            fits = ('openstack_free_capacity_by_flavor_total{'
                    'flavor_name="hpc.8c1n.2m",public="True"} 4.0\n')
            self.assertIn(fits, self.scrape(url))
            good = self.fleet.read_bytes()
            self.fleet.write_text('{')
            text = self.scrape(url)
            self.assertIn('\nhpcvirt_up 0.0\n', text)
            self.assertNotIn('openstack_', text)
            self.fleet.write_bytes(good)
            self.assertIn(fits, self.scrape(url))
            process.send_signal(signal.SIGTERM)
            _, complaints = process.communicate(timeout=30)
        self.assertEqual(0, process.returncode)
        # A warning of the plan is printed at the first scrape only.
        warned, broken = complaints.splitlines()
        self.assertIn('Warning: no-housekeeping: ', warned)
        self.assertIn('fleet.json: is not valid JSON', broken)

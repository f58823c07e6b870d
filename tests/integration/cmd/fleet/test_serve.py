# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt capacity --serve`` as Prometheus and systemd see it."""

import json
import pathlib
import signal
import subprocess
import sys
import time
import unittest
import urllib.request

from tests.builders import folders

ETC = pathlib.Path(__file__).parents[4] / 'etc/hpcvirt'
HPCVIRT = (sys.executable, '-Pm', 'hpcvirt.cmd.main')


class ServedFleet(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.folder = folders.make(self)
        document = json.loads((ETC / 'fleets/three-hosts.json').read_text())
        hosts = document['classes']['plain']['hosts']
        hosts[:] = [host.replace('..', str(ETC)) for host in hosts]
        self.fleet = self.folder / 'fleet.json'
        self.fleet.write_text(json.dumps(document))

    def start(self, *words, **more):
        return subprocess.Popen(
            [*HPCVIRT, 'capacity', f'--fleet={self.fleet}', *words],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)

    def scrape(self, url):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(url, timeout=30) as answer:
            return answer.read().decode()


class ServeTest(ServedFleet):

    def wait(self, url, expected):
        """Scrape until a line is in the answer."""
        deadline = time.monotonic() + 60
        while expected not in (text := self.scrape(url)):
            self.assertLess(time.monotonic(), deadline, text)
            time.sleep(0.1)
        return text

    def test_it_serves_until_sigterm_whatever_happens_to_the_files(self):
        with self.start('--serve', '[::1]:0', '--interval=1') as process:
            self.addCleanup(process.kill)
            line = process.stdout.readline()
            self.assertRegex(line, r'^Serving http://\[::1\]:\d+/metrics\n$')
            url = line.split()[1]
            fits = ('openstack_free_capacity_by_flavor_total{'
                    'flavor_name="hpc.8c1n.2m",public="True"} 4.0\n')
            self.assertIn(fits, self.scrape(url))
            good = self.fleet.read_bytes()
            self.fleet.write_text('{')
            self.assertIn(fits, self.wait(url, '\nhpcvirt_up 0.0\n'))
            self.fleet.write_bytes(good)
            self.assertIn(fits, self.wait(url, '\nhpcvirt_up 1.0\n'))
            process.send_signal(signal.SIGTERM)
            _, complaints = process.communicate(timeout=30)
        self.assertEqual(0, process.returncode)
        # The warnings of the plan are printed at the first reading only.
        planned, others, *broken = complaints.splitlines()
        self.assertIn('Warning: planned-anew: ', planned)
        self.assertIn('Warning: the plan has 1 warning; ', others)
        self.assertTrue(broken)
        for line in broken:
            self.assertIn('fleet.json: is not valid JSON', line)

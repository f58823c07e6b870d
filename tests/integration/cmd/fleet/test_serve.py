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

"""``hpcvirt capacity --serve`` as Prometheus and systemd see it."""

import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
import urllib.request

ETC = pathlib.Path(__file__).parents[4] / 'etc/hpcvirt'
HOST = ETC / 'topologies/hs06-2s-16c.json'
HOSTS = [f'n{number}={HOST}' for number in (1, 2, 3)]
HPCVIRT = (sys.executable, '-m', 'hpcvirt.cmd.main')


class ServeTest(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.enterContext(
            tempfile.TemporaryDirectory()))
        self.usage = self.folder / 'usage.json'
        shutil.copy(ETC / 'fleets/three-hosts.json', self.usage)
        self.plan = self.folder / 'plan.json'
        self.plan.write_bytes(subprocess.run(
            [*HPCVIRT, 'flavor', 'plan', '--profile', 'dense', *HOSTS,
             '--format', 'json'], stdout=subprocess.PIPE, check=True).stdout)

    def start(self, *words):
        return subprocess.Popen(
            [*HPCVIRT, 'capacity', *(f'--topology={host}' for host in HOSTS),
             f'--usage={self.usage}', f'--flavors={self.plan}', *words],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def scrape(self, url):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(url, timeout=30) as answer:
            return answer.read().decode()

    def test_it_serves_until_sigterm_whatever_happens_to_the_files(self):
        with self.start('--serve', '[::1]:0', '--interval=0') as process:
            self.addCleanup(process.kill)
            line = process.stdout.readline()
            self.assertRegex(line, r'^Serving http://\[::1\]:\d+/metrics\n$')
            url = line.split()[1]
            fits = ('openstack_free_capacity_by_flavor_total{'
                    'flavor_name="hpc.8c1n.2m",public="True"} 4.0\n')
            self.assertIn(fits, self.scrape(url))
            good = self.usage.read_bytes()
            self.usage.write_text('{')
            text = self.scrape(url)
            self.assertIn('\nhpcvirt_up 0.0\n', text)
            self.assertNotIn('openstack_', text)
            self.usage.write_bytes(good)
            self.assertIn(fits, self.scrape(url))
            process.send_signal(signal.SIGTERM)
            _, complaints = process.communicate(timeout=30)
        self.assertEqual(0, process.returncode)
        self.assertEqual(1, complaints.count('\n'))
        self.assertIn('usage.json: is not valid JSON', complaints)

# SPDX-License-Identifier: Apache-2.0

"""The lines for gres.conf, as slurmd reads them."""

import os
import re
import subprocess
import unittest

from hpcvirt.instance_topology import places
from hpcvirt.instance_topology import writers
from tests.builders import folders

CONFIGURATION = """
ClusterName=test
SlurmctldHost=localhost
AuthType=auth/none
GresTypes=gpu
NodeName=localhost CPUs={cpus} CoresPerSocket={cpus} Gres=gpu:2
PartitionName=all Nodes=localhost
"""


class GenericResourceTest(unittest.TestCase):
    def test_slurmd_finds_cores_and_links(self):
        cpus = os.cpu_count()
        found = places.Arrangement(
            [[frozenset((cpu,)) for cpu in range(cpus)]], (),
            {frozenset((0, 1)): 18}, [places.Function(
                f'0000:0{number}:00.0', '10de', '2330', '0x030200', 0, (),
                file, may_be=(number,))
                for number, file in enumerate(('/dev/null', '/dev/zero'))],
            ())
        folder = folders.make(self)
        (folder / 'slurm.conf').write_text(CONFIGURATION.format(cpus=cpus))
        (folder / 'hpcvirt.conf').write_text(writers.write_gres(found))
        (folder / 'gres.conf').write_text(f'include {folder}/hpcvirt.conf\n')
        done = subprocess.run(
            ('slurmd', '-G', '-N', 'localhost', '-f', folder / 'slurm.conf'),
            capture_output=True, text=True, check=True, timeout=60)
        text = done.stdout + done.stderr
        self.assertNotIn('error', text)
        cores = ','.join(map(str, range(cpus)))
        self.assertEqual(
            [('/dev/null', '-1,18'), ('/dev/zero', '18,-1')],
            re.findall(rf'Gres Name=gpu .*File=(\S+) Cores={cores} .*'
                       r'Links=(\S+)', text), text)

# SPDX-License-Identifier: Apache-2.0

"""Open MPI starts the ranks of benchmarks over several guests."""

import os

from tests.integration.bench import run_case
from tests.integration.bench import ssh_server

#: Fails, or prints what a real run printed, if it is the first rank.
FIRST_RANK = """\
#!/bin/sh
echo "$OMPI_COMM_WORLD_RANK $*" >> '{trace}'
[ "$OMPI_COMM_WORLD_RANK" != 0 ] || cat '{output}'
"""


class RanksTest(run_case.RunCase):
    """A real mpirun starts programs that print what real ones printed."""

    def setUp(self):
        super().setUp()
        self.other = self.enterContext(ssh_server.running())
        # mpirun takes both addresses for this machine, and needs no ssh.
        ssh = self.scratch / 'bin/ssh'
        ssh.parent.mkdir()
        ssh.write_text('#!/bin/sh\n')
        ssh.chmod(0o755)
        for server in (self.server, self.other):
            server.login['PATH'] = f'{ssh.parent}:{os.environ["PATH"]}'
            server.write()

    def program(self, name, output):
        program = self.scratch / name
        program.write_text(FIRST_RANK.format(
            trace=self.trace, output=run_case.DATA / output))
        program.chmod(0o755)

    def sample(self, name, *more, status=0):
        result = self.result(
            'bench', 'run', name, '--where', self.server.url, '--pairs', '1',
            '--host-key', 'accept-new', '--data', str(self.scratch / 'data'),
            '--format', 'json', *more, status=status)
        return result['runs'][0]['samples'][-1]

    def gpus(self, *more, **given):
        self.program('all_reduce_perf', 'nccl/all_reduce_k80.txt')
        return self.sample(
            'nccl-tests', '--set', f'nccl={self.scratch}', '--set', 'ranks=2',
            '--set', 'min_size=1048576', '--set', 'max_size=1073741824',
            *more, **given)

    def test_the_gpus_of_two_guests_take_part(self):
        sample = self.gpus('--where', self.other.url)
        parameters = sample['outcome']['parameters']
        self.assertEqual(('2', '2'), (parameters['gpus'],
                                      parameters['hosts']))
        ranks = self.trace.read_text().splitlines()
        # Two samples, of two ranks with a GPU each.
        self.assertEqual(['0', '0', '1', '1'],
                         sorted(rank.split()[0] for rank in ranks))
        self.assertIn('-f 2 -g 1 ', ranks[0])

    def test_an_output_of_other_hosts_is_invalid(self):
        sample = self.gpus(status=1)
        self.assertIn('hosts=1 was requested, but the output says 2',
                      sample['outcome']['reason'])

    def test_the_cell_of_the_first_rank_is_kept_of_both_sides(self):
        self.program('osu_latency', 'osu/latency_7.4.txt')
        result = self.result(
            'bench', 'run', 'osu-latency', '--where', self.server.url,
            '--where', self.other.url, '--native', 'local', '--native-cpus',
            '0', '--native-cpus', '1', '--no-verdict', '--pairs', '1',
            '--host-key', 'accept-new', '--data', str(self.scratch / 'data'),
            '--format', 'json', '--set', f'osu={self.scratch}',
            '--set', 'max_size=65536', '--set', 'device=lo', status=1)
        samples = result['runs'][0]['samples']
        self.assertEqual([None], list({
            sample['outcome']['reason'] for sample in samples}))
        self.assertEqual(
            {(f'{os.uname().nodename}: first rank on cell 0, '
              'lo on an unknown cell')},
            {sample['environment']['ranks.first_cell'] for sample in samples})
        self.assertEqual({'native', 'guest'},
                         {sample['side'] for sample in samples})

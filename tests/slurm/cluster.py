# SPDX-License-Identifier: Apache-2.0

"""Slurm clusters whose controllers and nodes are this machine.

munged, slurmctld and a slurmd for each node run in the foreground, as children
of the test, in a directory of their own. They need root. Several clusters may
run at once if their nodes have different names: the control group of a node is
named after it.
"""

import contextlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest
from unittest import mock

from hpcvirt import waiting
from tests.builders import ports as unused_ports

LIMIT_S = 60
#: A node counts as down when it has not answered for so long.
DOWN_S = 6

CONF = """\
ClusterName=hpcvirt
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/{track}
TaskPlugin=task/affinity
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
ReturnToService=1
SlurmdTimeout={down_s}
KillWait=2
MinJobAge=60
SchedulerParameters=sched_interval=1,bf_interval=1
{nodes}
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
PartitionName=other Nodes={second} State=UP
PartitionName=closed Nodes={first} State=DOWN
"""


class Cluster:
    """A cluster that runs until it is closed.

    :ivar nodes: the names of its two nodes
    :ivar folder: its configuration, state and logs
    """

    def __init__(self, nodes: tuple[str, str]) -> None:
        self.nodes = nodes
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='hpcvirt-slurm-'))
        self.folder.chmod(0o755)
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        try:
            self._configure()
            for node in nodes:
                self.start_node(node)
            self.wait_for_state('idle')
        except BaseException:
            self.close()
            raise

    def _configure(self) -> None:
        ports = unused_ports.find_ports(1 + len(self.nodes))
        (self.folder / 'cgroup.conf').write_text(
            'CgroupPlugin=cgroup/v1\nCgroupMountpoint=/sys/fs/cgroup\n'
            'CgroupAutomount=no\n')
        nodes = [f'NodeName={node} NodeHostname={socket.gethostname()} '
                 f'NodeAddr=127.0.0.1 Port={port} CPUs={os.cpu_count()} '
                 'RealMemory=500'
                 for node, port in zip(self.nodes, ports[1:], strict=True)]
        has_cgroups = os.access('/sys/fs/cgroup/freezer', os.W_OK)
        (self.folder / 'slurm.conf').write_text(CONF.format(
            host=socket.gethostname().partition('.')[0], port=ports[0],
            folder=self.folder, down_s=DOWN_S, nodes='\n'.join(nodes),
            first=self.nodes[0], second=self.nodes[1],
            track='cgroup' if has_cgroups else 'linuxproc'))
        (self.folder / 'munge.key').write_bytes(os.urandom(128))
        (self.folder / 'munge.key').chmod(0o400)
        (self.folder / 'state').mkdir()
        self._start('munged', '--foreground', '--force', *(
            f'--{what}-file={self.folder}/munge.{what}'
            for what in ('key', 'pid', 'log', 'seed')),
            f'--socket={self.folder}/munge.socket')
        wait_until((self.folder / 'munge.socket').exists)
        self._start('slurmctld', '-D', '-f', f'{self.folder}/slurm.conf')

    def _start(self, *argv: str, name: str = '') -> None:
        with (self.folder / f'{name or argv[0]}.out').open('ab') as out:
            self._daemons[name or argv[0]] = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                process_group=0, env={**os.environ, 'HPCVIRT_NODE': name})

    def start_node(self, node: str) -> None:
        """Start the daemon of a node."""
        self._start('slurmd', '-D', '-N', node, '-f',
                    f'{self.folder}/slurm.conf', name=node)

    def stop_node(self, node: str) -> None:
        """Let a node fall silent, with all that runs there."""
        self._signal_node(node, signal.SIGSTOP)

    def replace_node(self, node: str) -> None:
        """Start a node anew that fell silent."""
        self._signal_node(node, signal.SIGKILL)
        self._daemons.pop(node).wait()
        self.start_node(node)

    def _signal_node(self, node: str, number: int) -> None:
        for process in pathlib.Path('/proc').glob('[0-9]*'):
            with contextlib.suppress(OSError):
                words = (process / 'environ').read_bytes().split(b'\0')
                if f'HPCVIRT_NODE={node}'.encode() in words or (
                        f'SLURMD_NODENAME={node}'.encode() in words):
                    os.kill(int(process.name), number)

    def call(self, *argv: str) -> str:
        """Run a command of Slurm, and return what it prints."""
        return subprocess.run(
            argv, check=True, capture_output=True, text=True,
            env={**os.environ, 'SLURM_CONF': f'{self.folder}/slurm.conf'},
        ).stdout

    def states(self) -> list[str]:
        return self.call('sinfo', '-h', '-N', '-p', 'main', '-o',
                         '%N %T').splitlines()

    def jobs(self) -> list[str]:
        """The names of the jobs that have not ended."""
        return self.call('squeue', '-h', '-o', '%j').splitlines()

    def wait_for_state(self, state: str, *nodes: str) -> None:
        """Wait until nodes, or all, have a state."""
        def look() -> bool:
            try:
                return {f'{node} {state}'
                        for node in nodes or self.nodes} <= set(self.states())
            except subprocess.CalledProcessError:
                return False
        wait_until(look)

    def close(self) -> None:
        for node in self.nodes:
            self._signal_node(node, signal.SIGKILL)
        for daemon in reversed(self._daemons.values()):
            daemon.terminate()
            try:
                daemon.wait(5)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        for node in self.nodes:
            for left in pathlib.Path('/sys/fs/cgroup').glob(f'*/slurm_{node}'):
                with contextlib.suppress(OSError):
                    left.rmdir()
        shutil.rmtree(self.folder, ignore_errors=True)


class ClusterCase(unittest.TestCase):
    """Tests on one cluster, which they leave idle.

    :cvar nodes: the nodes of the cluster; no other class may name one of them
    """

    nodes: tuple[str, str]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.cluster = Cluster(cls.nodes)
        cls.addClassCleanup(cls.cluster.close)

    def setUp(self) -> None:
        super().setUp()
        variables = mock.patch.dict(
            os.environ, SLURM_CONF=f'{self.cluster.folder}/slurm.conf')
        variables.start()
        self.addCleanup(variables.stop)
        self.addCleanup(self.cluster.wait_for_state, 'idle')


def wait_until(look, limit_s=LIMIT_S) -> None:
    """Wait until something holds.

    :raises AssertionError: if it does not in time
    """
    if not waiting.poll(look, bool, limit_s, 0.1):
        raise AssertionError(f'{look} never holds')

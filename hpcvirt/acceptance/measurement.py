# SPDX-License-Identifier: Apache-2.0

"""Measure in instances that are started for the purpose.

The acceptance of a host, the case of a study and the Tempest plugin start
instances in different ways. The rest is the same: wait until they answer, let
them log in to each other, pair them with native targets, end what a process
that was killed has left on them, execute the plan, and leave no job running.
"""

import contextlib
import functools
import os
import time
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence

from hpcvirt import child_environment
from hpcvirt import child_process
from hpcvirt import exception
from hpcvirt import waiting
from hpcvirt.bench.execute import executor
from hpcvirt.bench.execute import job as jobs
from hpcvirt.bench.model import record
from hpcvirt.bench.results import store as stores
from hpcvirt.bench.run import plan as plans
from hpcvirt.bench.run import runner
from hpcvirt.bench.run import sampler
from hpcvirt.bench.run import schedule
from hpcvirt.bench.run import sides
from hpcvirt.bench.run import target as targets

#: How long an active instance may take until it accepts ssh.
SSH_S = 600.0
PAUSE_S = 2.0

#: Where instances keep the private key with which they log in to each other.
_KEY = '.ssh/hpcvirt'
#: The host keys of new instances are unknown.
_SSH_CONFIG = ('StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n'
               f'LogLevel ERROR\nIdentityFile ~/{_KEY}\n')


class TimeUp(exception.HpcvirtError):
    """A measurement reached its time limit."""


class TimeLimit:
    """A progress display that raises TimeUp at a deadline.

    :param deadline: time of the monotonic clock
    :param look: called while a sample runs
    :ivar result: id of the result, empty before it is opened
    """

    def __init__(self, shown: runner.Progress,
                 deadline: float = float('inf'),
                 look: Callable[[], None] = lambda: None) -> None:
        self._shown = shown
        self._deadline = deadline
        self._look = look
        self.result = ''
        self.not_continued = shown.not_continued
        self.sample_finished = shown.sample_finished
        self.left_behind = shown.left_behind

    def opened(self, entry: stores.Entry, continued: bool) -> None:
        self.result = entry.id
        self._shown.opened(entry, continued)

    def sample_started(self, run: record.Run, due: schedule.PlannedSample,
                       number: int, total: int) -> None:
        self._check()
        self._shown.sample_started(run, due, number, total)

    def tick(self, elapsed_s: float) -> None:
        self._check()
        self._look()
        self._shown.tick(elapsed_s)

    def _check(self) -> None:
        if time.monotonic() > self._deadline:
            raise TimeUp('the time limit was reached')


def measure(make_plan: Callable[[Sequence[sides.Pair]], plans.RunPlan],
            store: stores.Store, joined: bool,
            guests: Sequence[targets.Target],
            natives: Sequence[targets.Target], shown: TimeLimit,
            key_file: str = '') -> str:
    """Measure in instances, or continue to, and close the connections.

    :param make_plan: makes a plan for pairs of an instance and a native target
    :param joined: whether a program spans several instances
    :param natives: one for each guest, or empty
    :param key_file: file of the private key of the instances
    :returns: the id of the result
    :raises TimeUp: at the time limit; finished samples are kept
    :raises Unreachable: if an instance does not answer
    """
    with contextlib.ExitStack() as stack:
        for each in (*guests, *natives):
            stack.callback(each.place.close)
        for each in guests:
            waiting.retry(functools.partial(each.place.run, ['true']),
                          exception.Unreachable, SSH_S, PAUSE_S)
        if joined and len(guests) > 1:
            with open(key_file, encoding='ascii') as stream:
                private_key = stream.read()
            for each in guests:
                let_log_in(each.place, private_key)
        return execute(make_plan(sides.pair(guests, natives)), store, shown)


def execute(plan: plans.RunPlan, store: stores.Store, shown: TimeLimit,
            software: Sequence[str] = ('hpcvirt',)) -> str:
    """Execute a plan to its end; leave no job running, however it ends.

    :param software: the distributions whose versions are stored
    :returns: the id of the result
    :raises TimeUp: at the time limit; finished samples are kept
    :raises Unreachable: if a machine does not answer
    """
    _end_left(plan, store)
    try:
        return runner.execute(plan, store, runner.read_versions(*software),
                              shown)
    except BaseException:
        if shown.result:
            begun = [runner.name_run(shown.result, number)
                     for number in range(len(plan.runs))]
            for target in plan.targets:
                try:
                    _stop_runs(target, begun)
                except exception.Unreachable as exc:
                    shown.left_behind(f'jobs that may still run: {exc}')
        raise


def _end_left(plan: plans.RunPlan, store: stores.Store) -> None:
    """End the jobs that killed processes have left on the machines of a plan.

    Those of the plan itself are continued.

    :raises Unreachable: if a machine does not answer
    """
    hosts = set()
    for planned in plan.runs:
        hosts.update(planned.run.host.split(', '))
    names = {target.named or target.place.name for target in plan.targets}
    unfinished = [
        entry for entry in store.entries()
        if not entry.finished_at and entry.plan != plan.fingerprint
        and store.find_process(entry.id) is None]
    left = []
    for _, result in store.results(unfinished):
        left += [run.id for run in result.runs
                 if hosts.intersection(run.host.split(', '))
                 or names.intersection(run.targets)]
    for target in plan.targets:
        _stop_runs(target, left)


def _stop_runs(target: targets.Target, run_ids: Sequence[str]) -> None:
    """Stop the jobs of runs on a machine."""
    if not run_ids:
        return
    place = executor.RetryingExecutor(target.place, sampler.CLEAN_S)
    for run_id in jobs.find_runs(place, run_ids, target.directory):
        jobs.stop_run(place, run_id, target.directory)


@contextlib.contextmanager
def start(boot: Callable[[str], Sequence[str]], stop: Callable[[], None],
          key_file: str,
          complain: Callable[[str], None]) -> Iterator[Sequence[str]]:
    """Start instances for the time, and yield their ids.

    :param boot: starts instances with a public key, unless they exist
    :param stop: removes everything that was created
    :param complain: called with a line on what could not be removed
    """
    try:
        yield boot(read_public_key(key_file, stop))
    finally:
        clear(stop, key_file, complain)


def let_log_in(place: executor.Executor, private_key: str) -> None:
    """Let an instance log in by ssh to others that accept a key.

    :raises Unreachable: if the key cannot be written
    """
    for name, text in ((_KEY, private_key), ('.ssh/config', _SSH_CONFIG)):
        done = place.run(
            ['sh', '-c', 'umask 077; mkdir -p ~/.ssh; cat > ~/"$1"', 'put',
             name], text.encode())
        if done.status:
            raise exception.Unreachable(
                f'{place.name}: {done.stderr.decode("utf-8", "replace")}')


def read_public_key(path: str, clear_instances: Callable[[], None]) -> str:
    """Return the public part of the key in a file; create it if missing.

    :param clear_instances: removes instances that have a lost key
    :raises Unreachable: if the file cannot be read or written
    """
    if not os.path.exists(path):
        # Earlier instances have a key that is lost.
        clear_instances()
        _make_keys('-q', '-t', 'ecdsa', '-N', '', '-C', '', '-f', path)
        os.unlink(f'{path}.pub')
    # A comment may follow.
    return ' '.join(_make_keys('-y', '-f', path).split()[:2])


def _make_keys(*words: str) -> str:
    """Run ssh-keygen, and return what it prints."""
    status, printed, said = child_process.run(
        ['ssh-keygen', *words], where='local', limit_s=executor.SHORT_S,
        environment=child_environment.choose())
    if status:
        last = said.decode('utf-8', 'replace').strip().rpartition('\n')[2]
        raise exception.Unreachable(f'{words[-1]}: {last}')
    return printed.decode('ascii')


def clear(instances: Callable[[], None], key_file: str,
          complain: Callable[[str], None]) -> None:
    """Remove instances and their key, or report why that failed.

    :param instances: removes the instances
    :param complain: called with a line on the failure
    """
    try:
        instances()
    except exception.HpcvirtError as exc:
        complain(f'hpcvirt: not everything was removed: {exc}; repeat the '
                 'command to remove it')
        return
    with contextlib.suppress(FileNotFoundError):
        os.unlink(key_file)


def read_runs(store: stores.Store) -> list[record.Run]:
    """Read all finished runs of a store."""
    finished = (entry for entry in store.entries() if entry.finished_at)
    runs: list[record.Run] = []
    for _, result in store.results(finished):
        runs += result.runs
    return runs

# SPDX-License-Identifier: Apache-2.0

"""A job is a long program that runs detached and is polled.

Its state is in a directory of the machine that it runs on, so it survives the
connection and the process that started it. The caller chooses the directory
before the job starts, and finds the running or ended job there again.
:mod:`hpcvirt.bench.execute.job_scripts` has the scripts and their files.
"""

import dataclasses
import enum
import posixpath
import re
import shlex
from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt import words
from hpcvirt.bench.execute import executor
from hpcvirt.bench.execute import job_scripts

#: Time limit for copying a file.
FILE_S = 300.0


class JobState(enum.StrEnum):
    """The state of a job that has no exit status.

    ``FLOODING``: the job has printed more than a parser accepts.
    ``LOST``: the job was killed together with its shell, or its machine
    restarted after the job was prepared.
    """

    ABSENT = 'absent'
    STARTING = 'starting'
    RUNNING = 'running'
    FLOODING = 'flooding'
    LOST = 'lost'


@dataclasses.dataclass(frozen=True, slots=True)
class Ended:
    """A job that has ended.

    :ivar status: exit status; 124 if the job reached its time limit
    :ivar elapsed_s: None if the machine could not measure it
    """

    status: int
    elapsed_s: float | None


class Job:
    """One job on one machine.

    :param directory: the path that identifies the job, in a directory of
        :func:`hpcvirt.bench.execute.job_scripts.make_path`
    """

    def __init__(self, place: executor.Executor, directory: str) -> None:
        self.place = place
        self.directory = directory

    def prepare(self, argv: Sequence[str], inputs: Mapping[str, bytes],
                environment: Mapping[str, str],
                commands_before: Sequence[Sequence[str]] = ()) -> str:
        """Write the command and its input files, unless the job was started.

        If the machine restarts meanwhile, the job is lost, as :meth:`poll`
        then reports.

        :param inputs: files for the directory of the job, name to content;
            they are made executable
        :param commands_before: argument lists to run first; if one fails,
            the job ends with its status
        :returns: the absolute path of its directory
        :raises Unreachable: if the machine does not answer
        """
        words = [f'{name}={value}' for name, value in environment.items()]
        lines = [shlex.join(line) + ' || exit' for line in commands_before]
        lines.append(shlex.join(['env', *words, *argv] if words else argv))
        text = '\n'.join(lines) + '\n'
        done = self._shell(job_scripts.PREPARE, text.encode(), accept=(17,))
        if done.status != 17:
            for name, content in inputs.items():
                self._put(name, content)
        return done.stdout.decode('utf-8', 'surrogateescape').strip()

    def start(self, limit_s: int) -> None:
        """Start the prepared job; later calls have no effect.

        One short message starts the job, so that several jobs start at nearly
        the same moment. A job does not start if its machine restarted after it
        was prepared.

        :param limit_s: time limit of the program, 0 for none
        """
        self._shell(job_scripts.START, b'', str(limit_s),
                    accept=(job_scripts.NOT_PREPARED,))

    def poll(self) -> Ended | JobState:
        """Return the state of the job."""
        done = self._shell(job_scripts.POLL, b'')
        printed = done.stdout.decode('ascii', 'replace')
        word, *rest = printed.split() or ['absent']
        if word == 'done':
            return _ended(rest)
        if word in list(JobState):
            return JobState(word)
        raise exception.Unreachable(
            f'{self.place.name}: cannot read the state of {self.directory}')

    def read(self, *names: str) -> dict[str, bytes]:
        """Read files of the job, those of them that there are.

        A longer file is cut to
        :data:`hpcvirt.bench.execute.job_scripts.LIMIT_BYTES`, which a parser
        refuses as too long.
        """
        rest = self._shell(job_scripts.READ, b'', *names,
                           timeout_s=FILE_S).stdout
        found = {}
        while rest:
            heading, _, rest = rest.partition(b'\n')
            name, _, size = heading.decode('utf-8', 'replace').rpartition(' ')
            length = words.read_whole(size)
            if name not in names or length is None or len(rest) < length:
                raise exception.Unreachable(
                    f'{self.place.name}: cannot read the files in '
                    f'{job_scripts.name_path(self.directory)}')
            found[name], rest = rest[:length], rest[length:]
        return found

    def stop(self) -> None:
        """Stop the job if it runs; it is lost then."""
        self._shell(job_scripts.STOP, b'')

    def remove(self) -> None:
        """Stop the job if it runs, and remove its directory."""
        self._shell(job_scripts.REMOVE, b'')

    def _put(self, name: str, content: bytes) -> None:
        if posixpath.basename(name) != name or name in ('', '.', '..'):
            raise exception.InvalidInput(name, 'not a plain file name')
        self._shell(job_scripts.WRITE, content, name,
                    accept=(job_scripts.NOT_PREPARED,), timeout_s=FILE_S)

    def _shell(self, script: str, stdin: bytes, *arguments: str,
               accept: tuple[int, ...] = (),
               timeout_s: float = executor.SHORT_S) -> executor.Completed:
        done = self.place.run(
            ['sh', '-c', script, 'job', self.directory, *arguments], stdin,
            timeout_s)
        if done.status and done.status not in accept:
            stderr = done.stderr.decode('utf-8', 'replace').strip()
            raise exception.Unreachable(
                f'{self.place.name}: cannot use '
                f'{job_scripts.name_path(self.directory)}: '
                f'{stderr or done.status}')
        return done


def _ended(fields: Sequence[str]) -> Ended | JobState:
    """Parse the file ``status``, which a full disk may have truncated."""
    status = words.read_whole(fields[0]) if fields else None
    if status is None:
        return JobState.LOST
    if len(fields) == 3:
        begin, end = map(words.read_decimal, fields[1:])
        if begin is not None and end is not None:
            return Ended(status, max(0.0, end - begin))
    return Ended(status, None)


@dataclasses.dataclass(frozen=True, slots=True)
class Stopped:
    """The jobs of a run on one machine after :func:`stop_run`.

    :ivar stopped: number of jobs that were stopped
    :ivar ended: number of jobs that had ended, and are kept
    """

    stopped: int = 0
    ended: int = 0


def find_runs(place: executor.Executor, run_ids: Sequence[str],
              parent: str = '') -> tuple[str, ...]:
    """Find the runs that have a directory on a machine.

    :raises Unreachable: if the machine does not answer
    """
    paths = {job_scripts.make_path(parent, run_id): run_id
             for run_id in run_ids}
    done = place.run(['sh', '-c', job_scripts.FIND, 'find', *paths])
    if done.status:
        raise exception.Unreachable(
            f'{place.name}: cannot find the directories of runs: '
            + done.stderr.decode('utf-8', 'replace'))
    found = done.stdout.decode('utf-8', 'surrogateescape').splitlines()
    return tuple(paths[path] for path in found if path in paths)


def stop_run(place: executor.Executor, run_id: str, parent: str = '',
             kept: Collection[int] = ()) -> Stopped:
    """Stop the jobs of a run on a machine, with all their processes.

    The directory of the run is removed, unless a job has ended whose outputs
    may not have been read yet.

    :param kept: the positions of the samples whose outputs were read

    :raises Unreachable: if the machine does not answer
    """
    directory = job_scripts.make_path(parent, run_id)
    done = place.run(['sh', '-c', job_scripts.LIST, 'list', directory])
    if done.status:
        raise exception.Unreachable(
            f'{place.name}: cannot read {directory}: '
            + done.stderr.decode('utf-8', 'replace'))
    found = Stopped()
    for name in done.stdout.decode('ascii', 'replace').split():
        if not re.fullmatch(r'[0-9]{1,9}(\.[0-9]{1,9})*', name):
            continue
        job = Job(place, posixpath.join(directory, name))
        if int(name.partition('.')[0]) in kept:
            job.remove()
        elif isinstance(job.poll(), Ended):
            job.stop()
            found = dataclasses.replace(found, ended=found.ended + 1)
        else:
            job.remove()
            found = dataclasses.replace(found, stopped=found.stopped + 1)
    place.run(['sh', '-c', job_scripts.LEAVE, 'leave', directory])
    return found

# SPDX-License-Identifier: Apache-2.0

"""Read a log line by line, and sort its jobs."""

import operator
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt import input_file
from hpcvirt.model import flavor as flavor_model
from hpcvirt.simulate import workload as workloads

#: Limit of a line in bytes; it may have the extra specs of a flavor.
LONGEST = 1 << 16
#: Limit of the jobs that are used. The longest public log has 2,695,548.
MAX_JOBS = 2_000_000
#: Limit of the lines, including comments and empty lines.
MAX_LINES = 10_000_000
#: Limit of times and durations in seconds, 3000 years: times in milliseconds
#: since 1970 exceed it.
MAX_SECONDS = 1e11
#: No computer has as many CPUs.
MAX_CPUS = 100_000_000
#: No computer has as much memory in MiB: 1 EiB.
MAX_MIB = 1 << 40

#: The fields of :class:`hpcvirt.simulate.workload.WorkloadJob`, but with the
#: time of the log's clock, since the first job is not known yet.
Entry = tuple[float, float, int, int, int, str, int, int]

_ARCHIVES = (
    (b'PK\x03\x04', 'ZIP'), (b'BZh', 'bzip2'), (b'\xfd7zXZ\x00', 'xz'),
    (b'\x28\xb5\x2f\xfd', 'zstd'))
_BYTE_ORDER_MARK = b'\xef\xbb\xbf'


class Log:
    """The lines of a file as text.

    :ivar path: the file, or ``-`` for standard input
    :ivar where: its name in messages
    :ivar first: the first line that is not empty, stripped
    :ivar number: number of the line that was read last
    :raises InvalidInput: if the file cannot be read, is empty, or is an
        archive
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.where = input_file.name(path)
        self.number = 0
        self._source = input_file.lines(path, LONGEST + 1, MAX_LINES)
        self._entries: list[Entry] = []
        self._added = 0
        self._empty = 0
        for line in self._source:
            self._head = line.removeprefix(_BYTE_ORDER_MARK)
            if self._head.strip():
                break
            self._empty += 1
        else:
            raise exception.InvalidInput(self.where, 'is empty')
        for magic, kind in _ARCHIVES:
            if self._head.startswith(magic):
                raise exception.InvalidInput(
                    self.where, f'is compressed by {kind}; expand it first')
        self.first = _text(self._head).strip()

    def __iter__(self) -> Iterator[str]:
        self.number = self._empty + 1
        yield self._checked(self._head)
        for line in self._source:
            self.number += 1
            yield self._checked(line)

    def fault(self, what: str) -> exception.InvalidInput:
        """Return the exception for the line that was read last."""
        return exception.InvalidInput(f'{self.where}: line {self.number}',
                                      what)

    def add(self, *entry: *Entry) -> None:
        """Add a job; jobs need not be in order."""
        self._entries.append(entry)
        self._added += 1
        if len(self._entries) > MAX_JOBS * 5 // 4:
            self._sort()

    def workload(self, notes: Sequence[str] = (),
                 flavors: Mapping[str, flavor_model.Flavor] | None = None, *,
                 splits: bool = False) -> workloads.Workload:
        """Return the workload: the jobs sorted by time, the first at 0.

        :raises InvalidInput: if there is no job
        """
        if not self._entries:
            raise exception.InvalidInput(
                self.where, ' '.join(['has no job that ran.', *notes])
                .rstrip('.'))
        self._sort()
        if self._added > MAX_JOBS:
            used = (f'Only the first {MAX_JOBS:,} of {self._added:,} jobs '
                    'are used.')
            notes = (*notes, used)
        start = self._entries[0][0]
        return workloads.Workload(
            self.where,
            tuple(workloads.WorkloadJob(entry[0] - start, *entry[1:])
                  for entry in self._entries),
            flavors or {}, splits, tuple(notes))

    def _sort(self) -> None:
        self._entries.sort(key=operator.itemgetter(0))
        del self._entries[MAX_JOBS:]

    def _checked(self, line: bytes) -> str:
        if len(line) > LONGEST:
            raise self.fault(f'is longer than {LONGEST} bytes')
        return _text(line)


def _text(line: bytes) -> str:
    return line.decode('utf-8', 'replace')


def note_count(number: int, one: str, more: str, what: str) -> tuple[str, ...]:
    """Return a note on a number of jobs, or nothing if it is 0.

    :param one: the subject in the singular
    :param more: the subject in the plural
    :param what: the end of the sentence, such as ``left out``
    """
    if not number:
        return ()
    subject, verb = (one, 'is') if number == 1 else (more, 'are')
    return (f'{number:,} {subject} {verb} {what}.',)

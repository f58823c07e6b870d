# SPDX-License-Identifier: Apache-2.0

"""Read the files of a host one by one, and its facts when they are needed.

A file gives a value, or None if there is none. A missing file of a running
host is None only if a directory that every kernel has (the anchor) exists. In
a copy it is None only if the list of the copy says that it was looked for
(:mod:`hpcvirt.topology.capture`). Otherwise nothing is known. A file that
cannot be read raises NotKnown.
"""

import contextlib
import pathlib
import re
import sys
import typing
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterator
from typing import Any

from hpcvirt import exception
from hpcvirt.audit import fact
from hpcvirt.model import cpuset
from hpcvirt.model import host as host_model
from hpcvirt.topology import capture
from hpcvirt.topology import sysfs
from hpcvirt.topology import sysfs_tree

T = typing.TypeVar('T')
P = typing.ParamSpec('P')

#: How the kernel writes an empty list of CPUs.
_EMPTY = ('', '(null)')


class Files:
    """The files below a root.

    :param root: ``/``, or the root (or the ``sys``) of a copy
    :raises InvalidInput: if it is not the root of a host
    """

    def __init__(self, root: pathlib.Path) -> None:
        self._root = root
        self._tree = sysfs_tree.SysfsTree(root)
        self._topology: host_model.Host | fact.UnknownFact | None = None
        self.is_running = self._tree.is_running
        self._list = (None if self._tree.is_mounted else
                      capture.CaptureList(self._tree.text(capture.LIST) or ''))

    def host_name(self) -> str:
        """Return the host name."""
        try:
            return self._tree.host_name()
        except exception.InvalidInput:
            return 'host'

    def topology(self) -> host_model.Host:
        """Read the topology, once."""
        if self._topology is None:
            self._topology = fact.fact(self._read_topology)
        return fact.unwrap(self._topology)

    def _read_topology(self) -> host_model.Host:
        try:
            return sysfs.read(self._root)
        except exception.InvalidInput as exc:
            where = exc.where.removeprefix(str(self._root).rstrip('/'))
            raise fact.NotKnown(where or 'the topology', exc.what) from exc

    def text(self, name: str, anchor: str,
             owners: Collection[int] | None = None) -> str | None:
        """Read a file."""
        with explain(name):
            text = self._tree.text(name, owners)
        if text is None:
            self._require_absence(name, anchor)
        return text

    def data(self, name: str) -> bytes:
        """Read the bytes of a file; none if it is missing."""
        with explain(name):
            return self._tree.data(name) or b''

    def driver(self, device: str) -> str | None:
        """Return the driver of a device; None if none is bound to it."""
        with explain(device):
            found = sysfs.read_driver(self._tree, device)
        if found is None and not self.is_running:
            # A capture has uevent, and a copy may have only the link.
            self.text(f'{device}/uevent', device)
        return found

    def _require_absence(self, name: str, anchor: str,
                         is_folder: bool = False) -> None:
        """Raise NotKnown unless the host lacks a file, or more files."""
        if self._list is None:
            if not self.exists(anchor):
                raise make_unknown(name)
        elif gap := self._list.find_gap(name, is_folder):
            raise make_unknown(name, gap)

    def has(self, name: str) -> bool:
        """Whether a file is there, readable or not."""
        folder, _, last = name.rpartition('/')
        with explain(folder):
            if last in self._tree.names(folder):
                return True
        self._require_absence(name, 'sys')
        return False

    def need(self, name: str, owners: Collection[int] | None = None) -> str:
        """Read a file that every host has.

        :param owners: the users of whom it may be; None for any
        """
        text = self.text(name, name, owners)
        if text is None:
            raise make_unknown(name)
        return text

    def setting(self, name: str) -> str | None:
        """Read a file that some kernels do not have."""
        return self.text(name, 'sys')

    def beginning(self, name: str, most: int) -> str:
        """Read no more than the beginning of a file that every host has."""
        with explain(name):
            text = self._tree.beginning(name, most)
        if text is None:
            raise make_unknown(name)
        return text

    def latency_us(self, name: str) -> int:
        """Read ``/dev/cpu_dma_latency``; a capture has it as text.

        A program that holds this device limits the latency of all CPUs.
        Opening the device to read it adds a request without a limit.
        """
        if not self.is_running:
            return self.need_number(name)
        try:
            with open(f'/{name}', 'rb') as stream:
                data = stream.read(4)
        except OSError as exc:
            raise make_unknown(name,
                               f'cannot be read ({exc.strerror})') from exc
        if len(data) != 4:
            raise make_unknown(name, 'is too short')
        return int.from_bytes(data, sys.byteorder, signed=True)

    def users(self, process: str) -> frozenset[int]:
        """Return the real, effective, saved and file system user."""
        text = self.text(f'proc/{process}/status', 'proc') or ''
        match = re.search('^Uid:((?:\t[0-9]{1,18})+)$', text, re.MULTILINE)
        return frozenset(map(int, match[1].split()) if match else ())

    def number(self, name: str, anchor: str) -> int | None:
        """Read a whole number."""
        text = self.text(name, anchor)
        return None if text is None else _whole(text, name)

    def need_number(self, name: str) -> int:
        """Read a whole number that every host has."""
        return _whole(self.need(name), name)

    def flag(self, name: str, anchor: str) -> bool | None:
        """Read a switch: 0 or N, 1 or Y."""
        text = self.text(name, anchor)
        if text is None:
            return None
        if text not in ('0', '1', 'N', 'Y'):
            raise make_unknown(name, 'is neither on nor off')
        return text in ('1', 'Y')

    def cpus(self, name: str, anchor: str) -> frozenset[int] | None:
        """Read a list of CPUs."""
        text = self.text(name, anchor)
        return None if text is None else parse_cpus(text, name)

    def names(self, name: str, anchor: str = 'sys') -> tuple[str, ...]:
        """List a directory; empty if it is missing."""
        with explain(name):
            names = self._tree.names(name)
        if not names or self._list is not None:
            self._require_absence(name, anchor, is_folder=True)
        return tuple(names)

    def exists(self, directory: str) -> bool:
        """Whether a directory is there and has anything in it."""
        with explain(directory):
            if self._tree.names(directory):
                return True
        if self._list is not None:
            self._require_absence(directory, directory)
        return False


def make_unknown(name: str, problem: str = 'is missing') -> fact.NotKnown:
    """Make the error of a file without usable content."""
    return fact.NotKnown(f'/{name}', problem)


@contextlib.contextmanager
def explain(name: str) -> Iterator[None]:
    """Turn what makes a file invalid into the reason for a missing fact."""
    try:
        yield
    except exception.InvalidInput as exc:
        raise make_unknown(name, exc.what) from exc


def parse_cpus(text: str, name: str) -> frozenset[int]:
    """Read the text of a list of CPUs."""
    if text in _EMPTY:
        return frozenset()
    with explain(name):
        return cpuset.parse(text, name)


def _whole(text: str, name: str) -> int:
    if not re.fullmatch('-?[0-9]{1,18}', text):
        raise make_unknown(name, 'is not a number')
    return int(text)


class FactGroup:
    """Facts of a host; each is an attribute that is a :class:`Fact`.

    A fact raises :class:`~hpcvirt.audit.fact.NotKnown` if it cannot be read.
    It is None if the host does not have the thing: without cpufreq, for
    example, there is no governor. CPU numbers, cells and units are those of
    :mod:`hpcvirt.model.host`.

    :ivar known: what has been read, by name: a value, or the reason why there
        is none
    """

    def __init__(self, files: Files) -> None:
        self.files = files
        self.known: dict[str, Any] = {}

    def know(self, name: str, read: Callable[[], T]) -> T:
        """Return a fact, which is read once, even if that fails.

        :raises NotKnown: if it cannot be read
        """
        if name not in self.known:
            self.known[name] = fact.fact(read)
        known: T | fact.UnknownFact = self.known[name]
        return fact.unwrap(known)


class Fact(typing.Generic[T]):
    """A fact of a group.

    :param read: takes the files of the host, and the arguments
    """

    def __init__(self, read: Callable[typing.Concatenate[Files, P], T],
                 *args: P.args, **kwargs: P.kwargs) -> None:
        self._read: Callable[[Files], T] = lambda files: read(
            files, *args, **kwargs)

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, group: FactGroup, owner: type) -> T:
        return group.know(self._name, lambda: self._read(group.files))

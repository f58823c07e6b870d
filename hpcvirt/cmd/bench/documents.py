# SPDX-License-Identifier: Apache-2.0

"""The documents of ``hpcvirt bench run``."""

import argparse
import contextlib
import dataclasses
import os
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

from hpcvirt import exception
from hpcvirt import printable
from hpcvirt import serialization
from hpcvirt.bench.analysis import bounds
from hpcvirt.bench.model import judgement
from hpcvirt.bench.run import decidable
from hpcvirt.bench.run import run_request as requests
from hpcvirt.cmd import output
from hpcvirt.cmd import yaml_file
from hpcvirt.cmd.bench import targets

KINDS = ('acceptance', 'experiment', 'study')
_SUFFIXES = ('.yaml', '.yml', '.json')

#: Real documents are far smaller.
_MAX_BYTES = 1024 * 1024

#: What to do about a refusal, by keys that all documents have.
PAIRS = 'set pairs to {}'
ADVICE = decidable.Advice(
    PAIRS, 'set bounds or overhead_percent, or verdict to false to measure '
    'without a verdict', 'set this_launch to true')


@dataclasses.dataclass(frozen=True)
class RunDocument:
    """A document that says what to measure, still as plain data.

    :ivar path: the file, as the user names it
    """

    path: str
    kind: str
    plain: Any

    def locate(self, path: str) -> str:
        """Return a file that the document names, relative to itself."""
        return os.path.join(os.path.dirname(self.path), path)

    def place(self, key: str) -> str:
        """Name a key of the document, for errors."""
        return f'{self.path}: {key}'

    @contextlib.contextmanager
    def naming(self, key: str) -> Iterator[None]:
        """Let errors about a value name its key."""
        try:
            yield
        except exception.InvalidInput as exc:
            raise exception.InvalidInput(self.place(key), str(exc)) from exc

    def find_requests(self, key: str, names: tuple[str, ...],
                      settings: Mapping[str, str],
                      own_bounds: Mapping[str, judgement.Bound],
                      ) -> tuple[requests.RunRequest, ...]:
        """Look up benchmarks, and check that settings and bounds are theirs.

        :param key: that of the benchmarks; those of settings and bounds have
            the same prefix
        """
        prefix = key.removesuffix('benchmarks')
        given = requests.list_settings(settings)
        if not names:
            raise exception.InvalidInput(self.place(key), 'names none')
        with self.naming(key):
            wanted = requests.find(names, given)
        definitions = [each.definition for each in wanted]
        requests.check_used(definitions, given,
                            self.place(f'{prefix}settings'))
        requests.check_bounds(definitions, own_bounds,
                              self.place(f'{prefix}bounds'))
        return wanted

    def check_target(self, key: str, target: str) -> None:
        """Check the form of a target, before anything is changed."""
        with self.naming(key):
            targets.check(target)


def is_document(word: str) -> bool:
    """Whether an argument names a document, by its end."""
    return word.endswith(_SUFFIXES)


def read(path: str) -> RunDocument:
    """Read a document.

    :raises InvalidInput: if it cannot be read, or has another kind
    """
    plain = yaml_file.read(path, _MAX_BYTES)
    return RunDocument(
        path, serialization.require_kind(plain, KINDS, path), plain)


def make_bounds(ratios: Mapping[str, float]) -> dict[str, judgement.Bound]:
    """Return the bounds that a document gives."""
    return {metric: judgement.Bound(ratio, source=bounds.OF_USER)
            for metric, ratio in ratios.items()}


def print_steps(args: argparse.Namespace, steps: Iterable[str]) -> None:
    """Print the steps for people, and that they are not taken yet."""
    if args.formatter == 'table':
        lines = list(steps)
        if not args.apply:
            lines.append(output.NOT_APPLIED)
        print(printable.lines(lines), end='', flush=True)


def refuse_hosts(document: RunDocument, args: argparse.Namespace) -> None:
    """Check that no host is named for a document that has its own."""
    for word in args.what[1:]:
        raise exception.InvalidInput(
            word[:64], f'is too much; a document of the kind {document.kind} '
            'names its hosts itself')

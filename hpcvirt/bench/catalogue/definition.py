# SPDX-License-Identifier: Apache-2.0

"""The definition of a benchmark: how to install, run, parse and judge it.

Each definition is one YAML file in ``hpcvirt/bench/catalogue``;
:mod:`hpcvirt.bench.catalogue.catalogue` checks it strictly, so that
every definition that loads can be used.
"""

import dataclasses
import enum
import itertools
import re
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Annotated

from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt import words
from hpcvirt.bench.catalogue import sizing
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import line_pattern
from hpcvirt.bench.model import metric_definition
from hpcvirt.bench.model import output_format

#: ``{N}`` in a command, an input file or an expectation.
PLACEHOLDER = re.compile(r'\{([A-Za-z][A-Za-z0-9_]*)\}')
#: The runner replaces it with the host list of mpirun, or with nothing if
#: there is one machine.
HOSTS = '{hosts}'
#: ``926 / 915``: a ratio as the quotient of two figures.
QUOTIENT = re.compile(r'(?P<above>[0-9]+(\.[0-9]+)?) / '
                      r'(?P<below>[0-9]+(\.[0-9]+)?)',
                      re.ASCII)
#: The facts of a run that may select a bound, and their valid values.
CONDITIONS = {
    'nodes': re.compile(r'one|several'),
    'pages': re.compile(r'small|large'),
    'shape': re.compile(r'[1-9][0-9]*x[1-9][0-9]*', re.ASCII),
}
#: The parser whose format the definition itself describes.
PATTERN = 'pattern'
#: The source of a bound that a site gives to its own benchmark.
SITE = 'site'
#: Placeholders of every definition, in addition to its sizes and paths.
RUN_VALUES = ('ranks', 'threads', 'cpus', 'nodes')


class Source(enum.StrEnum):
    """Where a program comes from."""

    APT = 'apt'
    PYPI = 'pypi'
    SOURCE = 'source'
    USER = 'user'


@dataclasses.dataclass(frozen=True, slots=True)
class Installation:
    """One way to install the program.

    :ivar packages: names of Debian packages or Python distributions
    :ivar url: where the source code or the input is published
    :ivar note: what else an operator must know or do
    """

    by: Source
    packages: tuple[str, ...] = ()
    url: str = ''
    note: str = ''


@dataclasses.dataclass(frozen=True, slots=True)
class UserPath:
    """A file or directory that the user supplies, the same on both sides.

    :ivar name: placeholder in the commands
    """

    name: str
    help: str


@dataclasses.dataclass(frozen=True)
class Build:
    """How to build the binary. It is built once, and copied to both sides.

    :ivar commands: argument lists
    :ivar products: files that the run needs
    """

    commands: tuple[tuple[str, ...], ...]
    products: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Variant:
    """One way to run the program.

    :ivar name: ``mpi``, ``openmp``, ``serial``, ``threads``
    :ivar command: argument list with placeholders; ``{hosts}`` is a word of
        its own. After ``mpirun ... --bind-to none``, ``sh ./bind`` binds each
        rank to a core (:mod:`hpcvirt.bench.execute.cpu_affinity`).
    :ivar ranks: number of MPI ranks, or of GPUs, which are the ranks of NCCL
    :ivar threads: number of threads per rank
    :ivar binding: how ranks and threads are bound to cores and NUMA cells,
        one sentence. The runner also confines the native side to the host
        CPUs and host cells of the guest.
    :ivar environment: variables to set
    :ivar prepare: argument lists to run first, not measured
    :ivar output: ``stdout``, ``stderr`` or the name of the file to parse
    """

    name: str
    command: tuple[str, ...]
    ranks: sizing.ProcessCount
    threads: sizing.ProcessCount
    binding: str
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)
    prepare: tuple[tuple[str, ...], ...] = ()
    build: Build | None = None
    output: str = 'stdout'

    @property
    def spans(self) -> bool:
        """Whether one run can span several machines, as ``mpirun`` does."""
        return HOSTS in self.command

    @property
    def texts(self) -> tuple[str, ...]:
        """All texts that may have placeholders."""
        build = self.build or Build((), ())
        lines = (self.command, *self.prepare, *build.commands)
        parts = [word for word in itertools.chain.from_iterable(lines)
                 if word != HOSTS]
        return (*parts, *self.environment.values(), *build.products)


def _quotient(value: object) -> float:
    """Read a number, or the quotient of two."""
    form = 'a number, or two such as 926 / 915'
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    match = isinstance(value, str) and QUOTIENT.fullmatch(value)
    if not match or not float(match['below']):
        raise serialization.make_error(form, value)
    return float(match['above']) / float(match['below'])


Ratio = Annotated[float, _quotient]


@dataclasses.dataclass(frozen=True)
class BoundRule:
    """A default bound on guest / native: its limit and its source.

    Exactly one limit is set: ``at_least`` for a rate, ``at_most`` for a time,
    or ``slowdown_at_most`` for either (a rate may fall to its reciprocal).

    :ivar source: key of the document in the bibliography
    :ivar line: the table, slide or section of the document, and what it says
    :ivar conditions: what was measured, or why the figure was not measured
    :ivar when: conditions of :data:`CONDITIONS`, such as ``pages: large``; the
        first rule of a metric whose conditions all hold applies
    :ivar below_bytes: the rule applies to message sizes below this
    :ivar above_bytes: the rule applies to message sizes above this
    """

    metric: str
    kind: judgement.BoundKind
    source: str
    line: str
    conditions: str
    at_least: Ratio | None = None
    at_most: Ratio | None = None
    slowdown_at_most: Ratio | None = None
    margin: float = 0.0
    when: Mapping[str, str] = dataclasses.field(default_factory=dict)
    below_bytes: int | None = None
    above_bytes: int | None = None


@dataclasses.dataclass(frozen=True)
class Definition:
    """One benchmark.

    :ivar name: as in ``hpcvirt bench list``
    :ivar aliases: other names of the benchmark
    :ivar parser: module of :mod:`hpcvirt.bench.parsers`, the name of a parser
        of another package, or :data:`PATTERN`
    :ivar size: placeholder to the rule that computes its value
    :ivar files: input file to its content, with placeholders
    :ivar validity: a description of a valid output
    :ivar exit_status: exit status of the program after a good run
    :ivar expect: parameters that every output of this benchmark must print,
        such as the name of a kernel
    :ivar echo: parameters that the output of a run must print, with
        placeholders
    :ivar time_limit_s: seconds after which the runner ends the program
    :ivar required_lines: texts on lines of a complete output, for the parser
        ``pattern``
    :ivar forbidden_lines: texts that no good output has, in any letter case
    :ivar echo_patterns: parameter to the pattern of the line that prints it
    """

    name: str
    title: str
    summary: str
    parser: str
    licence: str
    obtain: tuple[Installation, ...]
    variants: tuple[Variant, ...]
    metrics: tuple[metric_definition.MetricDefinition, ...]
    validity: str
    aliases: tuple[str, ...] = ()
    size: Mapping[str, sizing.SizeParameter] = dataclasses.field(
        default_factory=dict)
    paths: tuple[UserPath, ...] = ()
    files: Mapping[str, str] = dataclasses.field(default_factory=dict)
    exit_status: int = 0
    expect: Mapping[str, str] = dataclasses.field(default_factory=dict)
    echo: Mapping[str, str] = dataclasses.field(default_factory=dict)
    bounds: tuple[BoundRule, ...] = ()
    time_limit_s: int = 3600
    required_lines: tuple[str, ...] = ()
    forbidden_lines: tuple[str, ...] = ()
    echo_patterns: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def lines(self) -> line_pattern.LineRules | None:
        """The lines of the output, None if a parser knows its format."""
        if self.parser != PATTERN:
            return None
        return line_pattern.LineRules(
            {figure.name: figure.pattern for figure in self.metrics},
            self.echo_patterns, self.required_lines, self.forbidden_lines)

    @property
    def output_format(self) -> output_format.OutputFormat:
        """How the output is read, and what its figures mean."""
        return output_format.OutputFormat(self.name, self.parser,
                                          self.metrics, self.lines)

    def variant(self, name: str | None = None) -> Variant:
        """Return a variant by name, or the first if no name is given.

        :raises InvalidInput: if there is no such variant
        """
        for variant in self.variants:
            if name in (None, variant.name):
                return variant
        names = [variant.name for variant in self.variants]
        raise exception.InvalidInput(
            self.name, f'no variant {name!r}; the variants are '
            f'{", ".join(names)}'
            + words.nearest(str(name), names))


def compute_sizes(definition: Definition, variant: Variant,
                  machine: sizing.Machine,
                  overrides: Mapping[str, str] | None = None) -> dict[str,
                                                                      str]:
    """Compute the values of all placeholders except paths.

    :param overrides: sizes, ranks or threads that the user set
    :raises InvalidInput: for an unknown name, or a machine that is too small
    """
    fixed = dict(overrides or {})
    names = {*RUN_VALUES, *definition.size}
    for name in fixed:
        if name not in names:
            raise exception.InvalidInput(
                definition.name, f'no size {name!r}; the sizes are '
                f'{", ".join(sorted(names))}')
    count = sizing.count(variant.ranks, machine)
    if not count and 'ranks' not in fixed:
        raise exception.InvalidInput(
            definition.name, 'no GPU was found; load its driver, or give '
            '--set ranks=N for N GPUs')
    ranks = _whole(fixed.get('ranks'), count, definition.name)
    threads = _whole(fixed.get('threads'),
                     sizing.count(variant.threads, machine, ranks),
                     definition.name)
    values = {'ranks': str(ranks), 'threads': str(threads),
              'cpus': str(ranks * threads), 'nodes': str(machine.nodes)}
    for name, rule in definition.size.items():
        values[name] = fixed.get(name) or sizing.size(
            rule, machine, ranks, f'{definition.name} {name}')
    return values


def fill(text: str, values: Mapping[str, str]) -> str:
    """Replace the placeholders of a text by their values.

    :raises InvalidInput: for a placeholder without a value
    """
    def value(match: re.Match[str]) -> str:
        if match[1] not in values:
            raise exception.InvalidInput(match[0], 'has no value')
        return values[match[1]]
    return PLACEHOLDER.sub(value, text)


def arguments(command: Sequence[str], values: Mapping[str, str],
              hosts: Sequence[str] = ()) -> tuple[str, ...]:
    """Replace the placeholders of an argument list by their values.

    :param hosts: replaces ``{hosts}``, for example with ``--host a:4,b:4``
    """
    words: list[str] = []
    for word in command:
        if word == HOSTS:
            words.extend(hosts)
        else:
            words.append(fill(word, values))
    return tuple(words)


def expectations(definition: Definition,
                 values: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters that the output of a run must print."""
    return {**definition.expect,
            **{key: fill(text, values)
               for key, text in definition.echo.items()}}


def _whole(text: str | None, default: int, where: str) -> int:
    if text is None:
        return default
    number = words.read_whole(text)
    if number is None or not 0 < number < 10 ** 8:
        raise exception.InvalidInput(
            where, f'must be a whole number from 1 to {10 ** 8 - 1}, not '
            f'{text[:40]!r}')
    return number

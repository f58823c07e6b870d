# SPDX-License-Identifier: Apache-2.0

"""The records that are stored: samples, runs and results.

A :class:`Sample` is one execution on one side. A :class:`Run` is one benchmark
with all its samples: both sides use the same host, size, binding and binaries.
A :class:`Result` is everything that one ``hpcvirt bench run`` measured.
:mod:`hpcvirt.bench.results.json_format` writes and reads them.
"""

import dataclasses
import datetime
import enum
import posixpath
import re
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Annotated

from hpcvirt import serialization
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import outcome

#: Increase it when an older hpcvirt would misread a newer file.
SCHEMA_VERSION = 1

#: How many earlier attempts are read with a run. The judgement of each attempt
#: counts half as many before it, so that twice as many are needed.
KNOWN_ATTEMPTS = 20

#: The beginning of the keys of ``Run.identity`` for what the user can set.
SETTING = 'setting '

#: A fact that is a number. In a damaged store it can be any text.
_NUMBER = re.compile(r'[0-9]{1,15}(\.[0-9]{1,15})?')

#: Limits that keep a damaged record from using up the memory.
_Pairs = Annotated[int, serialization.whole(0, 10_000)]
_WarmUps = Annotated[int, serialization.whole(0, 100)]
_Seconds = Annotated[float, serialization.number(0, 1e9)]


def _check_time(value: object) -> str:
    if isinstance(value, str):
        try:
            if not value or datetime.datetime.fromisoformat(value).tzinfo:
                return value
        except ValueError:
            pass
    raise serialization.make_error(
        'a time such as 2026-11-20T10:00:00+00:00', value)


class Side(enum.StrEnum):
    """The side of a comparison that a sample was measured on.

    In an A/A run both sides are native, but the second is still called guest.
    """

    NATIVE = 'native'
    GUEST = 'guest'


class Purpose(enum.StrEnum):
    """The purpose of a run.

    ``compare``: compare guest and native in pairs. ``aa``: compare native
    with itself, to learn which differences the machine can resolve.
    ``unpaired``: measure the sides at different times or on different hosts.
    """

    COMPARE = 'compare'
    AA = 'aa'
    UNPAIRED = 'unpaired'


class Launch(enum.StrEnum):
    """Whether a sample is the first one after the guest was started.

    Native samples and warm-ups have no such state.
    """

    COLD = 'cold'
    WARM = 'warm'


@dataclasses.dataclass(frozen=True, slots=True)
class RawOutput:
    """One output file of a sample, stored unchanged.

    :ivar name: ``stdout``, ``stderr``, ``hpccoutf.txt``, ``rsl.error.0000``
    :ivar path: relative to the directory of raw outputs
    :ivar sha256: hexadecimal digest of its bytes
    """

    name: str
    path: str
    sha256: str
    size_bytes: int


@dataclasses.dataclass(frozen=True)
class Sample:
    """One execution of a benchmark on one side.

    :ivar pair: number of the pair, from 0; warm-ups have numbers of their own
    :ivar position: number in the order of execution, from 0, including
        warm-ups; it proves that the sides were interleaved
    :ivar warm_up: excluded from the statistics
    :ivar control: a second native sample of its pair; the two show how much
        native differs from itself
    :ivar launch_id: identifies the guest launch of the sample; empty if it is
        unknown. Samples of a launch share its memory and placement.
    :ivar started_at: ISO 8601 with zone, UTC
    :ivar elapsed_s: wall time of the whole command; never a figure of merit
    :ivar exit_status: None if the job was lost or killed
    :ivar environment: facts captured before and after the sample, such as
        ``cpu.model``, ``kernel``, ``thp``, ``load.before``, ``steal.after``;
        ``kernel@GUEST`` where several guests differ
    """

    side: Side
    pair: int
    position: int
    outcome: outcome.Outcome
    warm_up: bool = False
    control: bool = False
    launch: Launch | None = None
    launch_id: str = ''
    started_at: Annotated[str, _check_time] = ''
    elapsed_s: _Seconds | None = None
    exit_status: int | None = None
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)
    outputs: tuple[RawOutput, ...] = ()

    def facts(self, name: str) -> list[str]:
        """List the values of a fact: several only if the guests differ."""
        return [value for key, value in self.environment.items()
                if key.partition('@')[0] == name]

    def numbers(self, name: str) -> list[float]:
        """List the values of a fact that are numbers."""
        return [float(value) for value in self.facts(name)
                if _NUMBER.fullmatch(value)]

    def reduce(self) -> 'Sample':
        """Keep only what later attempts need of a sample."""
        return dataclasses.replace(
            self, command=(), outputs=(), environment={
                name: value for name, value in self.environment.items()
                if name.partition('@')[0] == 'boot_id'})


def list_facts(samples: Iterable[Sample], name: str) -> Iterator[str]:
    """Yield the values of a fact in all samples."""
    for sample in samples:
        yield from sample.facts(name)


@dataclasses.dataclass(frozen=True)
class Attempt:
    """An earlier run on the same subject, whose samples count for a later run.

    :ivar id: of the run
    :ivar samples: reduced samples, without the warm-ups that ended
    """

    id: str
    started_at: str
    planned_pairs: int
    samples: tuple[Sample, ...]


@dataclasses.dataclass(frozen=True)
class Run:
    """One benchmark, measured on both sides.

    :ivar id: unique among all runs of a store
    :ivar benchmark: name of the definition
    :ivar variant: a variant of the definition: ``mpi``, ``openmp``, ``serial``
    :ivar parameters: requested parameters (size, ranks) of both sides; the
        output must print them
    :ivar host: the compute host of both sides
    :ivar shape: instances x cores: ``1x32``, ``4x8``; or a flavor's name
    :ivar planned_pairs: fixed before the first sample
    :ivar bounds: metric to bound; a metric without one is reported but not
        judged
    :ivar overhead_percent: how much slower the guest may be in every primary
        metric that ``bounds`` does not have; None for the bounds of the
        definition
    :ivar launch: state of the guest in all samples that count; None if it
        was not controlled
    :ivar planned_controls: number of pairs with a control
    :ivar planned_figures: number of figures, in all runs of the plan, that are
        judged together
    :ivar relaunched: the guest is relaunched several times during the run; a
        launch may have several samples
    :ivar of_launch: the verdict covers only the launches that were measured
    :ivar study: ``S1`` to ``S5`` if the run belongs to a study
    :ivar case: the case of that study's scenario
    :ivar identity: name to value: what the figures depended on when the run
        began; the run is continued only while nothing of it changes
    :ivar subject: digest of what the verdict is about, equal for all attempts
        on the same subject; empty if it is unknown
    :ivar earlier: the latest attempts on the same subject before this one
    :ivar omitted: number of attempts before ``earlier``
    :ivar targets: where the jobs run, as the user named it
    """

    id: str
    benchmark: str
    variant: str
    samples: tuple[Sample, ...]
    parameters: Mapping[str, str] = dataclasses.field(default_factory=dict)
    host: str = ''
    shape: str = ''
    purpose: Purpose = Purpose.COMPARE
    planned_pairs: _Pairs = 10
    planned_warm_ups: _WarmUps = 1
    bounds: Mapping[str, judgement.Bound] = dataclasses.field(
        default_factory=dict)
    launch: Launch | None = None
    planned_controls: _Pairs = 0
    planned_figures: int = 1
    relaunched: bool = False
    of_launch: bool = False
    study: str | None = None
    case: str | None = None
    started_at: str = ''
    identity: Mapping[str, str] = dataclasses.field(default_factory=dict)
    subject: str = ''
    earlier: tuple[Attempt, ...] = ()
    omitted: int = 0
    targets: tuple[str, ...] = ()
    overhead_percent: float | None = None

    @property
    def attempts_before(self) -> int:
        """The number of earlier attempts on the same subject."""
        return self.omitted + len(self.earlier)

    @property
    def label(self) -> str:
        """The name of the run in reports."""
        words = [self.benchmark, self.variant, self.shape, self.launch,
                 self.case]
        return ' '.join(word for word in words if word)

    @property
    def figures(self) -> Mapping[str, outcome.Metric]:
        """Each figure that was measured, as the last sample has it."""
        found: dict[str, outcome.Metric] = {}
        for sample in self.samples:
            found.update(sample.outcome.metrics)
        return found

    @property
    def paths(self) -> Mapping[str, str]:
        """The programs and inputs that the user named, by their settings."""
        found = {}
        for name, value in self.identity.items():
            setting = name.removeprefix(SETTING)
            if setting != name and setting not in self.parameters:
                found[setting] = value
        return found

    @property
    def program(self) -> str:
        """The names of what the user named, without their folders."""
        return ' '.join(posixpath.basename(path)
                        for path in self.paths.values())


@dataclasses.dataclass(frozen=True)
class Result:
    """Everything that one invocation measured and decided.

    :ivar runs: in the order of execution, including A/A runs
    :ivar verdict: None while samples are missing
    :ivar software: name to version: hpcvirt, python, and what the site adds
    """

    runs: tuple[Run, ...]
    verdict: judgement.Verdict | None = None
    software: Mapping[str, str] = dataclasses.field(default_factory=dict)
    schema_version: int = SCHEMA_VERSION

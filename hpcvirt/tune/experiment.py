# SPDX-License-Identifier: Apache-2.0

"""The experiment document: what is varied, what is measured, and the limits.

doc/source/reference/experiment-document.rst explains its keys, and
etc/hpcvirt/experiments has examples.
"""

import dataclasses
import enum
import math
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Annotated
from typing import Any

from hpcvirt import exception
from hpcvirt import serialization

SCHEMA_VERSION = 1

#: The value that every choice has: the profile as it is.
TODAY = 'today'

#: All of them are planned before the first trial.
MAX_CONFIGURATIONS = 1024
#: The values of a choice besides ``today``.
MAX_VALUES = 3

_Name = Annotated[str, serialization.text(
    '[A-Za-z0-9][A-Za-z0-9._-]{0,39}', 'huge-pages')]
_Percent = Annotated[float, serialization.number(0.05, 50)]
_Minutes = Annotated[float, serialization.number(0.01, 10_000)]
_Guests = Annotated[int, serialization.whole(1, 1024)]


class Objective(enum.StrEnum):
    """What the recommended profile is best at: a full host, or one guest."""

    THROUGHPUT = 'throughput'
    TIME = 'time'


@dataclasses.dataclass(frozen=True, kw_only=True)
class TunedProgram:
    """A program of the site.

    :ivar metric: its figure that counts; None for the only primary one
    :ivar minutes: how long one run takes, for the plan
    """

    benchmark: str
    metric: str | None = None
    weight: Annotated[float, serialization.number(1e-3, 1e6)] = 1.0
    settings: Mapping[str, str] = dataclasses.field(default_factory=dict)
    minutes: _Minutes


@dataclasses.dataclass(frozen=True, kw_only=True)
class ValueChange:
    """The changes of a value of a choice."""

    profile: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    extra_specs: Mapping[str, str] = dataclasses.field(default_factory=dict)
    guests_per_host: _Guests | None = None
    host: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def keys(self) -> tuple[str, ...]:
        """What it sets, in words."""
        return (*(f'the profile key {key}' for key in self.profile),
                *(f'the extra spec {key}' for key in self.extra_specs),
                *(f'the host setting {key}' for key in self.host),
                *(['guests_per_host'] if self.guests_per_host else []))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Limits:
    """What the experiment may take, of one host after the other."""

    hours: Annotated[float, serialization.number(0.01, 10_000)]
    reboots: Annotated[int, serialization.whole(0, 10_000)] = 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Never:
    """What must not happen with a recommended profile.

    :ivar slower_than: a run of a program that takes this many times as long
        as its typical run
    """

    slower_than: Annotated[float, serialization.number(1.1, 1000)] = 3.0
    fewer_guests_than: _Guests = 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class Experiment:
    """An experiment.

    :ivar host_class: the class of the fleet, which has today's profile
    :ivar choices: choice -> value -> its changes
    :ivar interactions: pairs of choices whose interaction must be estimable
    :ivar native: the target of native runs, with ``{host}``; None for none
    """

    schema_version: int
    name: _Name
    fleet: str
    host_class: str = dataclasses.field(
        metadata=serialization.keep_key('class'))
    guests_per_host: _Guests = 1
    programs: Mapping[_Name, TunedProgram]
    choices: Mapping[_Name, Mapping[_Name, ValueChange]]
    interactions: tuple[frozenset[str], ...] = ()
    objective: Objective = Objective.THROUGHPUT
    matters_percent: _Percent = 1.0
    noise_percent: _Percent = 2.0
    samples: Annotated[int, serialization.whole(1, 100)] = 3
    confirm_boots: Annotated[int, serialization.whole(5, 1000)] = 10
    boot_minutes: _Minutes = 3.0
    reboot_minutes: _Minutes = 15.0
    native: str | None = None
    limits: Limits
    never: Never = Never()
    apply: tuple[str, ...] = ()

    @property
    def values(self) -> dict[str, tuple[str, ...]]:
        """Choice -> its values, ``today`` first."""
        return {name: (TODAY, *own) for name, own in self.choices.items()}

    def format_levels(self, levels: Sequence[int]) -> str:
        """Write ``CHOICE=VALUE, CHOICE=VALUE``, or ``today``."""
        return ', '.join(
            f'{name}={values[level]}' for level, (name, values) in zip(
                levels, self.values.items(), strict=True) if level) or TODAY


def read(plain: object, where: str) -> Experiment:
    """Read an experiment document.

    :param plain: the parsed YAML or JSON
    :param where: the file, for errors
    :raises InvalidInput: naming the place of the fault
    """
    serialization.require_version(plain, SCHEMA_VERSION, where)
    experiment = serialization.load(Experiment, plain, where)
    for place, fault in _faults(experiment):
        raise exception.InvalidInput(f'{where}: {place}', fault)
    return experiment


def _faults(experiment: Experiment) -> Iterator[tuple[str, str]]:
    """Find contradictions: the place, and the fault."""
    choices = experiment.choices
    if not experiment.programs:
        yield 'programs', 'must name at least one program'
    for number, pair in enumerate(experiment.interactions):
        if len(pair) != 2 or not pair <= choices.keys():
            yield f'interactions[{number}]', (
                f'must have the names of two choices: {", ".join(choices)}')
    count = math.prod(map(len, experiment.values.values()))
    if not 2 <= count <= MAX_CONFIGURATIONS:
        yield 'choices', (f'have {count} configurations together, and must '
                          f'have 2 to {MAX_CONFIGURATIONS}')
    owners: dict[str, str] = {}
    for name, own in choices.items():
        if not 1 <= len(own) <= MAX_VALUES or TODAY in own:
            yield f'choices[{name!r}]', (
                f'must have 1 to {MAX_VALUES} values besides {TODAY}, which '
                'every choice has')
        for key in (key for change in own.values() for key in change.keys):
            if owners.setdefault(key, name) != name:
                yield 'choices', (
                    f'{owners[key]!r} and {name!r} both set {key}; what is '
                    'changed together must be one choice')

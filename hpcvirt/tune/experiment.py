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
    """A program of the site."""

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


@dataclasses.dataclass(frozen=True, kw_only=True)
class Limits:
    """What the experiment may take, of one host after the other."""

    hours: Annotated[float, serialization.number(0.01, 10_000)]
    reboots: Annotated[int, serialization.whole(0, 10_000)] = 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Never:
    """What must not happen with a recommended profile."""

    slower_than: Annotated[float, serialization.number(1.1, 1000)] = 3.0
    fewer_guests_than: _Guests = 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class Experiment:
    """An experiment.

    :ivar choices: choice -> value besides ``today`` -> its changes
    """

    schema_version: int
    name: _Name
    fleet: str
    host_class: str
    guests_per_host: _Guests = 1
    programs: Mapping[_Name, TunedProgram]
    choices: Mapping[_Name, Mapping[_Name, ValueChange]]
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

    def format_levels(self, levels: Sequence[int]) -> str:
        """Write ``CHOICE=VALUE, CHOICE=VALUE``, or ``today``."""
        return ', '.join(
            f'{name}={[*own][level - 1]}' for level, (name, own) in zip(
                levels, self.choices.items(), strict=True) if level) or TODAY


def read(plain: object, where: str) -> Experiment:
    """Read an experiment document, which is parsed.

    :param where: the file, for errors
    :raises InvalidInput: naming the place of the fault
    """
    serialization.require_version(plain, 1, where)
    experiment = serialization.load(Experiment, plain, where)
    for place, fault in _faults(experiment):
        raise exception.InvalidInput(f'{where}: {place}', fault)
    return experiment


def _faults(experiment: Experiment) -> Iterator[tuple[str, str]]:
    """Find contradictions: the place, and the fault."""
    if not experiment.programs:
        yield 'programs', 'must name at least one program'
    count = math.prod(len(own) + 1 for own in experiment.choices.values())
    if not 2 <= count <= MAX_CONFIGURATIONS:
        yield 'choices', (f'have {count} configurations together, and must '
                          f'have 2 to {MAX_CONFIGURATIONS}')
    owners: dict[str, str] = {}
    for name, own in experiment.choices.items():
        if not 1 <= len(own) <= MAX_VALUES or TODAY in own:
            yield f'choices[{name!r}]', (
                f'must have 1 to {MAX_VALUES} values besides {TODAY}, which '
                'every choice has')
        for key in (key for change in own.values() for key in (
                *(f'profile.{key}' for key in change.profile),
                *(f'extra_specs.{key}' for key in change.extra_specs),
                *(f'host.{key}' for key in change.host),
                *['guests_per_host'] * bool(change.guests_per_host))):
            if owners.setdefault(key, name) != name:
                yield 'choices', (
                    f'{owners[key]!r} and {name!r} both set {key}; what is '
                    'changed together must be one choice')

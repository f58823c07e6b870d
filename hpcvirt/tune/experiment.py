# SPDX-License-Identifier: Apache-2.0

"""The experiment document: what is varied, what is measured, and the limits.

The documentation shows the docstrings of its classes; etc/hpcvirt/experiments
has examples.
"""

import dataclasses
import enum
import itertools
import math
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Annotated
from typing import Any

from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt.bench.model import host_pattern

KIND = 'experiment'

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

    :ivar benchmark: the name of a benchmark of ``hpcvirt bench list``
    :ivar metric: one of several figures of the benchmark
    :ivar weight: the part of your work that is like this program; 1 by default
    :ivar settings: those of ``bench run --set``
    :ivar minutes: the time of one run, for the plan
    """

    benchmark: str
    metric: str | None = None
    weight: Annotated[float, serialization.number(1e-3, 1e6)] = 1.0
    settings: Mapping[str, str] = dataclasses.field(default_factory=dict)
    minutes: _Minutes


@dataclasses.dataclass(frozen=True, kw_only=True)
class ValueChange:
    """The changes of a value of a choice.

    :ivar profile: keys of the profile; with ``base``, they replace today's
        profile as a whole
    :ivar extra_specs: extra specs that a profile may set
    :ivar guests_per_host: the number of guests with this value
    :ivar host: names and values of settings that no profile has, for your own
        command
    """

    profile: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    extra_specs: Mapping[str, str] = dataclasses.field(default_factory=dict)
    guests_per_host: _Guests | None = None
    host: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Limits:
    """What the experiment may take, of one host after the other.

    :ivar hours: the hours of all hosts together
    :ivar reboots: the reboots of hosts; none by default
    """

    hours: Annotated[float, serialization.number(0.01, 10_000)]
    reboots: Annotated[int, serialization.whole(0, 10_000)] = 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Never:
    """What must not happen with a recommended profile.

    :ivar slower_than: a value is refused with which runs take this many times
        as long as usual; 3 by default
    :ivar fewer_guests_than: a value is refused with which a host takes fewer
        guests
    """

    slower_than: Annotated[float, serialization.number(1.1, 1000)] = 3.0
    fewer_guests_than: _Guests = 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class Experiment:
    """An experiment.

    :ivar kind: ``experiment``
    :ivar schema_version: 1
    :ivar name: the name of the record; a document that changes needs another
        name
    :ivar fleet: a fleet document, relative to this one
    :ivar host_class: one of its classes, whose hosts must be alike and have
        the names of the compute hosts; its profile is today's
    :ivar guests_per_host: how many guests fill a host today, 1 by default;
        they get the largest flavor of the plan of which exactly this number
        fits
    :ivar programs: what all guests of a host run at the same time, each with a
        name of your own
    :ivar choices: each choice has one to three named values besides ``today``,
        which is the profile as it is; no two choices may set the same key, and
        at most 1024 configurations are possible
    :ivar objective: ``throughput``, the work per time of a full host, or
        ``time``, that of one guest on a full host
    :ivar matters_percent: differences below this do not matter to you; 1 by
        default
    :ivar noise_percent: by how much you expect boots of the same configuration
        to differ (the standard deviation), for the plan; 2 by default
    :ivar samples: how often each program runs in a boot, besides a warm-up; 3
        by default
    :ivar confirm_boots: in how many boots of either profile the result is
        confirmed; 10 by default
    :ivar boot_minutes: how long it takes to boot all guests; 3 by default
    :ivar reboot_minutes: how long it takes to change the settings of a host;
        15 by default
    :ivar image: an image with the programs, by its name or UUID
    :ivar network: a network on which this machine reaches instances by ssh
    :ivar user: the login name in the instances; ``root`` by default
    :ivar native: the host itself as a target (``ssh://{host}``, where
        ``{host}`` stands for its name), so that the result also says how far a
        full host of guests is from native
    :ivar limits: what the experiment may take
    :ivar never: what must not happen
    :ivar apply: a command that brings settings to a host, as a list of words
        in which ``{host}``, ``{profile}`` and ``{settings}`` are replaced; it
        is needed if a choice changes settings of the host
    """

    kind: str
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
    image: str | None = None
    network: str | None = None
    user: str = 'root'
    native: Annotated[str, host_pattern.check('ssh://{host}')] | None = None
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
    experiment = serialization.load_document(Experiment, plain, KIND, where)
    for place, fault in _faults(experiment):
        raise exception.InvalidInput(f'{where}: {place}', fault)
    return experiment


def _list_keys(change: ValueChange) -> Iterator[str]:
    """List what a value changes."""
    yield from (f'profile.{key}' for key in change.profile)
    yield from (f'extra_specs.{key}' for key in change.extra_specs)
    yield from (f'host.{key}' for key in change.host)
    if change.guests_per_host:
        yield 'guests_per_host'


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
        keys = itertools.chain.from_iterable(map(_list_keys, own.values()))
        for key in keys:
            if owners.setdefault(key, name) != name:
                yield 'choices', (
                    f'{owners[key]!r} and {name!r} both set {key}; what is '
                    'changed together must be one choice')

# SPDX-License-Identifier: Apache-2.0

"""The experiment document: what is varied, what is measured, and the limits.

An operator writes it in YAML::

    schema_version: 1
    name: milan-2026
    hosts: [node1=node1.json]
    profile: default
    guests_per_host: 2
    programs:
      - {benchmark: hpcc, metric: HPL_Tflops, minutes: 9, weight: 2}
      - {benchmark: site-script, minutes: 5,
         settings: {script: /opt/solver/run.sh}, metric: time}
    choices:
      emulator-threads:
        own-cores: {profile: {shared_cores_per_cell: 2}}
      pages:
        1G: {profile: {page_size: 1G}}
      quota:
        half: {extra_specs: {'quota:cpu_shares': '512'}}
      nested-paging:
        'off': {host: {ept: '0'}}
      guests:
        four: {guests_per_host: 4}
    limits: {hours: 8, reboots: 12}
    never: {slower_than: 3, fewer_guests_than: 2}
    apply: [./apply.sh, '{host}', '{profile}', '{settings}']

Every choice has the value ``today`` besides those that it names: the profile
as it is. ``profile``, ``extra_specs``, ``guests_per_host`` and ``host`` of a
value are its changes. ``apply`` is the command of the site that brings the
settings of a configuration to a host and returns when the host can be used; it
is needed only if choices change settings of the host.
"""

import dataclasses
import enum
import itertools
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Annotated
from typing import Any

from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt import words
from hpcvirt.flavors import profile as profiles

SCHEMA_VERSION = 1

#: The value that every choice has: the profile as it is.
TODAY = 'today'

MAX_CHOICES = 10
#: The values of a choice besides ``today``.
MAX_VALUES = 3

_Name = Annotated[str, serialization.text(
    '[A-Za-z0-9][A-Za-z0-9._-]{0,39}', 'huge-pages')]
_Percent = Annotated[float, serialization.number(0.05, 50)]
_Minutes = Annotated[float, serialization.number(0.01, 10_000)]
_Guests = Annotated[int, serialization.whole(1, 1024)]


def _read_profile(value: object) -> str | Mapping[str, Any]:
    if value == '' or not isinstance(value, str | Mapping):
        raise serialization.make_error('a name, a file or a mapping', value)
    return value


class Objective(enum.StrEnum):
    """What the recommended profile is best at.

    ``throughput``: the work per time of a full host. ``time``: the time that
    a program takes in one guest of a full host.
    """

    THROUGHPUT = 'throughput'
    TIME = 'time'


@dataclasses.dataclass(frozen=True, kw_only=True)
class TunedProgram:
    """A program of the site.

    :ivar benchmark: ``NAME`` or ``NAME/VARIANT`` of the catalogue
    :ivar name: its name in trials and findings; None for ``benchmark``
    :ivar metric: its figure that counts; None for the only primary one
    :ivar weight: its share of the work of the site, relative to the others
    :ivar settings: its settings, as for ``bench run --set``
    :ivar minutes: how long one run takes, for the plan
    """

    benchmark: str
    name: _Name | None = None
    metric: str | None = None
    weight: Annotated[float, serialization.number(1e-3, 1e6)] = 1.0
    settings: Mapping[str, str] = dataclasses.field(default_factory=dict)
    minutes: _Minutes

    @property
    def label(self) -> str:
        """Its name in trials and findings."""
        return self.benchmark if self.name is None else self.name


@dataclasses.dataclass(frozen=True, kw_only=True)
class ValueChange:
    """The changes of a value of a choice.

    :ivar profile: keys of the profile
    :ivar extra_specs: extra specs of the flavor
    :ivar guests_per_host: how many guests of the flavor fill a host
    :ivar host: names and values for the command ``apply``
    """

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
    :ivar fewer_guests_than: a host that takes fewer guests
    """

    slower_than: Annotated[float, serialization.number(1.1, 1000)] = 3.0
    fewer_guests_than: _Guests = 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class Experiment:
    """An experiment.

    :ivar hosts: ``[NAME=]PATH`` of hosts that are alike
    :ivar fleet: a fleet document, instead of ``hosts``
    :ivar host_class: the class of the fleet
    :ivar profile: today's profile: the name of a built-in one, a file, or its
        content; None for that of the class, or ``default``
    :ivar guests_per_host: how many guests fill a host today
    :ivar choices: choice -> value -> its changes
    :ivar interactions: pairs of choices whose interaction must be estimable
    :ivar matters_percent: smaller differences do not matter
    :ivar noise_percent: expected standard deviation between boots of the same
        configuration, for the plan
    :ivar samples: how often each program runs in a boot
    :ivar confirm_boots: boots of either profile in the confirmation
    """

    schema_version: int
    name: _Name
    hosts: tuple[str, ...] = ()
    fleet: str | None = None
    host_class: str | None = dataclasses.field(
        default=None, metadata=serialization.keep_key('class'))
    profile: Annotated[str | Mapping[str, Any], _read_profile] | None = None
    guests_per_host: _Guests = 1
    programs: tuple[TunedProgram, ...]
    choices: Mapping[_Name, Mapping[_Name, ValueChange]]
    interactions: tuple[tuple[str, ...], ...] = ()
    objective: Objective = Objective.THROUGHPUT
    matters_percent: _Percent = 1.0
    noise_percent: _Percent = 2.0
    samples: Annotated[int, serialization.whole(1, 100)] = 3
    confirm_boots: Annotated[int, serialization.whole(5, 1000)] = 10
    boot_minutes: _Minutes = 3.0
    reboot_minutes: _Minutes = 15.0
    limits: Limits
    never: Never = Never()
    apply: tuple[str, ...] = ()

    @property
    def values(self) -> dict[str, tuple[str, ...]]:
        """Choice -> its values, ``today`` first."""
        return {name: (TODAY, *own) for name, own in self.choices.items()}


def read(plain: object, where: str) -> Experiment:
    """Read an experiment document.

    :param plain: the parsed YAML or JSON
    :param where: the file, for errors
    :raises InvalidInput: naming the place of the fault
    """
    serialization.require_version(plain, SCHEMA_VERSION, where)
    experiment = serialization.load(Experiment, plain, where)
    for place, fault in itertools.chain(
            _faults(experiment), _choice_faults(experiment)):
        raise exception.InvalidInput(
            f'{where}: {place}' if place else where, fault)
    return experiment


def _faults(experiment: Experiment) -> Iterator[tuple[str, str]]:
    """Find contradictions outside the choices: the place, and the fault."""
    given = [key for key, value in (
        ('hosts', experiment.hosts), ('fleet', experiment.fleet),
        ('class', experiment.host_class)) if value]
    if given not in (['hosts'], ['fleet', 'class']):
        yield '', ('must have either hosts, or fleet and class; it has '
                   + (' and '.join(given) or 'none of them'))
    if not experiment.programs:
        yield 'programs', 'must name at least one program'
    labels = [each.label for each in experiment.programs]
    for number, label in enumerate(labels):
        if label in labels[:number]:
            yield f'programs[{number}]', (
                f'{label!r} is also the name of a program before it; give it '
                'another one with the key name')
    for number, pair in enumerate(experiment.interactions):
        where = f'interactions[{number}]'
        if len(pair) != 2 or len(set(pair)) != 2:
            yield where, 'must have the names of two different choices'
        for name in pair:
            if name not in experiment.choices:
                yield where, (f'{name[:64]!r} is not a choice'
                              + words.suggest(name, experiment.choices))


def _choice_faults(experiment: Experiment) -> Iterator[tuple[str, str]]:
    """Find faults of choices: the place, and the fault."""
    known = ['base', *(field.name for field in dataclasses.fields(
        profiles.Profile) if field.name != 'extra_specs')]
    if not 1 <= len(experiment.choices) <= MAX_CHOICES:
        yield 'choices', f'must have 1 to {MAX_CHOICES} choices'
    owners: dict[str, str] = {}
    for name, own in experiment.choices.items():
        where = f'choices[{name!r}]'
        if not 1 <= len(own) <= MAX_VALUES:
            yield where, f'must have 1 to {MAX_VALUES} values besides {TODAY}'
        if TODAY in own:
            yield where, (f'must not name the value {TODAY}, which every '
                          'choice has')
        for value, change in own.items():
            place = f'{where}[{value!r}]'
            if not change.keys:
                yield place, 'changes nothing'
            for key in change.profile:
                if key not in known:
                    yield f'{place}.profile', (
                        f'{key[:64]!r} is not a key of profiles that a choice '
                        'can change' + words.nearest(key, known))
            if change.host and not experiment.apply:
                yield f'{place}.host', (
                    'needs the key apply, the command that brings these '
                    'settings to a host')
            for key in change.keys:
                other = owners.setdefault(key, name)
                if other != name:
                    yield 'choices', (
                        f'{other!r} and {name!r} both set {key}; what is '
                        'changed together must be one choice')

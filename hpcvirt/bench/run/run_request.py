# SPDX-License-Identifier: Apache-2.0

"""Requests of users: a benchmark, a variant and settings."""

import dataclasses
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.catalogue import definition as definitions
from hpcvirt.bench.model import metric_definition
from hpcvirt.bench.model import record


@dataclasses.dataclass(frozen=True)
class Setting:
    """A size, a number of ranks or threads, or a path.

    :ivar benchmark: None if it is for all benchmarks that have the key
    """

    key: str
    value: str
    benchmark: str | None = None

    def is_for(self, definition: definitions.Definition) -> bool:
        if self.benchmark is not None:
            return self.benchmark == definition.name
        return self.key in {'ranks', 'threads', *definition.size,
                            *(path.name for path in definition.paths)}


@dataclasses.dataclass(frozen=True)
class RunRequest:
    """A benchmark to run.

    :mod:`hpcvirt.bench.run.run_spec` makes the jobs for a machine from it.

    :ivar launch: state of the guest to measure, None for any
    :ivar study: the study that it belongs to, None if it belongs to none
    :ivar case: the case of that study
    :ivar mpi_options: further options of mpirun
    """

    definition: definitions.Definition
    variant: definitions.Variant
    settings: Mapping[str, str] = dataclasses.field(default_factory=dict)
    launch: record.Launch | None = None
    study: str | None = None
    case: str | None = None
    mpi_options: tuple[str, ...] = ()


def find(names: Iterable[str], settings: Sequence[Setting],
         launch: record.Launch | None = None) -> tuple[RunRequest, ...]:
    """Look up the benchmarks that a user names.

    :param names: ``NAME`` or ``NAME/VARIANT``
    :raises InvalidInput: for an unknown benchmark or variant
    """
    return tuple(
        RunRequest(definition, variant, settings_of(definition, settings),
                   launch)
        for definition, variant in map(catalogue.find, names))


def read_settings(words: Iterable[str], option: str,
                  of_benchmarks: bool = False) -> tuple[Setting, ...]:
    """Read the settings that an option gives.

    :param words: ``KEY=VALUE``, or ``NAME:KEY=VALUE``
    :param option: name of the option, for messages
    :param of_benchmarks: each word begins with the NAME of a benchmark
    :raises InvalidInput: for any other form, or an unknown benchmark
    """
    form = 'NAME:KEY=VALUE' if of_benchmarks else 'KEY=VALUE'
    found = []
    for word in words:
        left, equals, value = word.partition('=')
        name, colon, key = left.rpartition(':') if of_benchmarks else (
            '', '', left)
        if not (equals and key and value) or of_benchmarks != bool(colon):
            raise exception.InvalidInput(f'{option} {word}', f'not {form}')
        found.append(Setting(
            key, value, catalogue.get(name).name if colon else None))
    return tuple(found)


def list_settings(given: Mapping[str, str]) -> tuple[Setting, ...]:
    """Return the settings that a document gives."""
    return tuple(Setting(key, value) for key, value in given.items())


def settings_of(definition: definitions.Definition,
                settings: Iterable[Setting]) -> dict[str, str]:
    """Return the settings for a benchmark; the last value of a key counts."""
    return {setting.key: setting.value for setting in settings
            if setting.is_for(definition)}


def check_used(benchmarks: Sequence[definitions.Definition],
               settings: Iterable[Setting], option: str) -> None:
    """Check that each setting is for one of the benchmarks.

    :param option: how the settings are given, for errors
    :raises InvalidInput: for the first setting that is not
    """
    for setting in settings:
        if not any(setting.is_for(definition) for definition in benchmarks):
            raise exception.InvalidInput(
                f'{option} {setting.key}',
                'none of the named benchmarks has it')


def check_bounds(benchmarks: Iterable[definitions.Definition],
                 metrics: Iterable[str], option: str) -> None:
    """Check that each metric with a bound is one of the benchmarks'.

    :param option: how the bounds are given, for errors
    :raises InvalidInput: for the first metric that is not
    """
    figures: list[metric_definition.MetricDefinition] = []
    for definition in benchmarks:
        figures += definition.metrics
    for metric in metrics:
        if metric_definition.find(figures, metric) is None:
            known = dict.fromkeys(figure.form for figure in figures)
            raise exception.InvalidInput(
                f'{option} {metric}', 'none of the named benchmarks has this '
                f'metric; they have {", ".join(known)}')

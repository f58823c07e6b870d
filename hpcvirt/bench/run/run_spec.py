# SPDX-License-Identifier: Apache-2.0

"""One benchmark, ready to be run the same way on both sides."""

import dataclasses
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt.bench.catalogue import definition as definitions
from hpcvirt.bench.catalogue import sizing
from hpcvirt.bench.execute import cpu_affinity
from hpcvirt.bench.parsers import expectation
from hpcvirt.bench.parsers import parser
from hpcvirt.bench.run import run_request as requests
from hpcvirt.bench.run import target as targets

#: Lets Open MPI start as root, which it refuses by default: many guests have
#: no other user.
AS_ROOT = {'OMPI_ALLOW_RUN_AS_ROOT': '1',
           'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': '1'}


@dataclasses.dataclass(frozen=True)
class RunSpec:
    """A benchmark with every placeholder filled.

    :ivar values: placeholder to value: sizes, ranks, threads
    :ivar prepare: commands (argument lists) that run before and are not
        measured
    :ivar inputs: name to content of the input files in the job's directory
    :ivar output: ``stdout``, ``stderr`` or the name of the file to parse
    :ivar expect: parameters that the output must print
    :ivar builds: commands (argument lists) that build ``products``
    :ivar products: files that must be the same on both sides
    :ivar paths: files and directories that the user supplies
    """

    definition: definitions.Definition
    variant: definitions.Variant
    values: Mapping[str, str]
    command: tuple[str, ...]
    environment: Mapping[str, str]
    prepare: tuple[tuple[str, ...], ...]
    inputs: Mapping[str, bytes]
    output: str
    expect: Mapping[str, str]
    builds: tuple[tuple[str, ...], ...] = ()
    products: tuple[str, ...] = ()
    paths: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def parameters(self) -> dict[str, str]:
        return {**self.values, **self.expect}


@dataclasses.dataclass(frozen=True)
class JobSpec:
    """One job of a sample; most samples are a single job.

    :ivar target: where the job is started
    :ivar others: where the job starts further processes, by MPI; its files
        are copied there
    """

    run: RunSpec
    target: targets.Target
    others: tuple[targets.Target, ...] = ()

    @property
    def command(self) -> tuple[str, ...]:
        return self.command_on(self.target)

    def command_on(self, target: targets.Target) -> tuple[str, ...]:
        """Return the command, confined to the CPUs of one of the targets."""
        command = self.run.command
        if self.binds_ranks:
            command = cpu_affinity.bind_ranks(command)
        return (*target.prefix, *command)

    @property
    def targets(self) -> tuple[targets.Target, ...]:
        return (self.target, *self.others)

    @property
    def binds_ranks(self) -> bool:
        """Whether each rank binds itself.

        The benchmark says so, or mpirun would ignore the prefix.
        """
        return cpu_affinity.is_bound_by_rank(self.run.command) or (
            self.run.variant.spans and all(
                target.cpus for target in self.targets))

    @property
    def cores_used(self) -> int | None:
        """The number of CPUs that the ranks use, None if unknown."""
        counts = [target.cpu_count for target in self.targets]
        workers = (int(self.run.values['ranks'])
                   * int(self.run.values['threads']))
        known = [count for count in counts if count is not None]
        return min(workers, sum(known)) if len(known) == len(counts) else None

    @property
    def limit_s(self) -> int:
        return self.run.definition.time_limit_s

    @property
    def label(self) -> str:
        return self.target.label


def make(request: requests.RunRequest, machine: sizing.Machine,
         hosts: Sequence[str] = ()) -> RunSpec:
    """Fill the placeholders of a definition for a machine.

    :param hosts: the value of ``{hosts}``
    :raises InvalidInput: for an unknown setting, a missing path, a machine
        that is too small, or a parser that does not exist
    """
    definition, variant = request.definition, request.variant
    settings = request.settings
    paths = {path.name: settings[path.name] for path in definition.paths
             if path.name in settings}
    sizes = {name: value for name, value in settings.items()
             if name not in paths}
    values = definitions.compute_sizes(definition, variant, machine, sizes)
    filled = {**values, **paths}
    for path in definition.paths:
        if path.name not in filled and any(
                f'{{{path.name}}}' in text for text in variant.texts):
            raise exception.InvalidInput(
                definition.name, f'{path.name} is not set ({path.help}); '
                f'give --set {path.name}=PATH')
    build = variant.build
    expect = definitions.expectations(definition, values)
    # A parser that does not exist must not show after the first job.
    parsed = parser.get(definition.parser, definition.lines)
    expectation.normalize(parsed.keys, expect, definition.name)
    return RunSpec(
        definition=definition, variant=variant, values=values,
        command=definitions.arguments(variant.command, filled, hosts),
        environment={**AS_ROOT, **{
            name: definitions.fill(text, filled)
            for name, text in variant.environment.items()}},
        prepare=tuple(definitions.arguments(words, filled)
                      for words in variant.prepare),
        inputs={name: definitions.fill(text, filled).encode()
                for name, text in definition.files.items()},
        output=variant.output,
        expect=expect,
        builds=tuple(definitions.arguments(words, filled)
                     for words in build.commands) if build else (),
        paths=paths,
        products=tuple(definitions.fill(text, filled)
                       for text in build.products) if build else ())

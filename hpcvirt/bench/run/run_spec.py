# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""One benchmark, ready to be run the same way in both arms."""

import dataclasses
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt.bench.catalogue import definition
from hpcvirt.bench.catalogue import sizing

#: Open MPI refuses to start as root otherwise; guests are often root's.
AS_ROOT = {'OMPI_ALLOW_RUN_AS_ROOT': '1',
           'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': '1'}


@dataclasses.dataclass(frozen=True)
class Task:
    """What is run, with every placeholder filled.

    :ivar prepare: argument lists that are run before and not measured
    :ivar inputs: files that the program finds beside it
    :ivar output: ``stdout``, ``stderr`` or the file that is parsed
    :ivar expect: what the parser is told to expect
    :ivar builds: argument lists that make ``products``
    :ivar products: files that must be the same in both arms
    """

    made: definition.Definition
    variant: definition.Variant
    values: Mapping[str, str]
    command: tuple[str, ...]
    environment: Mapping[str, str]
    prepare: tuple[tuple[str, ...], ...]
    inputs: Mapping[str, bytes]
    output: str
    expect: Mapping[str, str]
    builds: tuple[tuple[str, ...], ...] = ()
    products: tuple[str, ...] = ()

    @property
    def parameters(self) -> dict[str, str]:
        return {**self.values, **self.expect}


def make(made: definition.Definition, variant_name: str | None,
         machine: sizing.Machine, settings: Mapping[str, str],
         hosts: Sequence[str] = ()) -> Task:
    """Fill a definition for a machine.

    :param settings: sizes, ranks, threads and paths that the user gave
    :param hosts: what ``{hosts}`` stands for
    :raises InvalidInput: for an unknown setting, a path that is missing, or
        a machine too small
    """
    variant = made.variant(variant_name)
    paths = {path.name: settings[path.name] for path in made.paths
             if path.name in settings}
    sizes = {name: value for name, value in settings.items()
             if name not in paths}
    values = definition.sized(made, variant, machine, sizes)
    filled = {**values, **paths}
    for path in made.paths:
        if path.name not in filled and _uses(variant, path.name):
            raise exception.InvalidInput(
                made.name, f'{path.name} is not set ({path.help}); give '
                f'--set {path.name}=PATH')
    build = variant.build
    return Task(
        made=made, variant=variant, values=values,
        command=definition.arguments(variant.command, filled, hosts),
        environment={**AS_ROOT, **{
            name: definition.fill(text, filled)
            for name, text in variant.environment.items()}},
        prepare=tuple(definition.arguments(words, filled)
                      for words in variant.prepare),
        inputs={name: definition.fill(text, filled).encode()
                for name, text in made.files.items()},
        output=variant.output,
        expect=definition.expectations(made, values),
        builds=tuple(definition.arguments(words, filled)
                     for words in build.commands) if build else (),
        products=tuple(definition.fill(text, filled)
                       for text in build.products) if build else ())


def _uses(variant: definition.Variant, name: str) -> bool:
    words = [*variant.command, *variant.environment.values()]
    words.extend(word for line in variant.prepare for word in line)
    if variant.build is not None:
        words.extend(variant.build.products)
        words.extend(word for line in variant.build.commands for word in line)
    return any(f'{{{name}}}' in word for word in words)

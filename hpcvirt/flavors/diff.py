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

"""Compare planned flavors with the flavors of a cloud.

hpcvirt changes only flavors with its mark (``hpcvirt:generated_by``). This
module decides on a :class:`Step` for each planned flavor, and
:mod:`hpcvirt.cloud.flavors` carries it out.
"""

import dataclasses
import enum
from collections.abc import Iterable
from collections.abc import Sequence

from hpcvirt.flavors import catalogue
from hpcvirt.flavors import names
from hpcvirt.specs import vocabulary


class Action(enum.StrEnum):
    """The action that a planned flavor needs.

    ``complete`` adds the extra specs of a flavor that an earlier run created
    without them. A flavor that ``differs`` is changed only if the operator
    asks for it, and a ``foreign`` one, which hpcvirt did not create, never.
    """

    CREATE = 'create'
    COMPLETE = 'complete'
    SAME = 'same'
    DIFFERS = 'differs'
    FOREIGN = 'foreign'


@dataclasses.dataclass(frozen=True, slots=True)
class Existing:
    """A flavor of the cloud.

    :ivar id: Nova's flavor id
    :ivar description: empty if there is none
    """

    id: str
    flavor: catalogue.Flavor
    description: str = ''
    ephemeral_gib: int = 0
    swap_mib: int = 0
    public: bool = True


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """The action that one planned flavor needs, and why.

    :ivar existing: the flavor of that name in the cloud
    :ivar differences: how that flavor differs from the plan, in words
    :ivar edited: whether it was changed after hpcvirt created it
    """

    action: Action
    flavor: catalogue.Flavor
    existing: Existing | None = None
    differences: tuple[str, ...] = ()
    edited: bool = False

    @property
    def sizes_differ(self) -> bool:
        """Whether sizes differ, which Nova can change only in a new flavor."""
        return self.existing is not None and (
            _sizes(self.existing) != _sizes(Existing('', self.flavor)))


def description(flavor: catalogue.Flavor) -> str:
    """Return the description of a flavor that hpcvirt creates."""
    return (f'{flavor.vcpus} dedicated CPUs, {flavor.ram_mib} MiB, made by '
            'hpcvirt')


def steps(wanted: Sequence[catalogue.Flavor],
          existing: Iterable[Existing]) -> tuple[Step, ...]:
    """Compare the planned flavors, in their order, with existing ones."""
    by_name = {item.flavor.name: item for item in existing}
    return tuple(_step(flavor, by_name.get(flavor.name))
                 for flavor in wanted)


def left_over(wanted: Sequence[catalogue.Flavor],
              existing: Iterable[Existing]) -> tuple[str, ...]:
    """Name the flavors that hpcvirt created and that are not planned."""
    names_wanted = {flavor.name for flavor in wanted}
    return tuple(sorted(
        item.flavor.name for item in existing
        if item.flavor.name not in names_wanted and is_ours(item)))


def is_ours(existing: Existing) -> bool:
    """Tell whether a flavor has hpcvirt's mark."""
    row = vocabulary.GENERATED_BY
    mark = existing.flavor.extra_specs.get(row.name)
    return mark is not None and row.accepts(mark)


def _step(flavor: catalogue.Flavor, existing: Existing | None) -> Step:
    if existing is None:
        return Step(Action.CREATE, flavor)
    differences = tuple(_differences(flavor, existing))
    if is_ours(existing):
        action = Action.DIFFERS if differences else Action.SAME
        return Step(action, flavor, existing, differences,
                    is_edited(existing.flavor))
    if (not existing.flavor.extra_specs
            and existing.description == description(flavor)
            and _sizes(existing) == _sizes(Existing('', flavor))):
        return Step(Action.COMPLETE, flavor, existing)
    return Step(Action.FOREIGN, flavor, existing, differences)


def _differences(flavor: catalogue.Flavor,
                 existing: Existing) -> Iterable[str]:
    wanted_sizes = _sizes(Existing('', flavor))
    for label, wanted in wanted_sizes.items():
        found = _sizes(existing)[label]
        if found != wanted:
            yield f'{label} is {found}, planned {wanted}'
    mark = vocabulary.GENERATED_BY.name
    specs = existing.flavor.extra_specs
    for key in sorted({*specs, *flavor.extra_specs} - {mark}):
        if key not in specs:
            yield f'{key} is missing, planned {flavor.extra_specs[key]}'
        elif key not in flavor.extra_specs:
            yield f'{key} is {specs[key]}, planned without'
        elif specs[key] != flavor.extra_specs[key]:
            yield f'{key} is {specs[key]}, planned {flavor.extra_specs[key]}'


def _sizes(existing: Existing) -> dict[str, int]:
    return {'vCPUs': existing.flavor.vcpus, 'RAM': existing.flavor.ram_mib,
            'disk': existing.flavor.disk_gib,
            'ephemeral disk': existing.ephemeral_gib,
            'swap': existing.swap_mib}


def is_edited(flavor: catalogue.Flavor) -> bool:
    """Tell whether the digest in the mark differs from the content."""
    mark = flavor.extra_specs[vocabulary.GENERATED_BY.name]
    digest = mark.partition('+')[2]
    specs = {key: value for key, value in flavor.extra_specs.items()
             if key != vocabulary.GENERATED_BY.name}
    return bool(digest) and digest != names.content_digest(
        flavor.vcpus, flavor.ram_mib, flavor.disk_gib, specs)

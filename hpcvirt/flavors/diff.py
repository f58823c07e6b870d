# SPDX-License-Identifier: Apache-2.0

"""Compare planned flavors with the flavors of a cloud.

hpcvirt changes only flavors with its mark (``hpcvirt:generated_by``). It does
not change what it did not set: other extra specs, access of other projects,
ephemeral and swap disks, the RX/TX factor and the description. This module
decides on a :class:`FlavorChange` for each planned flavor, and
:mod:`hpcvirt.cloud.flavors` carries it out.
"""

import dataclasses
import enum
import itertools
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Sequence

from hpcvirt.flavors import catalogue
from hpcvirt.flavors import profile
from hpcvirt.model import flavor as flavor_model
from hpcvirt.specs import vocabulary

#: The search for the keys that the digest covers tries all subsets of the
#: other keys; with more than this many, it is not made.
_MAX_FOREIGN_KEYS = 12


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
    :ivar rxtx_factor: the factor of its bandwidth; None for the default
    :ivar projects: the projects that may use it if it is not public
    """

    id: str
    flavor: flavor_model.Flavor
    description: str = ''
    ephemeral_gib: int = 0
    swap_mib: int = 0
    public: bool = True
    rxtx_factor: float | None = None
    projects: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class FlavorChange:
    """The action that one planned flavor needs, and why.

    :ivar existing: the flavor of that name in the cloud
    :ivar differences: how that flavor differs from the plan, in words
    :ivar obsolete: the extra specs that hpcvirt set for an earlier plan
    :ivar kept: the extra specs that hpcvirt did not set
    :ivar edited: whether it was changed after hpcvirt created it
    """

    action: Action
    flavor: flavor_model.Flavor
    existing: Existing | None = None
    differences: tuple[str, ...] = ()
    obsolete: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    edited: bool = False

    @property
    def needs_new_flavor(self) -> bool:
        """Whether something differs that Nova cannot change in a flavor."""
        return self.existing is not None and (
            _sizes(self.existing.flavor) != _sizes(self.flavor)
            or _must_become_private(self.flavor, self.existing))

    @property
    def missing_projects(self) -> tuple[str, ...]:
        """The planned projects that may not use the existing flavor yet."""
        return _missing_projects(self.flavor, self.existing)


def description(flavor: flavor_model.Flavor) -> str:
    """Return the description of a flavor that hpcvirt creates."""
    return (f'{flavor.vcpus} dedicated CPUs, {flavor.ram_mib} MiB, made by '
            'hpcvirt')


def steps(wanted: Sequence[flavor_model.Flavor],
          existing: Iterable[Existing]) -> tuple[FlavorChange, ...]:
    """Compare the planned flavors, in their order, with existing ones."""
    by_name = {item.flavor.name: item for item in existing}
    return tuple(_step(flavor, by_name.get(flavor.name))
                 for flavor in wanted)


def find_left_over(wanted: Sequence[flavor_model.Flavor],
                   existing: Iterable[Existing]) -> tuple[Existing, ...]:
    """Find the flavors that hpcvirt created and that are not planned.

    :returns: the flavors, sorted by name
    """
    names_wanted = {flavor.name for flavor in wanted}
    found = [item for item in existing
             if item.flavor.name not in names_wanted and is_ours(item)]
    return tuple(sorted(found, key=lambda item: item.flavor.name))


def is_ours(existing: Existing) -> bool:
    """Tell whether a flavor has hpcvirt's mark."""
    row = vocabulary.GENERATED_BY
    mark = existing.flavor.extra_specs.get(row.name)
    return mark is not None and row.accepts(mark)


def _step(flavor: flavor_model.Flavor,
          existing: Existing | None) -> FlavorChange:
    if existing is None:
        return FlavorChange(Action.CREATE, flavor)
    if not is_ours(existing):
        return _foreign(flavor, existing)
    covered = _covered_by_mark(existing.flavor)
    ours = covered if covered is not None else {
        key for key in existing.flavor.extra_specs
        if key in flavor.extra_specs or profile.is_taken(key)}
    differences = tuple(_differences(flavor, existing, ours))
    others = set(existing.flavor.extra_specs) - set(flavor.extra_specs)
    return FlavorChange(
        Action.DIFFERS if differences else Action.SAME, flavor, existing,
        differences, tuple(sorted(others & ours)),
        tuple(sorted(others - ours)), covered is None)


def _foreign(flavor: flavor_model.Flavor, existing: Existing) -> FlavorChange:
    if (not existing.flavor.extra_specs
            and existing.description == description(flavor)
            and not (existing.ephemeral_gib or existing.swap_mib)
            and _sizes(existing.flavor) == _sizes(flavor)):
        return FlavorChange(Action.COMPLETE, flavor, existing)
    return FlavorChange(Action.FOREIGN, flavor, existing, tuple(_differences(
        flavor, existing, existing.flavor.extra_specs)))


def _differences(flavor: flavor_model.Flavor, existing: Existing,
                 ours: Collection[str]) -> Iterable[str]:
    """Describe each difference in what a plan decides.

    :param ours: the extra specs that may be removed
    """
    wanted_sizes = _sizes(flavor)
    for label, size in _sizes(existing.flavor).items():
        if size != wanted_sizes[label]:
            yield f'{label} is {size}, planned {wanted_sizes[label]}'
    if _must_become_private(flavor, existing):
        yield 'access is public, planned private'
    for project in _missing_projects(flavor, existing):
        yield f'project {project} has no access'
    mark = vocabulary.GENERATED_BY.name
    specs = existing.flavor.extra_specs
    for key in sorted({*specs, *flavor.extra_specs} - {mark}):
        if key not in specs:
            yield f'{key} is missing, planned {flavor.extra_specs[key]}'
        elif key not in flavor.extra_specs:
            if key in ours:
                yield f'{key} is {specs[key]}, planned without'
        elif specs[key] != flavor.extra_specs[key]:
            yield f'{key} is {specs[key]}, planned {flavor.extra_specs[key]}'


def _sizes(flavor: flavor_model.Flavor) -> dict[str, int]:
    return {'vCPUs': flavor.vcpus, 'RAM': flavor.ram_mib,
            'disk': flavor.disk_gib}


def _must_become_private(flavor: flavor_model.Flavor,
                         existing: Existing) -> bool:
    return flavor.projects is not None and existing.public


def _missing_projects(flavor: flavor_model.Flavor,
                      existing: Existing | None) -> tuple[str, ...]:
    if existing is None or existing.public:
        return ()
    return tuple(project for project in flavor.projects or ()
                 if project not in existing.projects)


def _covered_by_mark(flavor: flavor_model.Flavor) -> set[str] | None:
    """Find the extra specs that hpcvirt set, by the digest in its mark.

    :returns: their keys; None if the digest matches no choice of them, which
        means that somebody has changed what hpcvirt set
    """
    name = vocabulary.GENERATED_BY.name
    digest = flavor.extra_specs[name].partition('+')[2]
    specs = {key: value for key, value in flavor.extra_specs.items()
             if key != name}
    if not digest:
        return set(flavor.extra_specs)
    others = [key for key in specs if not profile.is_taken(key)]
    if len(others) > _MAX_FOREIGN_KEYS:
        return None
    for number in range(len(others) + 1):
        for left_out in itertools.combinations(others, number):
            covered = {key: value for key, value in specs.items()
                       if key not in left_out}
            if digest == catalogue.content_digest(
                    flavor.vcpus, flavor.ram_mib, flavor.disk_gib, covered):
                return {*covered, name}
    return None


def is_edited(flavor: flavor_model.Flavor) -> bool:
    """Tell whether somebody has changed what hpcvirt set."""
    return _covered_by_mark(flavor) is None

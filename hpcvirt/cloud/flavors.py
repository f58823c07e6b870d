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

"""Read the flavors of a cloud, create flavors, and change our own."""

from collections.abc import Iterator
from typing import Any

from hpcvirt import exception
from hpcvirt.cloud import session
from hpcvirt.flavors import catalogue
from hpcvirt.flavors import diff

#: Flavors requested from the API at once; it may return fewer.
PAGE = 500


def read(nova: Any) -> list[diff.Existing]:
    """Read all flavors, including private ones that the user may see.

    :param nova: a client of :func:`hpcvirt.cloud.session.compute`
    :raises Unreachable: if the cloud does not answer
    """
    with session.one_line_errors():
        try:
            return [_existing(item) for item in _pages(nova)]
        except (AttributeError, KeyError, TypeError, ValueError) as exc:
            # The endpoint is not a Compute API, but a proxy or another
            # service, whose response the client does not validate.
            raise exception.Unreachable(
                'the service at the Compute endpoint does not list flavors '
                f'({type(exc).__name__}: {exc})') from exc


def _pages(nova: Any) -> Iterator[Any]:
    marker = None
    while True:
        page = nova.flavors.list(detailed=True, is_public=None, limit=PAGE,
                                 marker=marker)
        if not page:
            return
        yield from page
        # A server that ignores the marker would repeat the page.
        if page[-1].id == marker:
            return
        marker = page[-1].id


def _existing(item: Any) -> diff.Existing:
    return diff.Existing(
        id=item.id,
        flavor=catalogue.Flavor(
            item.name, int(item.vcpus), int(item.ram), int(item.disk),
            dict(getattr(item, 'extra_specs', None) or {})),
        description=getattr(item, 'description', None) or '',
        ephemeral_gib=int(getattr(item, 'ephemeral', 0) or 0),
        # An empty string means none before microversion 2.75.
        swap_mib=int(getattr(item, 'swap', 0) or 0),
        public=bool(getattr(item, 'is_public', True)))


def create(nova: Any, flavor: catalogue.Flavor,
           public: bool = True) -> None:
    """Create a flavor with its extra specs, or none at all.

    :raises Unreachable: if it cannot be created; the message says if an
        incomplete flavor could not be deleted
    """
    with session.one_line_errors():
        created = nova.flavors.create(
            flavor.name, flavor.ram_mib, flavor.vcpus, flavor.disk_gib,
            is_public=public, description=diff.description(flavor))
    try:
        with session.one_line_errors():
            created.set_keys(dict(flavor.extra_specs))
    except exception.Unreachable as first:
        # Without its extra specs it would be an ordinary flavor with the
        # name of a flavor with pinned CPUs.
        try:
            with session.one_line_errors():
                created.delete()
        except exception.Unreachable as second:
            raise exception.Unreachable(
                f'{first}; it exists without extra specs and could not be '
                f'deleted ({second}): run again to complete it') from first
        raise


def complete(nova: Any, step: diff.Step) -> None:
    """Set the extra specs of a flavor that was created without them.

    :raises Unreachable: if that fails
    """
    with session.one_line_errors():
        _find(nova, step).set_keys(dict(step.flavor.extra_specs))


def replace(nova: Any, step: diff.Step) -> None:
    """Change a flavor of hpcvirt to what the plan requires.

    Extra specs are changed in place, new ones first. Nova cannot change
    vCPUs, memory and disks: the flavor is then deleted and created again;
    instances keep the flavor with which they were created.

    :raises Unreachable: if that fails; the old flavor is restored if it is
        already deleted
    """
    existing = step.existing
    if existing is None or not diff.is_ours(existing):
        raise ValueError('only a flavor that hpcvirt created can be replaced')
    with session.one_line_errors():
        found = _find(nova, step)
        if not step.sizes_differ:
            found.set_keys(dict(step.flavor.extra_specs))
            removed = set(existing.flavor.extra_specs) - set(
                step.flavor.extra_specs)
            if removed:
                found.unset_keys(sorted(removed))
            return
        if existing.ephemeral_gib or existing.swap_mib:
            raise exception.Unreachable(
                'it has an ephemeral or swap disk that hpcvirt did not '
                'create; delete it by hand')
        found.delete()
    try:
        create(nova, step.flavor, existing.public)
    except exception.Unreachable as exc:
        try:
            create(nova, existing.flavor, existing.public)
        except exception.Unreachable as lost:
            raise exception.Unreachable(
                f'{exc}; the old flavor is deleted and could not be '
                f'restored ({lost})') from exc
        raise exception.Unreachable(
            f'{exc}; the old flavor was restored') from exc


def _find(nova: Any, step: diff.Step) -> Any:
    if step.existing is None:
        raise ValueError('there is no such flavor in the cloud')
    return nova.flavors.get(step.existing.id)

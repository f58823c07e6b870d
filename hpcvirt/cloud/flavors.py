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

"""The flavors of a cloud: read them, make them, change our own."""

from collections.abc import Iterator
from typing import Any

from hpcvirt import exception
from hpcvirt.cloud import session
from hpcvirt.flavors import catalogue
from hpcvirt.flavors import diff

#: How many the API is asked for at once; it may give fewer.
PAGE = 500


def read(nova: Any) -> list[diff.Existing]:
    """Read all flavors, private ones too as far as the user may see them.

    :param nova: what :func:`hpcvirt.cloud.session.compute` made
    :raises Unreachable: if the cloud cannot be asked
    """
    with session.one_line_errors():
        try:
            return [_existing(item) for item in _pages(nova)]
        except (AttributeError, KeyError, TypeError, ValueError) as exc:
            # What answers is no Compute API: a proxy's page, another
            # service. The client takes its answer apart unseen.
            raise exception.Unreachable(
                'what answers at the Compute endpoint does not list flavors '
                f'({type(exc).__name__}: {exc})') from exc


def _pages(nova: Any) -> Iterator[Any]:
    marker = None
    while True:
        page = nova.flavors.list(detailed=True, is_public=None, limit=PAGE,
                                 marker=marker)
        if not page:
            return
        yield from page
        # A server that does not know the marker would repeat itself.
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
    """Create a flavor with its extra specs, or leave nothing behind.

    :raises Unreachable: if it cannot be created; the message says so if
        something is left behind
    """
    with session.one_line_errors():
        made = nova.flavors.create(
            flavor.name, flavor.ram_mib, flavor.vcpus, flavor.disk_gib,
            is_public=public, description=diff.description(flavor))
    try:
        with session.one_line_errors():
            made.set_keys(dict(flavor.extra_specs))
    except exception.Unreachable as first:
        # Without its extra specs it would be an ordinary flavor under the
        # name of one with pinned CPUs.
        try:
            with session.one_line_errors():
                made.delete()
        except exception.Unreachable as second:
            raise exception.Unreachable(
                f'{first}; it exists without extra specs and could not be '
                f'deleted ({second}): run again to complete it') from first
        raise


def complete(nova: Any, step: diff.Step) -> None:
    """Give a flavor that was created in part its extra specs.

    :raises Unreachable: if that cannot be done
    """
    with session.one_line_errors():
        _find(nova, step).set_keys(dict(step.flavor.extra_specs))


def replace(nova: Any, step: diff.Step) -> None:
    """Make a flavor of ours what the plan wants.

    Extra specs are changed in place, new ones first. Where Nova cannot
    change something (vCPUs, memory, disks) the flavor is deleted and
    created again; instances keep what they were started with.

    :raises Unreachable: if that cannot be done; the old flavor is put back
        if it is already deleted
    """
    existing = step.existing
    if existing is None or not diff.is_ours(existing):
        raise ValueError('only a flavor that hpcvirt made can be replaced')
    with session.one_line_errors():
        found = _find(nova, step)
        if not step.sizes_differ:
            found.set_keys(dict(step.flavor.extra_specs))
            gone = set(existing.flavor.extra_specs) - set(
                step.flavor.extra_specs)
            if gone:
                found.unset_keys(sorted(gone))
            return
        if existing.ephemeral_gib or existing.swap_mib:
            raise exception.Unreachable(
                'it was given an ephemeral or swap disk by hand; delete it '
                'by hand too')
        found.delete()
    try:
        create(nova, step.flavor, existing.public)
    except exception.Unreachable as exc:
        try:
            create(nova, existing.flavor, existing.public)
        except exception.Unreachable as lost:
            raise exception.Unreachable(
                f'{exc}; the old flavor is deleted and could not be put '
                f'back ({lost})') from exc
        raise exception.Unreachable(
            f'{exc}; the old flavor was put back') from exc


def _find(nova: Any, step: diff.Step) -> Any:
    if step.existing is None:
        raise ValueError('there is no such flavor in the cloud')
    return nova.flavors.get(step.existing.id)

# SPDX-License-Identifier: Apache-2.0

"""Read the flavors of a cloud, create flavors, and change those of hpcvirt."""

import dataclasses
from collections.abc import Collection
from collections.abc import Mapping
from typing import Any

from novaclient import api_versions

from hpcvirt import exception
from hpcvirt.cloud import session
from hpcvirt.flavors import diff
from hpcvirt.model import flavor as flavor_model
from hpcvirt.specs import vocabulary


def read(nova: Any,
         wanted: Collection[str] = ()) -> list[diff.Existing]:
    """Read all flavors, including private ones that the user may see.

    :param nova: a client of :func:`hpcvirt.cloud.session.compute`
    :param wanted: the names of the flavors whose projects are read as well
    :raises Unreachable: if the cloud does not answer
    """
    with session.one_line_errors():
        try:
            found = [_existing(item) for item in session.list_all(
                nova.flavors, detailed=True, is_public=None)]
            return [_with_projects(nova, item)
                    if item.flavor.name in wanted and not item.public
                    else item for item in found]
        except (AttributeError, KeyError, TypeError, ValueError) as exc:
            # The endpoint is not a Compute API, but a proxy or another
            # service, whose response the client does not validate.
            raise exception.Unreachable(
                'the service at the Compute endpoint does not list flavors '
                f'({type(exc).__name__}: {exc})') from exc


def _existing(item: Any) -> diff.Existing:
    return diff.Existing(
        id=item.id,
        flavor=flavor_model.Flavor(
            item.name, int(item.vcpus), int(item.ram), int(item.disk),
            dict(getattr(item, 'extra_specs', None) or {})),
        description=getattr(item, 'description', None) or '',
        ephemeral_gib=int(getattr(item, 'ephemeral', 0) or 0),
        # An empty string means none before microversion 2.75.
        swap_mib=int(getattr(item, 'swap', 0) or 0),
        public=bool(getattr(item, 'is_public', True)),
        rxtx_factor=getattr(item, 'rxtx_factor', None))


def _with_projects(nova: Any, existing: diff.Existing) -> diff.Existing:
    return dataclasses.replace(existing, projects=tuple(sorted(
        item.tenant_id
        for item in nova.flavor_access.list(flavor=existing.id))))


def create(nova: Any, flavor: flavor_model.Flavor,
           like: diff.Existing | None = None) -> None:
    """Create a flavor with its extra specs and access; if that fails, none.

    :param like: a flavor whose properties that hpcvirt does not plan are
        copied
    :raises Unreachable: if it cannot be created; the message says if an
        incomplete flavor could not be deleted
    """
    public = flavor.projects is None
    more: dict[str, Any] = {'description': diff.description(flavor)}
    projects = list(flavor.projects or ())
    if like is not None:
        public = public and like.public
        projects += [item for item in like.projects if item not in projects]
        more.update(ephemeral=like.ephemeral_gib, swap=like.swap_mib)
        if like.rxtx_factor is not None:
            more['rxtx_factor'] = like.rxtx_factor
        if like.description != diff.description(like.flavor):
            more['description'] = like.description or None
    with session.one_line_errors():
        created = nova.flavors.create(
            flavor.name, flavor.ram_mib, flavor.vcpus, flavor.disk_gib,
            is_public=public, **more)
    try:
        with session.one_line_errors():
            _set_keys(nova, created, flavor.extra_specs)
            for project in () if public else projects:
                nova.flavor_access.add_tenant_access(created, project)
    except exception.Unreachable as first:
        # Without its extra specs it would be an ordinary flavor with the
        # name of a flavor with pinned CPUs.
        try:
            with session.one_line_errors():
                created.delete()
        except exception.Unreachable as second:
            raise exception.Unreachable(
                f'{first}; it exists in part and could not be deleted '
                f'({second}): run again to complete it') from first
        raise


def complete(nova: Any, step: diff.FlavorChange) -> None:
    """Set the extra specs of a flavor that was created without them.

    :raises Unreachable: if that fails
    """
    with session.one_line_errors():
        found = _find(nova, step)
        _set_keys(nova, found, step.flavor.extra_specs)
        for project in step.missing_projects:
            nova.flavor_access.add_tenant_access(found, project)


def replace(nova: Any, step: diff.FlavorChange) -> None:
    """Change a flavor of hpcvirt to what the plan requires.

    Extra specs and access are changed in place, new ones first. Nova cannot
    change vCPUs, memory and disks: the flavor is then deleted and created
    again, with a new id; instances keep the flavor with which they were
    created. Properties that hpcvirt did not set remain.

    :raises Unreachable: if that fails; the old flavor is restored if it is
        already deleted
    """
    existing = step.existing
    if existing is None or not diff.is_ours(existing):
        raise ValueError('only a flavor that hpcvirt created can be replaced')
    with session.one_line_errors():
        found = _find(nova, step)
        if not step.needs_new_flavor:
            _set_keys(nova, found, step.flavor.extra_specs)
            for project in step.missing_projects:
                nova.flavor_access.add_tenant_access(found, project)
            if step.obsolete:
                found.unset_keys(list(step.obsolete))
            return
        found.delete()
    kept = {key: existing.flavor.extra_specs[key] for key in step.kept}
    wanted = dataclasses.replace(
        step.flavor, extra_specs={**kept, **step.flavor.extra_specs})
    try:
        create(nova, wanted, existing)
    except exception.Unreachable as exc:
        try:
            create(nova, existing.flavor, existing)
        except exception.Unreachable as lost:
            raise exception.Unreachable(
                f'{exc}; the old flavor is deleted and could not be '
                f'restored ({lost})') from exc
        raise exception.Unreachable(
            f'{exc}; the old flavor was restored') from exc


def is_used(nova: Any, existing: diff.Existing) -> bool:
    """Whether an instance of any project has a flavor.

    :raises Unreachable: if Nova does not say it, as to users who are not
        administrators
    """
    with session.one_line_errors():
        return bool(nova.servers.list(
            search_opts={'all_tenants': True, 'flavor': existing.id},
            limit=1))


def delete(nova: Any, existing: diff.Existing) -> None:
    """Delete a flavor that hpcvirt created and that no instance has.

    :raises Unreachable: if an instance has it, or Nova refuses
    """
    if not diff.is_ours(existing):
        raise ValueError('only a flavor that hpcvirt created can be deleted')
    if is_used(nova, existing):
        raise exception.Unreachable('instances have it now')
    with session.one_line_errors():
        nova.flavors.delete(existing.id)


def _set_keys(nova: Any, flavor: Any, specs: Mapping[str, str]) -> None:
    """Set extra specs, those without a validator with an older version."""
    validated, others = {}, {}
    for name, text in specs.items():
        if vocabulary.is_unvalidated(name):
            others[name] = text
        else:
            validated[name] = text
    flavor.set_keys(validated)
    if others:
        before = nova.api_version
        nova.api_version = api_versions.APIVersion(
            session.UNVALIDATED_MICROVERSION)
        try:
            flavor.set_keys(others)
        finally:
            nova.api_version = before


def _find(nova: Any, step: diff.FlavorChange) -> Any:
    if step.existing is None:
        raise ValueError('there is no such flavor in the cloud')
    return nova.flavors.get(step.existing.id)

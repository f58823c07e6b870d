# SPDX-License-Identifier: Apache-2.0

"""One nova.conf for each compute host of a process.

Nova's configuration is global to a process, but compute hosts differ in their
dedicated CPUs, reserved resources and devices. :class:`OwnSettings` lets code
that runs on behalf of a compute host read the options of that host; all other
code reads the global options.
"""

import contextlib
import dataclasses
import functools
import threading
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any
from typing import Protocol

import fixtures

_TRACKER = 'nova.compute.resource_tracker.ResourceTracker'
_DRIVER = 'nova.virt.libvirt.driver.LibvirtDriver'

#: The methods that read the options of compute hosts, directly or indirectly.
READERS = (
    f'{_TRACKER}._update_available_resource',
    f'{_DRIVER}._cleanup_resize',
    f'{_DRIVER}._get_guest_config',
    f'{_DRIVER}._get_host_numa_topology',
    f'{_DRIVER}._get_pcpu_available',
    f'{_DRIVER}._get_vcpu_available',
    f'{_DRIVER}.check_can_live_migrate_destination',
    f'{_DRIVER}.update_provider_tree',
)

_local = threading.local()


@dataclasses.dataclass(frozen=True, slots=True)
class ComputeSettings:
    """The part of nova.conf in which compute hosts differ.

    :ivar cpu_dedicated_set: ``[compute]cpu_dedicated_set``, None if unset
    :ivar cpu_shared_set: ``[compute]cpu_shared_set``, None if unset
    :ivar reserved_host_memory_mb: ``[DEFAULT]reserved_host_memory_mb``
    :ivar reserved_huge_pages: ``[DEFAULT]reserved_huge_pages``, as texts of
        nova.conf: ``node:0,size:2048,count:64``
    :ivar device_spec: ``[pci]device_spec``, as JSON texts
    :ivar mdev_type: the only type of ``[devices]enabled_mdev_types``, None if
        unset
    :ivar mdev_addresses: ``device_addresses`` of its group
    :ivar mdev_class: ``mdev_class`` of its group
    """

    cpu_dedicated_set: str | None = None
    cpu_shared_set: str | None = None
    reserved_host_memory_mb: int = 0
    reserved_huge_pages: tuple[str, ...] = ()
    device_spec: tuple[str, ...] = ()
    mdev_type: str | None = None
    mdev_addresses: tuple[str, ...] = ()
    mdev_class: str = 'VGPU'

    def options(self) -> Mapping[tuple[str | None, str], object]:
        """Return (group, name) of options to the values that Nova reads."""
        return {
            ('compute', 'cpu_dedicated_set'): self.cpu_dedicated_set,
            ('compute', 'cpu_shared_set'): self.cpu_shared_set,
            (None, 'reserved_host_memory_mb'): self.reserved_host_memory_mb,
            (None, 'reserved_huge_pages'): [
                dict(pair.split(':', 1) for pair in pages.split(','))
                for pages in self.reserved_huge_pages],
            ('pci', 'device_spec'): list(self.device_spec),
            ('devices', 'enabled_mdev_types'):
                [self.mdev_type] if self.mdev_type else [],
            (f'mdev_{self.mdev_type}', 'device_addresses'):
                list(self.mdev_addresses),
            (f'mdev_{self.mdev_type}', 'mdev_class'): self.mdev_class,
        }


class ComputeHost(Protocol):
    """The attributes of a host that :func:`acting_for` needs.

    :ivar hostname: its name
    :ivar settings: its part of nova.conf
    :ivar physical_functions: addresses of its SR-IOV physical functions, which
        Nova would otherwise look for in the sysfs of this machine
    """

    hostname: str
    settings: ComputeSettings
    physical_functions: frozenset[str]


@contextlib.contextmanager
def acting_for(host: ComputeHost) -> Iterator[None]:
    """Let this thread read the options of a host."""
    outer = _local.__dict__.copy()
    _local.options = {**host.settings.options(), (None, 'host'): host.hostname}
    _local.physical_functions = host.physical_functions
    try:
        yield
    finally:
        _local.__dict__.clear()
        _local.__dict__.update(outer)


class OwnSettings(fixtures.Fixture):
    """Make Nova's compute code read the settings of its own host.

    The host is identified by its libvirt connection, a
    :class:`testing.libvirt.Connection`.
    """

    def _setUp(self) -> None:  # noqa: N802
        self._patch('oslo_config.cfg.ConfigOpts._get', _overlay)
        self.useFixture(fixtures.MonkeyPatch(
            'nova.pci.utils.is_physical_function', _is_physical_function))
        for reader in READERS:
            self._patch(reader, _on_behalf_of_host)

    def _patch(self, name: str,
               decorate: Callable[[Any], Callable[..., Any]]) -> None:
        module, attribute, method = name.rsplit('.', 2)
        owner = getattr(__import__(module, fromlist=[attribute]), attribute)
        self.useFixture(fixtures.MonkeyPatch(
            name, decorate(getattr(owner, method))))


def _overlay(get: Any) -> Callable[..., Any]:
    @functools.wraps(get)
    def wrapper(self: Any, name: str, group: Any = None,
                namespace: Any = None) -> Any:
        options = getattr(_local, 'options', None)
        if options is not None:
            key = (getattr(group, 'name', group), name)
            if key in options:
                return options[key]
        return get(self, name, group, namespace)
    return wrapper


def _is_physical_function(domain: str, bus: str, slot: str,
                          function: str) -> bool:
    address = f'{domain}:{bus}:{slot}.{function}'
    return address in getattr(_local, 'physical_functions', ())


def _on_behalf_of_host(method: Any) -> Callable[..., Any]:
    @functools.wraps(method)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        driver = getattr(self, 'driver', self)
        with acting_for(driver._host.get_connection()):
            return method(self, *args, **kwargs)
    return wrapper

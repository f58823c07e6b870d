# SPDX-License-Identifier: Apache-2.0

"""The base class of tests whose guests boot and accept ssh."""

import dataclasses
import itertools
from typing import Any

from tempest.lib.common import ssh

from hpcvirt.flavors import plan_document
from hpcvirt.tempest_plugin import base
from hpcvirt.tempest_plugin import plan

CONF = base.CONF
GIB = 1 << 30


@dataclasses.dataclass(frozen=True)
class TempestRebooter:
    """A rebooter for a server of a test."""

    test: base.HPCTestCase
    server_id: str

    def reboot(self) -> None:
        """Hard-reboot the server and wait until it is active again."""
        self.test.servers.reboot_server(self.server_id, type='HARD')
        self.test.wait_for_status(self.server_id, 'ACTIVE')


class GuestTestCase(base.HPCTestCase):
    """A test that boots the flavors of ``[hpcvirt]guest_plan_file``."""

    @classmethod
    def skip_checks(cls) -> None:
        super().skip_checks()
        cls.require_servers()
        cls.require('guest_plan_file')
        if not CONF.validation.run_validation:
            raise cls.skipException('[validation]run_validation is false')
        if not (CONF.hpcvirt.guest_network
                or CONF.compute.fixed_network_name):
            raise cls.skipException('[hpcvirt]guest_network is not set')

    @classmethod
    def resource_setup(cls) -> None:
        super().resource_setup()
        cls.plan_flavors = plan.load(CONF.hpcvirt.guest_plan_file).flavors

    def setUp(self) -> None:
        super().setUp()
        # By [validation]: a key pair, a security group that admits ssh, a
        # floating IP address.
        self.access = self.get_test_validation_resources(self.os_admin)
        self.address = ''

    @property
    def private_key(self) -> str:
        """The private key of this test's guests."""
        return str(self.access['keypair']['private_key'])

    def boot_guest(self, flavor: plan_document.FlavorSummary, image: str = '',
                   **request: Any) -> dict[str, Any]:
        """Boot a guest with the key of this test.

        :param image: the image's id; if empty, that of the guest tests
        """
        name = (CONF.hpcvirt.guest_network
                or CONF.compute.fixed_network_name)
        (network,) = self.os_admin.networks_client.list_networks(
            name=name)['networks']
        image_id = image or self.guest_image()
        arguments: dict[str, Any] = {
            'networks': [{'uuid': network['id']}],
            'key_name': self.access['keypair']['name'],
            'config_drive': True,
            'imageRef': image_id,
            **request}
        if self.access.get('security_group'):
            arguments['security_groups'] = [
                {'name': self.access['security_group']['name']}]
        with_disk = dataclasses.replace(flavor, disk_gib=max(
            flavor.disk_gib, self._disk_gib(image_id)))
        return self.boot(self.create_flavor(with_disk), **arguments)

    @staticmethod
    def guest_image() -> str:
        """Return the id of the image for guest tests."""
        return str(CONF.hpcvirt.guest_image_ref or CONF.compute.image_ref)

    def reach(self, server: dict[str, Any]) -> None:
        """Find the address at which :meth:`execute` reaches a guest."""
        floating = self.access.get('floating_ip')
        if floating:
            port = self.os_admin.ports_client.list_ports(
                device_id=server['id'])['ports'][0]
            self.os_admin.floating_ips_client.update_floatingip(
                floating['id'], port_id=port['id'])
            self.address = str(floating.get('ip')
                               or floating['floating_ip_address'])
        else:
            self.address = self.fixed_address(server)

    @staticmethod
    def fixed_address(server: dict[str, Any]) -> str:
        """Return the address of a guest in its network."""
        addresses = itertools.chain.from_iterable(
            server['addresses'].values())
        return str(next(addresses)['addr'])

    def execute(self, server: dict[str, Any], command: str) -> str:
        """Run a command in a guest; an error quotes the guest's console.

        :returns: the standard output of the command
        """
        if not self.address:
            self.reach(server)
        client = ssh.Client(
            self.address, CONF.validation.image_ssh_user,
            pkey=self.private_key,
            ssh_key_type=CONF.validation.ssh_key_type,
            ssh_allow_agent=False, timeout=CONF.validation.ssh_timeout,
            channel_timeout=CONF.validation.connect_timeout)
        try:
            return str(client.exec_command(command))
        except Exception as exc:
            raise AssertionError(
                f'{exc}; {self.console(server)}') from exc

    def console(self, server: dict[str, Any]) -> str:
        """Return the last lines of a guest's console, for a message."""
        console = self.servers.get_console_output(server['id'], length=40)
        return f'the last lines of the console:\n{console["output"]}'

    def _disk_gib(self, image: str) -> int:
        """Return the disk size that an image needs."""
        shown = self.os_admin.image_client_v2.show_image(image)
        size = shown.get('virtual_size') or shown.get('size') or 0
        return max(shown.get('min_disk') or 0, -(-size // GIB))

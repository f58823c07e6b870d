# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt.bench.execute import host_keys

OLD = (
    'ecdsa-sha2-nistp256 '
    'AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBPOVWIXL6OMWsLLa60'
    'dEicAqJEaL7y8WGUk5z+A+KwxNsQOrI09fvYrKkpnKQd1RGiHY0P7mwdyb5Vu3KrDW+R8=')
NEW = (
    'ssh-rsa '
    'AAAAB3NzaC1yc2EAAAADAQABAAABAQDtjEhtYJNN3rERCbPP9gRKtyTLsqnAqJrBmevM4b'
    'H54N/WCbYg27xVaVFG5qps9xnV/V1q8Xgx/hP57TBaokG8gDar7qlg+uZfs7t4lbYgxRh4'
    'nKjAqnuTOc7OTgCQ28HDcqQrQw9/U9xMjdQZKjt+1OAd7ezieaxfCpwmD9omURB+QUOAvh'
    'gou/3JuY1/0TG7n72OH3L4s/z3oPwac8iYkKBi3LWhY7x1CncMVu5IDTeIZQojISZ2yBRV'
    '/rnMQoOuKcBN1RMbqBMmL/xIpb0KAJonX8rxiNHd3viNu3npnvBGstNG5w5N++8EEd0FxV'
    'E051dbnAwhnwwR/z7spWAn')
BEGIN = '-----BEGIN SSH HOST KEY KEYS-----'
END = '-----END SSH HOST KEY KEYS-----'


class ConsoleTest(unittest.TestCase):
    def read(self, *lines: str) -> list[str]:
        return list(host_keys.parse_console('\r\n'.join(lines)))

    def test_the_keys_of_cloud_init_are_read(self) -> None:
        self.assertEqual([OLD, NEW], self.read(
            '[   12.3] cloud-init[700]: done', f'<14>{BEGIN}',
            f'{OLD} root@hpc-1', f'cloud-init[7]: {NEW}', END,
            'login: '))

    def test_the_last_boot_counts(self) -> None:
        self.assertEqual([NEW], self.read(
            BEGIN, OLD, END, 'booting', BEGIN, NEW, END))

    def test_what_is_not_finished_does_not_count(self) -> None:
        self.assertEqual([OLD], self.read(
            BEGIN, OLD, END, BEGIN, NEW[:50]))

    def test_keys_elsewhere_do_not_count(self) -> None:
        self.assertEqual([], self.read(NEW, BEGIN, END, NEW))

    def test_damaged_keys_do_not_count(self) -> None:
        self.assertEqual([NEW], self.read(
            BEGIN, OLD[:60], NEW[:-8], OLD.replace('256', '384', 1),
            'ssh-rsa AAAA', 'ssh-rsa !', 'ssh-x AAAAB3', NEW, END))

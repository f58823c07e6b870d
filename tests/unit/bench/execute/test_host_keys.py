# SPDX-License-Identifier: Apache-2.0

import unittest

import paramiko

from hpcvirt.bench.execute import host_keys

OLD, NEW = paramiko.ECDSAKey.generate(), paramiko.RSAKey.generate(2048)
BEGIN = '-----BEGIN SSH HOST KEY KEYS-----'
END = '-----END SSH HOST KEY KEYS-----'


def line(key: paramiko.PKey) -> str:
    return f'{key.get_name()} {key.get_base64()}'


class ConsoleTest(unittest.TestCase):
    def read(self, *lines: str) -> list[paramiko.PKey]:
        return list(host_keys.parse_console('\r\n'.join(lines)))

    def test_the_keys_of_cloud_init_are_read(self) -> None:
        self.assertEqual([OLD, NEW], self.read(
            '[   12.3] cloud-init[700]: done', f'<14>{BEGIN}',
            f'{line(OLD)} root@hpc-1', f'cloud-init[7]: {line(NEW)}', END,
            'login: '))

    def test_the_last_boot_counts(self) -> None:
        self.assertEqual([NEW], self.read(
            BEGIN, line(OLD), END, 'booting', BEGIN, line(NEW), END))

    def test_what_is_not_finished_does_not_count(self) -> None:
        self.assertEqual([OLD], self.read(
            BEGIN, line(OLD), END, BEGIN, line(NEW)[:50]))

    def test_keys_elsewhere_do_not_count(self) -> None:
        self.assertEqual([], self.read(line(NEW), BEGIN, END, line(NEW)))

    def test_damaged_keys_do_not_count(self) -> None:
        self.assertEqual([NEW], self.read(
            BEGIN, line(OLD)[:60], 'ssh-rsa AAAA', 'ssh-rsa !', 'ssh-x AAAAB3',
            line(NEW), END))

# SPDX-License-Identifier: Apache-2.0

"""Run the command of the site that brings settings to a host."""

import os
import pathlib
import subprocess
import tempfile

import yaml

from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt.tune import configurations
from hpcvirt.tune import experiment as experiments

#: The command may take this many times as long as a reboot.
_PATIENCE = 10


def apply(experiment: experiments.Experiment, folder: str, host: str,
          wanted: configurations.Configuration) -> None:
    """Bring the settings of a configuration to a host.

    :param folder: the folder of the document, where the command is run
    :raises Unreachable: if the command fails, with its last line
    """
    with tempfile.TemporaryDirectory(prefix='hpcvirt-') as scratch:
        filled = {'{host}': host}
        for name, plain in (('profile', wanted.content),
                            ('settings', wanted.host_values)):
            path = pathlib.Path(scratch, f'{name}.yaml')
            path.write_text(yaml.safe_dump(serialization.dump(plain)),
                            encoding='utf-8')
            filled[f'{{{name}}}'] = str(path)
        words = list(experiment.apply)
        for name, value in filled.items():
            words = [word.replace(name, value) for word in words]
        try:
            done = subprocess.run(
                words, cwd=folder or os.curdir, check=False,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=60 * _PATIENCE * experiment.reboot_minutes)
        except (OSError, subprocess.TimeoutExpired) as exc:
            raise exception.Unreachable(
                f'apply: the settings of {host} are not changed: {exc}'
            ) from exc
    if done.returncode:
        lines = done.stdout.decode('utf-8', 'replace').split('\n')
        last = next((line for line in reversed(lines) if line.strip()), '')
        raise exception.Unreachable(
            f'apply: the settings of {host} are not changed: {words[0]} ended '
            f'with status {done.returncode}: {last}')

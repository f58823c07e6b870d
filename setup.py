# SPDX-License-Identifier: Apache-2.0

import os
import subprocess
import sys

import setuptools


def require_version_source() -> None:
    """Exit with a one-line message where pbr would print a traceback.

    pbr takes the version from the environment, from PKG-INFO in an sdist, or
    from git.
    """
    if os.environ.get('PBR_VERSION') or os.path.exists('PKG-INFO'):
        return
    try:
        git = subprocess.run(['git', 'rev-parse', '--git-dir'],
                             capture_output=True, text=True, check=False)
    except FileNotFoundError:
        sys.exit('hpcvirt: the version is read from git, which is not '
                 'installed; install git, or set PBR_VERSION=0.0.1')
    if git.returncode:
        reason = ' '.join(git.stderr.split())
        sys.exit('hpcvirt: the version is read from git, which reports: '
                 f'{reason}; build in a clone, or set PBR_VERSION=0.0.1')


require_version_source()
setuptools.setup(setup_requires=['pbr>=6.1.1'], pbr=True)

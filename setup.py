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

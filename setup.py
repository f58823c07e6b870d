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


def say_why_there_is_no_version() -> None:
    """Leave with one line where pbr would leave with a traceback.

    pbr takes the version from git, or from PKG-INFO in an sdist, or from the
    environment.
    """
    if os.environ.get('PBR_VERSION') or os.path.exists('PKG-INFO'):
        return
    try:
        git = subprocess.run(['git', 'rev-parse', '--git-dir'],
                             capture_output=True, text=True, check=False)
    except FileNotFoundError:
        sys.exit('hpcvirt: the version comes from git, which is not '
                 'installed: install it, or set PBR_VERSION=0.0.1')
    if git.returncode:
        reason = ' '.join(git.stderr.split())
        sys.exit('hpcvirt: the version comes from git, which says: '
                 f'{reason}: build in a clone, or set PBR_VERSION=0.0.1')


say_why_there_is_no_version()
setuptools.setup(setup_requires=['pbr>=6.1.1'], pbr=True)

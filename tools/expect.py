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

"""Fail unless a distribution has the expected major version.

Usage: ``expect.py DISTRIBUTION MAJOR``.
"""

import sys
from importlib import metadata


def main(distribution: str, major: str) -> int:
    """Print and compare the installed version."""
    version = metadata.version(distribution)
    print(f'{distribution} {version}')
    if version.partition('.')[0] == major:
        return 0
    print(f'this environment must have {distribution} {major}')
    return 1


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))

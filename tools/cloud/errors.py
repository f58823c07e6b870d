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

"""The errors of the one-machine cloud."""


class CloudError(Exception):
    """A command failed; the message says why."""


class ServiceError(CloudError):
    """A service or program failed.

    :param name: the service
    :param what: what happened to the service
    :param tail: the last lines of its log
    """

    def __init__(self, name: str, what: str, tail: str) -> None:
        self.name = name
        lines = '\n'.join(f'    {line}' for line in tail.splitlines())
        super().__init__(f'{name} {what}; the last lines of its log:\n{lines}')

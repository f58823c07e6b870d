# SPDX-License-Identifier: Apache-2.0

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

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

"""Read a YAML or JSON file that an operator wrote."""

from typing import Any

import yaml

from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt.topology import document


class _Loader(yaml.SafeLoader):
    """A YAML loader that refuses a key that occurs twice."""

    def construct_mapping(self, node: yaml.MappingNode,
                          deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = (key_node.tag, str(key_node.value))
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f'the key {key[1][:64]!r} occurs twice',
                    key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


def read(path: str, most_bytes: int) -> Any:
    """Read the values of a file; every JSON file is a YAML file too.

    :param most_bytes: the largest file that is accepted
    :raises InvalidInput: if it cannot be read or is not YAML
    """
    data = document.content(path, most_bytes)
    if data.lstrip()[:1] in (b'{', b'['):
        # Much faster than YAML, and the errors are easier to understand.
        return serialization.json_value(data, path)
    try:
        return yaml.load(data.decode(), _Loader)  # noqa: S506
    except UnicodeDecodeError as exc:
        raise exception.InvalidInput(
            path, f'is not UTF-8 (byte {exc.start})') from exc
    except RecursionError as exc:
        raise exception.InvalidInput(path, 'is nested too deeply') from exc
    except (yaml.YAMLError, ValueError, TypeError) as exc:
        # ValueError: a date such as 2026-99-99. TypeError: a list as a key.
        raise exception.InvalidInput(path, f'is not YAML ({exc})') from exc

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

"""Write YAML that people read and change."""

from typing import Any

import yaml

from hpcvirt.deployment import tree


class _Dumper(yaml.SafeDumper):
    """Write text of several lines as it is, and lists below their key."""

    def increase_indent(self, flow: bool = False,
                        indentless: bool = False) -> None:
        """Indent lists, as ansible-lint wants them."""
        del indentless
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar('tag:yaml.org,2002:str', text,
                                   '|' if '\n' in text else None)


_Dumper.add_representer(str, _text)


def file(about: str, *documents: Any) -> str:
    """Write documents as the content of a file."""
    return tree.text(about) + ''.join(
        '---\n' + yaml.dump(document, Dumper=_Dumper, sort_keys=False,
                            width=10_000)
        for document in documents)

#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0

"""Write the files of a host as "hpcvirt host config --apply" does."""

from __future__ import annotations

DOCUMENTATION = """
module: host_files
short_description: Write the files of a host for the flavors of hpcvirt
description:
  - Writes files as C(hpcvirt host config --apply) does.
  - A file is replaced in one step and keeps its mode and its owner.
  - Each file that is replaced or removed is copied first, to a folder that
    only root can read.
  - Nothing is written outside the root, and no link to a file is followed.
  - Needs Python 3.8 on the host.
options:
  root:
    description: The root of an image. Empty for a running host.
    type: str
    default: ''
  files:
    description: The files to write. One that hpcvirt did not write is refused.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: The absolute path.
        type: str
        required: true
      content:
        description: The content.
        type: str
        required: true
      notify:
        description: What makes the file effective. The module does not use it.
        type: list
        elements: str
        default: []
  absent:
    description: Files of hpcvirt to remove.
    type: list
    elements: str
    default: []
  settings:
    description: Files of the site from which settings are removed.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: The absolute path.
        type: str
        required: true
      pattern:
        description: A regular expression of the settings.
        type: str
        required: true
      replacement:
        description: What replaces them.
        type: str
        required: true
author:
  - hpcvirt developers (@hpcvirt)
"""

EXAMPLES = """
- name: Write the files
  hpcvirt.hpc.host_files:
    files: "{{ hpcvirt_host_files }}"
    absent: "{{ hpcvirt_host_absent }}"
"""

RETURN = """
contents:
  description: Path -> content of each file that was there.
  type: dict
  returned: success
written:
  description: The paths of the files that were written.
  type: list
  elements: str
  returned: success
removed_at:
  description: Path -> time in seconds since the epoch when it was removed.
  type: dict
  returned: success
backup:
  description: The folder with copies of what was there before.
  type: str
  returned: if something was replaced or removed
"""

import os  # noqa: E402
import re  # noqa: E402

try:
    from ansible_collections.hpcvirt.hpc.plugins.module_utils import (
        rooted_files,  # noqa: H301
    )
except ImportError:  # the tests of hpcvirt have no collection
    from hpcvirt import rooted_files

#: The first line of a file that hpcvirt has written.
MARK = '# Written by "hpcvirt host config".'

#: Where copies are kept, relative to the root.
BACKUPS = 'var/lib/hpcvirt/backups'

OPTIONS = {
    'root': {'type': 'str', 'default': ''},
    'files': {
        'type': 'list', 'elements': 'dict', 'default': [], 'options': {
            'path': {'type': 'str', 'required': True},
            'content': {'type': 'str', 'required': True},
            'notify': {'type': 'list', 'elements': 'str', 'default': []}}},
    'absent': {'type': 'list', 'elements': 'str', 'default': []},
    'settings': {
        'type': 'list', 'elements': 'dict', 'default': [], 'options': {
            'path': {'type': 'str', 'required': True},
            'pattern': {'type': 'str', 'required': True},
            'replacement': {'type': 'str', 'required': True}}},
}


def write(parameters: dict, is_check: bool) -> dict:
    """Write the files, and return the result of the module.

    :param is_check: whether to write nothing
    :raises FileRefused: before anything is written
    """
    root = parameters['root'] or '/'
    wanted = {}
    for file in parameters['files']:
        wanted[file['path'].lstrip('/')] = file['content']
    for path in parameters['absent']:
        wanted[path.lstrip('/')] = None
    present = rooted_files.read_present(root, wanted)
    changes = []
    for path, after in wanted.items():
        before = present.get(path)
        if before is not None and not before.startswith(MARK):
            raise rooted_files.refuse_foreign(os.path.join(root, path))
        if before != after:
            changes.append(rooted_files.FileEdit(path, before, after))
    changes += find_settings(root, parameters['settings'])
    result = {'changed': bool(changes), 'contents': {
        f'/{path}': text for path, text in present.items()}}
    result['written'] = [f'/{change.path}' for change in changes
                         if change.after is not None]
    if changes and not is_check:
        kept = rooted_files.write(root, changes, BACKUPS)
        if kept is not None:
            result['backup'] = os.path.join(root, kept)
    result['removed_at'] = find_removed(root, parameters['absent'])
    return result


def find_settings(root: str, settings: list) -> list:
    """Find the changes that remove settings from files of the site."""
    before = rooted_files.read_present(
        root, [each['path'].lstrip('/') for each in settings])
    after = dict(before)
    for each in settings:
        path = each['path'].lstrip('/')
        if path in after:
            after[path] = re.sub(each['pattern'], each['replacement'],
                                 after[path])
    return [rooted_files.FileEdit(path, text, after[path])
            for path, text in before.items() if text != after[path]]


def find_removed(root: str, absent: list) -> dict:
    """Find when files were removed that are not there any more."""
    removed = {}
    if not os.path.lexists(root):
        return removed
    left = rooted_files.read_present(root, [
        path.lstrip('/') for path in absent])
    for path in absent:
        if path.lstrip('/') not in left:
            time = rooted_files.find_backup_time(root, path.lstrip('/'),
                                                 BACKUPS)
            if time is not None:
                removed[path] = time
    return removed


def main() -> None:
    """Run the module."""
    # The tests of hpcvirt have no Ansible.
    from ansible.module_utils.basic import AnsibleModule  # noqa: PLC0415

    module = AnsibleModule(OPTIONS, supports_check_mode=True)
    try:
        module.exit_json(**write(module.params, module.check_mode))
    except rooted_files.FileRefused as exc:
        module.fail_json(msg=str(exc))
    except OSError as exc:
        module.fail_json(msg=f'{exc.filename}: {exc.strerror}')


if __name__ == '__main__':
    main()

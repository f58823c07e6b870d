# SPDX-License-Identifier: Apache-2.0

"""Read a subunit stream from standard input and print a summary as JSON.

The cloud's Python environment runs it.
"""

import json
import sys

import subunit
import testtools


class Collector(testtools.StreamResult):
    """Sort tests by their outcome."""

    def __init__(self):
        super().__init__()
        self.passed = set()
        self.failed = set()
        self.texts = {}
        self.skipped = {}

    def status(self, test_id=None, test_status=None, file_name=None,
               file_bytes=None, **kwargs):
        del kwargs
        if test_id and file_name == 'reason' and file_bytes:
            self.skipped[test_id] = bytes(file_bytes).decode()
        elif test_id and file_name and file_bytes:
            # A long detail comes in pieces.
            texts = self.texts.setdefault(test_id, {})
            texts[file_name] = texts.get(file_name, b'') + bytes(file_bytes)
        if test_status == 'success':
            self.passed.add(test_id)
        elif test_status in ('fail', 'uxsuccess'):
            self.failed.add(test_id)
        elif test_status == 'skip':
            self.skipped.setdefault(test_id, 'no reason')

    def details(self, tests):
        """Return the details of these tests, without their logs."""
        return {test: '\n'.join(
            f'{name}:\n{text.decode(errors="replace")}'
            for name, text in self.texts.get(test, {}).items()
            if 'logging' not in name) for test in sorted(tests)}


def main():
    """Print the details of passed and failed tests and reasons of skips."""
    collector = Collector()
    subunit.ByteStreamToStreamResult(
        sys.stdin.buffer, non_subunit_name='stdout').run(collector)
    print(json.dumps({
        'passed': collector.details(collector.passed),
        'failed': collector.details(collector.failed),
        'skipped': {name: reason for name, reason
                    in collector.skipped.items()
                    if name not in collector.passed}}))


if __name__ == '__main__':
    main()

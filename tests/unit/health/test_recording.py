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

"""The files of the service."""

import pathlib
import tempfile
import unittest

from benchmarks import host_frames
from hpcvirt import exception
from hpcvirt.health import recording
from hpcvirt.health import signature


class RecordingTest(unittest.TestCase):

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(
            tempfile.TemporaryDirectory()))
        self.path = str(self.folder / 'frames')
        self.frames = list(host_frames.frames_of([{'system': 0.1}] * 3))

    def test_frames_are_appended_and_read(self):
        for frame in self.frames:
            recording.append(self.path, frame)
        self.assertEqual(self.frames, list(recording.read(self.path)))

    def test_a_line_that_was_interrupted_is_left_out(self):
        for frame in self.frames[:2]:
            recording.append(self.path, frame)
        whole = pathlib.Path(self.path).read_bytes()
        pathlib.Path(self.path).write_bytes(whole[:-30])
        self.assertEqual(self.frames[:1], list(recording.read(self.path)))
        recording.append(self.path, self.frames[2])
        self.assertEqual([self.frames[0], self.frames[2]],
                         list(recording.read(self.path)))

    def test_a_line_that_is_no_frame_is_named(self):
        recording.append(self.path, self.frames[0])
        for line in ('{}', '{"schema_version": 1}', '{"schema_version": 9}',
                     '[{}'):
            pathlib.Path(self.path).write_text(f'\n{line}\n')
            with self.assertRaisesRegex(exception.InvalidInput, 'line 2'):
                list(recording.read(self.path))

    def test_the_state_is_kept(self):
        state = signature.State()
        for frame in host_frames.frames_of([host_frames.SHOOTDOWNS] * 12):
            state, _ = signature.follow(state, frame)
        recording.save(self.path, state)
        self.assertEqual(state, recording.load(self.path))
        self.assertTrue(recording.load(self.path).reason)
        self.assertEqual(['frames'], [
            path.name for path in self.folder.iterdir()])

    def test_without_a_file_the_state_is_new(self):
        self.assertEqual(signature.State(), recording.load(self.path))

    def test_what_cannot_be_written_is_one_line(self):
        for act in (lambda: recording.save('/nowhere/x', signature.State()),
                    lambda: recording.append('/nowhere/x', self.frames[0])):
            with self.assertRaisesRegex(exception.InvalidInput,
                                        'cannot be written'):
                act()

    def test_what_is_put_aside_replaces_nothing(self):
        names = []
        for text in 'ab':
            pathlib.Path(self.path).write_text(text)
            names.append(recording.put_aside(self.path))
        self.assertEqual(['a', 'b'], [
            pathlib.Path(name).read_text() for name in names])

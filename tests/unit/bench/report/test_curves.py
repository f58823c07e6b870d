# SPDX-License-Identifier: Apache-2.0

import math
import xml.etree.ElementTree

import testtools

from hpcvirt.bench.model import judgement
from hpcvirt.bench.report import curves

#: A guest that is 10 % above native, and 30 % below a published ratio.
SIZES = (1, 4, 64, 4096, 4194304)
POINTS = [curves.Point(
    size, 2.0 * size, 2.2 * size, judgement.Interval(1.1, 1.05, 1.15),
    1.3 if size < 128 else None, 1.3 if size < 128 else 1.2)
    for size in SIZES]


def drawn(points):
    return xml.etree.ElementTree.fromstring(  # noqa: S314 - our result
        str(curves.draw(points, 'MB/s')))


def lines(drawing, kind):
    return [[tuple(map(float, point.split(',')))
             for point in line.get('points').split()]
            for line in drawing.iter('polyline')
            if line.get('class') == kind]


class TestCurve(testtools.TestCase):
    """A curve over message sizes, measured in its drawing."""

    def test_both_axes_are_logarithmic(self):
        native, = lines(drawn(POINTS), 'native')
        first, last = native[0], native[-1]
        for (x, y), size in zip(native, SIZES, strict=True):
            part = math.log(size) / math.log(SIZES[-1])
            self.assertAlmostEqual(
                first[0] + part * (last[0] - first[0]), x, delta=0.1)
            self.assertAlmostEqual(
                first[1] + part * (last[1] - first[1]), y, delta=0.2)

    def test_guest_and_published_are_above_native(self):
        drawing = drawn(POINTS)
        native, = lines(drawing, 'native')
        guest = lines(drawing, 'path')[0]
        published = lines(drawing, 'dots')[0]
        self.assertEqual(3, len(published))
        for number, place in enumerate(published):
            self.assertLess(place[1], guest[number][1])
            self.assertLess(guest[number][1], native[number][1])

    def test_a_bound_that_changes_is_a_step(self):
        bounds = lines(drawn(POINTS), 'bound')
        self.assertEqual([3, 2], [len(line) for line in bounds])
        for line in bounds:
            self.assertEqual(1, len({y for _, y in line}))
        self.assertLess(bounds[0][0][1], bounds[1][0][1])

    def test_a_gap_is_not_bridged(self):
        points = list(POINTS)
        points[2] = curves.Point(64, None, None)
        self.assertEqual([2, 2], [len(line) for line in lines(
            drawn(points), 'native')])

    def test_figures_of_a_guest_alone_have_no_ratio(self):
        def height(points):
            return float(drawn(points).get('viewBox').split()[3])

        alone = [curves.Point(size, None, 2.0 * size) for size in SIZES]
        self.assertLess(height(alone), height(POINTS) - 100)
        lowest = max(y for line in lines(drawn(alone), 'path')
                     for _, y in line)
        self.assertLess(height(alone), lowest + 40)

    def test_all_is_inside(self):
        for scale in (1e-9, 1, 1e12):
            drawing = drawn([curves.Point(size, scale, scale * 1000 ** number)
                             for number, size in enumerate((1, 2, 3))])
            _, _, width, height = map(float, drawing.get('viewBox').split())
            for kind in ('native', 'path'):
                for line in lines(drawing, kind):
                    for x, y in line:
                        self.assertTrue(0 <= x <= width and 0 <= y <= height)

    def test_names_are_escaped(self):
        drawing = curves.draw(POINTS, '<b>"&')
        self.assertNotIn('<b>', drawing)
        self.assertIn('&lt;b&gt;', drawing)

    def test_sizes_are_written_with_a_unit(self):
        self.assertEqual(
            ['1 B', '1000 B', '1 KiB', '1025 B', '64 KiB', '4 MiB', '2 GiB'],
            [curves.size_text(size) for size in (
                1, 1000, 1024, 1025, 65536, 2 ** 22, 2 ** 31)])

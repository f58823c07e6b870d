# SPDX-License-Identifier: Apache-2.0

import pathlib
import unittest

from hpcvirt.instance_topology import description
from hpcvirt.instance_topology import places
from hpcvirt.instance_topology import writers
from hpcvirt.model import wiring
from hpcvirt.topology import snapshot
from tests.builders import cloud_shapes
from tests.builders import nccl_reader
from tests.builders import wired

DATA = pathlib.Path(__file__).parents[2] / 'data/nccl'

#: What NCCL finds itself, and what identifies a switch that is made up.
OF_NCCL = {'arch', 'vendor', 'familyid', 'modelid', 'device',
           'subsystem_vendor', 'subsystem_device'}

GPUS = [
    places.Function(f'0000:{bus:02x}:00.0', '10de', '2330', '0x030200',
                    None, (), f'/dev/nvidia{number}')
    for number, bus in enumerate((5, 6, 7, 8))]
NICS = [places.Function('0000:09:00.0', '15b3', '101e', '0x020000', None,
                        ('mlx5_0:1',)),
        places.Function('0000:0a:00.0', '15b3', '101e', '0x020000', None,
                        ('mlx5_1:1', 'mlx5_1:2'))]
CELLS = [description.InstanceCell(1, (frozenset((0, 1)), frozenset((2, 3)))),
         description.InstanceCell(0, (frozenset((4, 5)), frozenset((6, 7))))]
HELD = [description.HeldDevice(host, guest.address) for host, guest in zip(
    (*wired.GPUS, '0000:1a:00.0', '0000:9a:00.0'), (*GPUS, *NICS),
    strict=True)]


def arrange(host=None, held=HELD, seen=(*GPUS, *NICS)):
    made = description.describe(host or wired.host(), CELLS, held)
    return places.arrange(made, seen)


def forms(node, wanted):
    """List what two files must have alike, switches by what is below them.

    :param wanted: the file that was published, whose attributes count
    """
    own = {each.attributes.get('busid'): each for each in node.all('pci')}
    result = []
    for each in wanted.all('pci'):
        inside = each.all('pci')
        partner = own.get(each.attributes['busid']) if not inside else next(
            one for one in node.all('pci') if {
                end.attributes['busid'] for end in one.all('pci')} == {
                    end.attributes['busid'] for end in inside})
        result.append((each, partner))
    return result


class PublishedFilesTest(unittest.TestCase):
    """The files of AWS and Azure, from models of their hosts."""

    def write(self, name):
        shape = cloud_shapes.SHAPES[name]
        host = snapshot.read(snapshot.dumps(shape.host()).encode(), name)
        found = places.arrange(description.describe(
            host, shape.cells(), shape.held()), shape.seen())
        self.assertEqual((), tuple(found.notes))
        return nccl_reader.read(writers.write_nccl(found))

    def check(self, wanted, found):
        self.assertEqual(len(wanted.all('pci')), len(found.all('pci')))
        for each, partner in forms(found, wanted):
            self.assertIsNotNone(partner, each.attributes)
            if 'link_speed' in each.attributes:
                self.assertEqual(nccl_reader.bandwidth(each),
                                 nccl_reader.bandwidth(partner))
            for key in each.attributes.keys() - OF_NCCL - {
                    'busid', 'link_speed', 'link_width'}:
                self.assertEqual(each.attributes[key],
                                 partner.attributes[key])
            self.check(each, partner)

    def test_each_is_written_again(self):
        paths = sorted(DATA.glob('*/*.xml'))
        self.assertEqual(sorted(cloud_shapes.SHAPES), [
            f'{path.parent.name}/{path.name}' for path in paths])
        for path in paths:
            name = f'{path.parent.name}/{path.name}'
            with self.subTest(name):
                wanted = nccl_reader.read(path.read_text())
                found = self.write(name)
                for cpu, own in zip(wanted.all('cpu'), found.all('cpu'),
                                    strict=True):
                    for key in cpu.attributes.keys() - OF_NCCL:
                        self.assertEqual(cpu.attributes[key],
                                         own.attributes[key])
                    self.check(cpu, own)


class NCCLReaderTest(unittest.TestCase):
    """The reader of the tests refuses what NCCL refuses."""

    def test_xml_that_nccl_does_not_take_is_refused(self):
        good = '<system version="1">\n  <cpu numaid="0"/>\n</system>\n'
        nccl_reader.read(good)
        nccl_reader.read(f'<!-- a="1" -->\n{good}')
        for bad in ('<?xml version="1.0"?>' + good,
                    good.replace(' <', '\t<'),
                    good.replace('"0"/>', '"0">1</cpu>'),
                    good.replace('cpu n', 'cpu\nn'),
                    good.replace('</system>', ''),
                    good.replace('version="1"', 'version="2"'),
                    good.replace('"0"', f'"{"0" * 254}"')):
            with self.subTest(bad), self.assertRaises(nccl_reader.Refused):
                nccl_reader.read(bad)


class WritersTest(unittest.TestCase):
    maxDiff = None

    def test_nccl_has_switches_below_guest_cells(self):
        text = writers.write_nccl(arrange())
        nccl_reader.read(text)
        self.assertIn("""\
<system version="1">
  <cpu numaid="0" affinity="0000000f">
    <pci busid="ffff:00:01.0" class="0x060400" link_speed="32.0 GT/s PCIe" \
link_width="16">
      <pci busid="0000:07:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" \
link_width="16"/>
""", text)

    def test_rccl_wants_another_version(self):
        found = arrange()
        amd = [places.Function(each.address, '1002', '74b5', '0x120000', 0)
               for each in GPUS]
        for functions, version in ((found.functions, 1), (amd, 2)):
            text = writers.write_nccl(places.Arrangement(
                found.cells, found.switches, found.links, functions, ()))
            nccl_reader.read(text, version)

    def test_a_long_affinity_is_left_to_nccl(self):
        for cpus, there in ((896, True), (928, False)):
            found = places.Arrangement([[frozenset((cpus - 1,))]], (), None,
                                       (), ())
            text = writers.write_nccl(found)
            nccl_reader.read(text)
            self.assertEqual(there, 'affinity' in text)

    def test_ucx_prefers_the_same_switch(self):
        self.assertEqual("""\
cell 0 mlx5_1:1,mlx5_1:2
cell 1 mlx5_0:1
gpu 0000:05:00.0 mlx5_0:1
gpu 0000:06:00.0 mlx5_0:1
gpu 0000:07:00.0 mlx5_1:1,mlx5_1:2
gpu 0000:08:00.0 mlx5_1:1,mlx5_1:2
""", writers.write_ucx(arrange()))

    def test_gres_has_cores_and_links(self):
        self.assertEqual("""\
Name=gpu File=/dev/nvidia0 Cores=2,3 Links=-1,18,6,6
Name=gpu File=/dev/nvidia1 Cores=2,3 Links=18,-1,6,6
Name=gpu File=/dev/nvidia2 Cores=0,1 Links=6,6,-1,18
Name=gpu File=/dev/nvidia3 Cores=0,1 Links=6,6,18,-1
""", writers.write_gres(arrange()))

    def test_unknown_links_and_files_are_left_out(self):
        found = arrange(held=[
            description.HeldDevice(each.host_address) for each in HELD],
            seen=[places.Function(each.address, each.vendor, each.product)
                  for each in GPUS])
        self.assertEqual(4 * ['Name=gpu Count=1'], [
            line for line in writers.write_gres(found).splitlines()
            if not line.startswith('#')])
        self.assertNotIn('pci', writers.write_nccl(found))
        self.assertIn('the domain XML would', ' '.join(found.notes))


class KindOfLinkTest(unittest.TestCase):
    def test_a_link_to_a_device_of_others_is_not_shown(self):
        made = description.describe(wired.host(), CELLS, HELD[:1])
        self.assertEqual([], made['links'])
        self.assertEqual({wiring.LinkKind.NVLINK}, {
            link['kind'] for link in description.describe(
                wired.host(), CELLS, HELD)['links']})

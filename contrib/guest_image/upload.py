# SPDX-License-Identifier: Apache-2.0

"""Upload the image that contrib/guest_image/build built to Glance.

It runs where openstacksdk is installed, with the credentials that the
environment names. The arguments are the name of the image and the directory
with root.qcow2, vmlinuz, initrd.gz and the stamp that identifies the build. It
prints the id of the image.
"""

import pathlib
import sys

import openstack


def main(name, directory):
    """Upload the image; replace an image of another build.

    :returns: its id
    """
    cloud = openstack.connect()
    guest = pathlib.Path(directory)
    stamp = (guest / 'stamp').read_text().strip()
    found = cloud.image.find_image(name)
    if found is not None:
        if found.properties.get('hpcvirt_stamp') == stamp:
            return found.id
        cloud.image.delete_image(found)

    def upload(part, file, kind, **properties):
        return cloud.create_image(
            part, filename=str(guest / file), disk_format=kind,
            container_format='bare' if kind == 'qcow2' else kind,
            visibility='public', wait=True, validate_checksum=False,
            allow_duplicates=True, **properties)

    kernel = upload(f'{name}-kernel', 'vmlinuz', 'aki')
    ramdisk = upload(f'{name}-ramdisk', 'initrd.gz', 'ari')
    disk = upload(
        name, 'root.qcow2', 'qcow2', kernel_id=kernel.id,
        ramdisk_id=ramdisk.id, hw_machine_type='pc', hw_vif_model='virtio',
        hw_rng_model='virtio', img_hv_type='qemu',
        os_command_line='console=ttyS0 quiet root=/dev/vda',
        hpcvirt_stamp=stamp)
    return disk.id


if __name__ == '__main__':
    print(main(*sys.argv[1:]))

# Uploads the file in each line of standard input to the Glance at an address, with Debian's python3-openstacksdk, and
# prints the duration in seconds. The duration includes computing the md5 and sha256 that it stores with the image.
import sys
import time

import openstack

cloud = openstack.connect(
    auth_type="none", auth={"endpoint": sys.argv[1]}, image_endpoint_override=sys.argv[1] + "/v2"
)
for line in sys.stdin:
    begin = time.monotonic()
    cloud.image.create_image(
        "image",
        filename=line.rstrip("\n"),
        disk_format="raw",
        allow_duplicates=True,
        validate_checksum=True,
    )
    print(time.monotonic() - begin, flush=True)

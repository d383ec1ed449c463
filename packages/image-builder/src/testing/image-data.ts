import { randomBytes } from 'node:crypto';
import type { ImageFormat } from '../formats.ts';

/** Size of a cluster of the qcow2 image in bytes, the minimum of the format. */
const CLUSTER = 512;

/** Size of the qcow2 image without data, in bytes. */
const QCOW2_SIZE = 4 * CLUSTER;

/**
 * Returns random content for an image file that passes a cloud's checks. As qcow2 it is an empty disk of 1 MiB followed
 * by random bytes. Other formats consist only of random bytes.
 *
 * @param size in bytes; qcow2 needs 2,048
 */
export function imageData(format: ImageFormat, size: number): Buffer {
  const data = randomBytes(size);
  if (format !== 'qcow2') return data;
  if (size < QCOW2_SIZE) throw new RangeError(`a qcow2 image has at least ${QCOW2_SIZE} bytes, not ${size}`);
  data.fill(0, 0, QCOW2_SIZE);
  data.write('QFI\u00fb', 'latin1');
  data.writeUInt32BE(2, 4); // version
  data.writeUInt32BE(Math.log2(CLUSTER), 20);
  data.writeUInt32BE(1_048_576, 28); // size of the disk: the lower half of 64 bits
  data.writeUInt32BE(32, 36); // entries of the L1 table
  data.writeUInt32BE(3 * CLUSTER, 44); // L1 table
  data.writeUInt32BE(CLUSTER, 52); // refcount table
  data.writeUInt32BE(1, 56); // clusters of the refcount table
  data.writeUInt32BE(2 * CLUSTER, CLUSTER + 4); // refcount block
  for (let cluster = 0; cluster < 4; cluster++) data.writeUInt16BE(1, 2 * CLUSTER + 2 * cluster);
  return data;
}

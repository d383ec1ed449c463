import { createHash } from 'node:crypto';

/** Of no meaning but for being ours (RFC 9562, 6.6). */
const NAMESPACE = Buffer.from('6f4c1d0e8f2b4b7e9a55c2d1e7a90b3f', 'hex');

/**
 * The id that an image of a shared upload is made with: a UUID by name (RFC 9562, version 5).
 *
 * @param upload names the upload in all of the cloud, for all projects share the ids
 * @param turn counts the images that this upload had before: Glance never takes the id of a deleted one again
 */
export function sharedImageId(upload: string, turn: number): string {
  const digest = createHash('sha1').update(NAMESPACE).update(`${upload}/${turn}`).digest();
  digest.writeUInt8((digest.readUInt8(6) & 0x0f) | 0x50, 6);
  digest.writeUInt8((digest.readUInt8(8) & 0x3f) | 0x80, 8);
  return digest.toString('hex', 0, 16).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

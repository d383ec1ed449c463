import { type ByteSource, reasonOf, UnreadableImage } from '../byte-source.ts';
import { type FoundDatabases, findPackages } from '../databases/find-packages.ts';
import { ExtFileSystem } from './ext.ts';
import { type FileSystem, findFile } from './file-system.ts';
import { partitionsOf } from './partitions.ts';
import { XfsFileSystem } from './xfs.ts';

/** Contents of a partition that are recognised but not read: a name, and bytes at a position. */
const UNSUPPORTED: readonly (readonly [name: string, position: number, bytes: string])[] = [
  ['a btrfs file system', 0x10040, '_BHRfS_M'],
  ['an encrypted disk (LUKS)', 0, 'LUKS\xba\xbe'],
  ['a volume group of LVM', 512, 'LABELONE'],
  ['an F2FS file system', 1024, '\x10\x20\xf5\xf2'],
  ['a SquashFS file system', 0, 'hsqs'],
];

/**
 * Installed packages of the first file system of a disk that has a database of them.
 *
 * @throws UnreadableImage with the reason why none was found
 */
export async function packagesOfDisk(disk: ByteSource): Promise<FoundDatabases> {
  const reasons: string[] = [];
  for (const partition of await partitionsOf(disk)) {
    try {
      const system = await openFileSystem(partition);
      const found = system && (await findPackages({ find: (path) => findFile(system, path) }));
      if (found !== undefined) return found;
      const unsupported = system === undefined ? await recognise(partition) : undefined;
      if (unsupported !== undefined) reasons.push(`it has ${unsupported}, which is not supported`);
    } catch (error) {
      reasons.push(reasonOf(error));
    }
  }
  const [reason = 'no file system in it has a database of dpkg, rpm or apk'] = reasons;
  throw new UnreadableImage(reason);
}

async function openFileSystem(partition: ByteSource): Promise<FileSystem | undefined> {
  return (await ExtFileSystem.open(partition)) ?? (await XfsFileSystem.open(partition));
}

async function recognise(partition: ByteSource): Promise<string | undefined> {
  for (const [name, position, bytes] of UNSUPPORTED) {
    if (position + bytes.length > partition.size) continue;
    const found = await partition.read(position, bytes.length);
    if (found.toString('latin1') === bytes) return name;
  }
  return undefined;
}

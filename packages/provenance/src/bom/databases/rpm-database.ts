import type { ByteSource } from '../byte-source.ts';
import type { InstalledPackage } from '../package-url.ts';
import { damagedRpmDatabase, LARGEST_HEADER, parseRpmHeader } from './rpm-header.ts';
import { openSqlite } from './sqlite-table.ts';

/** File of an rpm database in the format of SQLite, the default since Fedora 33 and RHEL 9. */
export const SQLITE_NAME = 'rpmdb.sqlite';

/** File of an rpm database in SUSE's format. */
export const NDB_NAME = 'Packages.db';

/** Packages in the table `Packages`: each row has a number and a header. */
export async function readRpmSqlite(file: ByteSource): Promise<readonly InstalledPackage[]> {
  const database = await openSqlite(file, LARGEST_HEADER);
  const found: InstalledPackage[] = [];
  for await (const [, header] of database.rows('Packages')) {
    if (!Buffer.isBuffer(header)) throw damagedRpmDatabase();
    const one = parseRpmHeader(header);
    if (one !== undefined) found.push(one);
  }
  return found;
}

const PAGE = 4096;
const SLOT = 16;
const BLOCK = 16;
/** The header of the file takes the place of two slots. */
const FIRST_SLOT = 32;
const MOST_PAGES = 2048;

/** Packages in SUSE's format: slots point to blobs, each with a header. */
export async function readNdb(file: ByteSource): Promise<readonly InstalledPackage[]> {
  const head = file.size < FIRST_SLOT ? undefined : await file.read(0, FIRST_SLOT);
  if (head?.toString('latin1', 0, 4) !== 'RpmP') throw damagedRpmDatabase();
  const pages = head.readUInt32LE(12);
  if (pages < 1 || pages > MOST_PAGES) throw damagedRpmDatabase();
  const slots = await file.read(0, pages * PAGE);
  const found: InstalledPackage[] = [];
  for (let at = FIRST_SLOT; at < slots.length; at += SLOT) {
    if (slots.toString('latin1', at, at + 4) !== 'Slot') throw damagedRpmDatabase();
    const position = slots.readUInt32LE(at + 8) * BLOCK;
    if (position === 0) continue;
    const blob = await file.read(position, BLOCK);
    const length = blob.readUInt32LE(12);
    const isBlob = blob.toString('latin1', 0, 4) === 'BlbS' && length <= LARGEST_HEADER;
    if (!isBlob) throw damagedRpmDatabase();
    const one = parseRpmHeader(await file.read(position + BLOCK, length));
    if (one !== undefined) found.push(one);
  }
  return found;
}

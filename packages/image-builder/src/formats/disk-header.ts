import { SteadyFile } from '../hashed-reader/steady-file.ts';

/** Drivers of qemu-img whose formats have a header. */
export type DiskDriver = 'qcow2' | 'vmdk' | 'vpc' | 'vhdx' | 'vdi';

/** Header of a disk image. This process itself reads it, so no other program has opened the file. */
export interface DiskHeader {
  /** Format of the header; undefined for a file without a header of these formats, such as a raw disk. */
  readonly driver?: DiskDriver;
  /** Other files that the header names: a backing file, a data file, extents, a parent. */
  readonly references: readonly string[];
}

/** Reads a part of the file. The result is shorter than `length` at the end of the file. */
type Read = (position: number, length: number) => Promise<Buffer>;

/** Recognises one format and finds the names of other files in its header. */
interface HeaderReader {
  readonly driver: DiskDriver;
  readonly matches: (head: Buffer, tail: Buffer) => boolean;
  readonly references: (head: Buffer, read: Read) => Promise<readonly string[]> | readonly string[];
}

const SECTOR = 512;
const KIBIBYTE = 1024;

/**
 * Bytes read from the beginning of a file. They contain all headers, and the longest VMDK descriptor that QEMU reads.
 */
const HEAD_LENGTH = 1024 * KIBIBYTE;

/** First bytes of the footer of a VHD, and the type of a differencing disk. */
const VHD_COOKIE = 'conectix';
const VHD_DIFFERENCING = 4;

const HEADERS: readonly HeaderReader[] = [
  { driver: 'qcow2', matches: (head) => begins(head, 'QFI\xfb'), references: qcow2References },
  { driver: 'vhdx', matches: (head) => begins(head, 'vhdxfile'), references: vhdxReferences },
  { driver: 'vpc', matches: (head) => begins(head, VHD_COOKIE), references: vhdReferences },
  { driver: 'vdi', matches: (head) => uint32(head, 0x40) === 0xbeda107f, references: vdiReferences },
  {
    driver: 'vmdk',
    matches: (head) => begins(head, 'KDMV') || begins(head, 'COWD'),
    references: sparseVmdkReferences,
  },
  {
    driver: 'vmdk',
    // QEMU searches the text before the first NUL for this key.
    matches: (head) => textOf(head).includes('createType'),
    references: (head) => descriptorReferences(textOf(head)),
  },
  // A fixed VHD has only a footer. It comes last because QEMU also probes the beginning first.
  { driver: 'vpc', matches: (_head, tail) => begins(tail, VHD_COOKIE), references: () => [] },
];

/**
 * Reads the header of a disk image.
 *
 * @throws ImageError `image-missing` if it is not a regular file, `directory-not-usable`
 */
export async function readDiskHeader(path: string): Promise<DiskHeader> {
  const file = await SteadyFile.open(path);
  try {
    const read: Read = async (position, length) => {
      const isInside = position >= 0 && position < file.size;
      return isInside ? await file.read(Buffer.alloc(length), position) : Buffer.alloc(0);
    };
    const head = await read(0, HEAD_LENGTH);
    const tail = await read(file.size - SECTOR, SECTOR);
    const header = HEADERS.find(({ matches }) => matches(head, tail));
    if (header === undefined) return { references: [] };
    return { driver: header.driver, references: await header.references(head, read) };
  } finally {
    await file.close();
  }
}

/** https://www.qemu.org/docs/master/interop/qcow2.html */
async function qcow2References(head: Buffer, read: Read): Promise<readonly string[]> {
  const references: string[] = [];
  const backingFile = uint64(head, 8, 'big');
  if (backingFile !== 0) {
    const name = await read(backingFile, Math.min(uint32(head, 16, 'big'), KIBIBYTE));
    references.push(name.toString() || 'a backing file');
  }
  if (uint32(head, 4, 'big') < 3) return references;
  const hasDataFile = (uint32(head, 76, 'big') & 0x4) !== 0;
  const dataFile = qcow2Extension(head, 0x44415441);
  if (hasDataFile || dataFile !== undefined) references.push(dataFile || 'a data file');
  return references;
}

/** Returns the text of a header extension; undefined if the header has none of that type. */
function qcow2Extension(head: Buffer, wanted: number): string | undefined {
  let position = uint32(head, 100, 'big');
  while (position + 8 <= head.length) {
    const type = head.readUInt32BE(position);
    const length = head.readUInt32BE(position + 4);
    if (type === 0) return undefined;
    position += 8;
    if (type === wanted) return head.toString('utf8', position, position + length);
    position += Math.ceil(length / 8) * 8;
  }
  return undefined;
}

/**
 * Returns the references of a sparse extent. It is a complete disk, unless it has no sectors and only its descriptor
 * counts.
 */
async function sparseVmdkReferences(head: Buffer, read: Read): Promise<readonly string[]> {
  const isOnlyDescriptor = begins(head, 'KDMV') && uint64(head, 12, 'little') === 0;
  const ofDescriptor = isOnlyDescriptor ? descriptorReferences : embeddedReferences;
  const descriptor = await read(uint64(head, 28, 'little') * SECTOR, HEAD_LENGTH);
  // QEMU searches the second sector for the parent, even if the header gives the descriptor another position.
  return [head.subarray(SECTOR), descriptor].flatMap((bytes) => ofDescriptor(textOf(bytes)));
}

/** Returns the references of a descriptor that is not part of a disk, and only lists extents. */
function descriptorReferences(text: string): readonly string[] {
  const found = [...extentNames(text), ...parentNames(text)];
  return found.length > 0 || !text.includes('createType') ? found : ['its extents'];
}

/** Returns the names in the descriptor of a sparse extent, without the original name of the extent itself. */
function embeddedReferences(text: string): readonly string[] {
  const names = extentNames(text);
  const isOwn = names.length === 1 && !/[/:]/.test(names[0] ?? '');
  return [...(isOwn ? [] : names), ...parentNames(text)];
}

/** Returns quoted texts that are not the value of a key. */
function extentNames(text: string): readonly string[] {
  return [...text.matchAll(/(=[ \t]{0,8})?"([^"\r\n]*)"/g)].flatMap(([, key, name = '']) =>
    key === undefined ? [name] : [],
  );
}

function parentNames(text: string): readonly string[] {
  return [...text.matchAll(/parentFileNameHint[^"\n]*"?([^"\n]*)/g)].map(([, name]) => name || 'a parent');
}

/** [MS-VHD]: a copy of the footer, then the header of a dynamic disk. */
function vhdReferences(head: Buffer): readonly string[] {
  if (uint32(head, 60, 'big') !== VHD_DIFFERENCING) return [];
  const name = Buffer.alloc(512);
  name.set(head.subarray(SECTOR + 64, SECTOR + 64 + name.length));
  const [text] = name.swap16().toString('utf16le').split('\0');
  return [text || 'a parent'];
}

/** [MS-VHDX]: the region table points to the metadata, whose file parameters have the bit HasParent. */
async function vhdxReferences(_head: Buffer, read: Read): Promise<readonly string[]> {
  for (const position of [192 * KIBIBYTE, 256 * KIBIBYTE]) {
    const regions = await read(position, 64 * KIBIBYTE);
    const region = findEntry(regions, 16, '06a27c8b90479a4bb8fe575f050f886e');
    if (region === undefined) continue;
    const start = uint64(region, 16, 'little');
    const metadata = await read(start, 64 * KIBIBYTE);
    const entry = findEntry(metadata, 32, '3767a1ca36fa434db3b633f0aa44e76b');
    if (entry === undefined) continue;
    const parameters = await read(start + uint32(entry, 16), 8);
    if ((uint32(parameters, 4) & 0x2) !== 0) return ['a parent'];
  }
  return [];
}

/** Finds the 32-byte entry with a GUID in a table that begins at `start`. */
function findEntry(table: Buffer, start: number, guid: string): Buffer | undefined {
  for (let position = start; position + 32 <= table.length; position += 32) {
    const entry = table.subarray(position, position + 32);
    if (entry.toString('hex', 0, 16) === guid) return entry;
  }
  return undefined;
}

/** Returns the references of a VDI. A differencing disk has its own type, or names its parent by an id. */
function vdiReferences(head: Buffer): readonly string[] {
  const isWhole = [1, 2].includes(uint32(head, 0x4c));
  const hasParent = head.subarray(0x1a8, 0x1c8).some((byte) => byte !== 0);
  return isWhole && !hasParent ? [] : ['a parent'];
}

function begins(bytes: Buffer, magic: string): boolean {
  return bytes.toString('latin1', 0, magic.length) === magic;
}

/** Returns the text before the first NUL. */
function textOf(bytes: Buffer): string {
  const end = bytes.indexOf(0);
  return bytes.toString('latin1', 0, end === -1 ? bytes.length : end);
}

/** Reads a number of a header; 0 beyond the end of the file. */
function uint32(bytes: Buffer, position: number, order: 'big' | 'little' = 'little'): number {
  if (position + 4 > bytes.length) return 0;
  return order === 'big' ? bytes.readUInt32BE(position) : bytes.readUInt32LE(position);
}

function uint64(bytes: Buffer, position: number, order: 'big' | 'little'): number {
  if (position + 8 > bytes.length) return 0;
  return Number(order === 'big' ? bytes.readBigUInt64BE(position) : bytes.readBigUInt64LE(position));
}

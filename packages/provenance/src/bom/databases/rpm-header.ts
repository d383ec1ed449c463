import { UnreadableImage } from '../byte-source.ts';
import type { InstalledPackage } from '../package-url.ts';

// https://rpm-software-management.github.io/rpm/manual/format_header.html

const TAGS = { name: 1000, version: 1001, release: 1002, epoch: 1003, license: 1014, arch: 1022 } as const;
const ENTRY = 16;

/** The most bytes of a header: a kernel with the names of all its modules has 2 MB. */
export const LARGEST_HEADER: number = 32 * 2 ** 20;

/** A public key that rpm keeps among the packages. */
const PUBLIC_KEY = 'gpg-pubkey';

/**
 * Package of a header in an rpm database. A header has the number of its entries, the length of its data, the entries
 * and the data; an entry has a tag, a type, a position in the data and a count.
 *
 * @returns undefined for an entry that is no package
 * @throws UnreadableImage for a damaged header
 */
export function parseRpmHeader(header: Buffer): InstalledPackage | undefined {
  const data = header.length < 8 ? Number.NaN : 8 + header.readUInt32BE(0) * ENTRY;
  if (!(data <= header.length)) throw damagedRpmDatabase();
  const positions = new Map<number, number>();
  for (let at = 8; at < data; at += ENTRY) {
    const tag = header.readUInt32BE(at);
    if (!positions.has(tag)) positions.set(tag, data + header.readUInt32BE(at + 8));
  }
  const text = (tag: number): string | undefined => {
    const position = positions.get(tag);
    if (position === undefined) return undefined;
    const end = header.indexOf(0, position);
    if (end === -1) throw damagedRpmDatabase();
    return header.toString('utf8', position, end);
  };
  const [name, version, release, architecture, license] = [
    text(TAGS.name),
    text(TAGS.version),
    text(TAGS.release),
    text(TAGS.arch),
    text(TAGS.license),
  ];
  if (name === undefined || version === undefined) throw damagedRpmDatabase();
  if (name === PUBLIC_KEY) return undefined;
  const epoch = epochOf(header, positions.get(TAGS.epoch));
  return {
    name,
    version: `${epoch}${version}${release === undefined ? '' : `-${release}`}`,
    type: 'rpm',
    ...(architecture && { architecture }),
    ...(license && { license }),
  };
}

/** `1:`; without an epoch nothing, as rpm shows it. */
function epochOf(header: Buffer, position: number | undefined): string {
  if (position === undefined) return '';
  if (position + 4 > header.length) throw damagedRpmDatabase();
  const epoch = header.readUInt32BE(position);
  return epoch === 0 ? '' : `${epoch}:`;
}

/** Error for an rpm database that is not as its format says. */
export function damagedRpmDatabase(): UnreadableImage {
  return new UnreadableImage('its rpm database is damaged');
}

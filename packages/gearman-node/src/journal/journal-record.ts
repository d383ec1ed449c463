import { crc32 } from 'node:zlib';
import type { JobPriority } from '../submit-packets.ts';

/** A background job in a journal. Strings have one character per byte. */
export interface JournaledJob {
  readonly handle: string;
  readonly function: string;
  readonly unique: string;
  readonly reducer: string;
  readonly priority: JobPriority;
  /** Earliest start time, in milliseconds since 1970; 0 for immediately. */
  readonly due: number;
  readonly payload: Buffer;
}

/** A decoded record: a job was added, the job with a handle was removed, or the record cannot be read. */
export type JournalRecord =
  | { readonly added: JournaledJob }
  | { readonly removed: string }
  | { readonly damaged: true };

/**
 * The first line of a record. A CRC-32 of the header, in hexadecimal digits, precedes it, so that a corrupt size or
 * handle is detected. For a job, the header contains the size and CRC-32 of the payload. The payload and a newline
 * follow.
 */
type Header =
  | { readonly added: Omit<JournaledJob, 'payload'>; readonly size: number; readonly crc: number }
  | { readonly removed: string };

const NEWLINE = 10;

/** Length of a header's CRC-32 in characters. */
const CHECKSUM_LENGTH = 8;

export function encodeAdded({ payload, ...added }: JournaledJob): Buffer {
  const header: Header = { added, size: payload.length, crc: crc32(payload) };
  return Buffer.concat([encodeHeader(header), payload, Buffer.of(NEWLINE)]);
}

export function encodeRemoved(handle: string): Buffer {
  const header: Header = { removed: handle };
  return encodeHeader(header);
}

/** Decodes the records of a journal up to the first truncated or corrupt one, which a crash may leave at the end. */
export async function* decodeRecords(chunks: AsyncIterable<Buffer>): AsyncGenerator<JournalRecord> {
  let bytes: Buffer = Buffer.alloc(0);
  for await (const chunk of chunks) {
    bytes = Buffer.concat([bytes, chunk]);
    for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE)) {
      const header = decodeHeader(bytes.subarray(0, end));
      if (!header) return yield { damaged: true };
      let next = end + 1;
      if ('added' in header) {
        next += header.size + 1;
        if (bytes.length < next) break;
        const payload = Buffer.from(bytes.subarray(end + 1, next - 1));
        const isIntact = bytes[next - 1] === NEWLINE && crc32(payload) === header.crc;
        if (!isIntact) return yield { damaged: true };
        yield { added: { ...header.added, payload } };
      } else {
        yield header;
      }
      bytes = bytes.subarray(next);
    }
  }
  if (bytes.length > 0) yield { damaged: true };
}

function encodeHeader(header: Header): Buffer {
  const json = JSON.stringify(header);
  return Buffer.from(`${checksum(json)} ${json}\n`);
}

function decodeHeader(line: Buffer): Header | undefined {
  const [written, json] = [
    line.toString('latin1', 0, CHECKSUM_LENGTH + 1),
    line.subarray(CHECKSUM_LENGTH + 1),
  ];
  if (written !== `${checksum(json)} `) return undefined;
  // No schema check is needed: the checksum proves that encodeHeader wrote it.
  const header: Header = JSON.parse(json.toString());
  return header;
}

function checksum(json: string | Buffer): string {
  return crc32(json).toString(16).padStart(CHECKSUM_LENGTH, '0');
}

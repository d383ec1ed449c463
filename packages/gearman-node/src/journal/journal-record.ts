import { crc32 } from 'node:zlib';
import type { JobPriority } from '../submit-packets.ts';

/** A background job as a journal keeps it. Texts have one character per byte. */
export interface JournaledJob {
  readonly handle: string;
  readonly function: string;
  readonly unique: string;
  readonly reducer: string;
  readonly priority: JobPriority;
  /** When it may start, in milliseconds since 1970; 0 for at once. */
  readonly due: number;
  readonly payload: Buffer;
}

/** What a record of a journal says: there is a job, or the job of a handle is over; or it cannot be read. */
export type JournalRecord =
  | { readonly added: JournaledJob }
  | { readonly removed: string }
  | { readonly damaged: true };

/** The first line of a record; of a job, size and CRC-32 of the payload that follows, and one more newline. */
type Header =
  | { readonly added: Omit<JournaledJob, 'payload'>; readonly size: number; readonly crc: number }
  | { readonly removed: string };

const NEWLINE = 10;

export function encodeAdded({ payload, ...added }: JournaledJob): Buffer {
  const header: Header = { added, size: payload.length, crc: crc32(payload) };
  return Buffer.concat([Buffer.from(`${JSON.stringify(header)}\n`), payload, Buffer.of(NEWLINE)]);
}

export function encodeRemoved(handle: string): Buffer {
  const header: Header = { removed: handle };
  return Buffer.from(`${JSON.stringify(header)}\n`);
}

/** The records of a journal, up to one that is cut short or damaged: a crash may leave such a one at the end. */
export async function* decodeRecords(chunks: AsyncIterable<Buffer>): AsyncGenerator<JournalRecord> {
  let bytes: Buffer = Buffer.alloc(0);
  for await (const chunk of chunks) {
    bytes = Buffer.concat([bytes, chunk]);
    for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE)) {
      const header = parseHeader(bytes.toString('utf8', 0, end));
      if (!header) return yield { damaged: true };
      let next = end + 1;
      if ('added' in header) {
        next += header.size + 1;
        if (bytes.length < next) break;
        const payload = Buffer.from(bytes.subarray(end + 1, next - 1));
        if (crc32(payload) !== header.crc) return yield { damaged: true };
        yield { added: { ...header.added, payload } };
      } else {
        yield header;
      }
      bytes = bytes.subarray(next);
    }
  }
  if (bytes.length > 0) yield { damaged: true };
}

function parseHeader(line: string): Header | undefined {
  try {
    const header: unknown = JSON.parse(line);
    const isHeader =
      typeof header === 'object' && header !== null && ('added' in header || 'removed' in header);
    return isHeader ? (header as Header) : undefined;
  } catch {
    return undefined;
  }
}

import { readFile } from 'node:fs/promises';
import { setImmediate } from 'node:timers/promises';
import type { NodeLibrary } from './libraries/node-library.ts';

/** Size of a socket read in bytes. */
const CHUNK = 64 * 1024;

/** Bytes that are copied into one buffer. */
const TARGET_SIZE = 16 * CHUNK;

const HEADER = 12;

/**
 * Decodes a recorded stream repeatedly for a while.
 *
 * @returns `PACKETS BYTES SECONDS`
 */
export async function decodeFile(library: NodeLibrary, file: string, milliseconds: number): Promise<string> {
  const stream = await readFile(file);
  const chunks = chunksOf(stream);
  const ends = packetsEndedBy(stream);
  let packets = 0;
  const feed = library.decoder?.(() => {
    packets += 1;
  });
  if (feed === undefined) throw new Error('this library does not decode chunks of any size');
  let bytes = 0;
  let expected = 0;
  const begin = performance.now();
  while (performance.now() - begin < milliseconds) {
    for (const [index, chunk] of chunks.entries()) {
      feed(chunk);
      bytes += chunk.length;
      // Some libraries defer work to later turns of the event loop, and fail without a pause.
      while (packets < expected + (ends[index] as number)) await setImmediate();
    }
    expected += ends.at(-1) as number;
  }
  const seconds = (performance.now() - begin) / 1000;
  if (packets !== expected) throw new Error(`${packets} of ${expected} packets were decoded`);
  return `${packets} ${bytes} ${seconds}`;
}

/**
 * Copies the same chunks for comparison, 1 MiB at a time, which is the size of a packet, each into new memory.
 *
 * @returns as {@link decodeFile}, without packets
 */
export async function copyFile(file: string, milliseconds: number): Promise<string> {
  const chunks = chunksOf(await readFile(file));
  let [to, at] = [Buffer.allocUnsafeSlow(TARGET_SIZE), 0];
  let bytes = 0;
  const begin = performance.now();
  while (performance.now() - begin < milliseconds) {
    for (const chunk of chunks) {
      if (at + chunk.length > to.length) [to, at] = [Buffer.allocUnsafeSlow(TARGET_SIZE), 0];
      at += chunk.copy(to, at);
      bytes += chunk.length;
    }
  }
  return `0 ${bytes} ${(performance.now() - begin) / 1000}`;
}

/** Returns the stream as a socket would deliver it: each chunk has its own memory. */
function chunksOf(stream: Buffer): Buffer[] {
  const chunks: Buffer[] = [];
  for (let at = 0; at < stream.length; at += CHUNK) {
    chunks.push(Buffer.from(stream.subarray(at, at + CHUNK)));
  }
  return chunks;
}

/** Returns, for each chunk, the number of packets that have ended so far. */
function packetsEndedBy(stream: Buffer): number[] {
  const counts: number[] = [];
  let [at, packets] = [0, 0];
  for (let end = CHUNK; end < stream.length + CHUNK; end += CHUNK) {
    while (at < stream.length) {
      const next = at + HEADER + stream.readUInt32BE(at + 8);
      if (next > end) break;
      at = next;
      packets += 1;
    }
    counts.push(packets);
  }
  return counts;
}

// Only in test:all: it tests a benchmark.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { PacketDecoder } from '../../../packages/gearman-node/src/codec/decoder.ts';
import { encodePacket } from '../../../packages/gearman-node/test/fixtures/encode-packet.ts';
import { copyFile, decodeFile } from './decode-file.ts';
import type { NodeLibrary } from './libraries/node-library.ts';

/** 3 packets of 40,012 bytes, so that chunks of 64 KiB end within packets. */
async function recorded(t: TestContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'decode-file-'));
  t.after(() => rm(directory, { recursive: true }));
  const packet = encodePacket('RES', 'ECHO_RES', Buffer.alloc(40_000, 'x'));
  await writeFile(join(directory, 'stream'), Buffer.concat([packet, packet, packet]));
  return join(directory, 'stream');
}

/** A library that only has a decoder. */
function decoding(decoder: NonNullable<NodeLibrary['decoder']>): NodeLibrary {
  return { work: () => {}, connect: () => () => Promise.resolve(Buffer.alloc(0)), decoder };
}

test('the decoder benchmark counts complete passes, also of a decoder that finishes later', async (t) => {
  const library = decoding((onPacket) => {
    const decoder = new PacketDecoder({ onPacket: () => void setImmediate(onPacket) });
    return (chunk) => decoder.decode(chunk);
  });
  const [packets = 0, bytes = 0] = (await decodeFile(library, await recorded(t), 1)).split(' ').map(Number);
  assert.ok(packets >= 3 && packets % 3 === 0);
  assert.equal(bytes, (packets / 3) * 120_036);
});

test('the decoder benchmark rejects a decoder that finds too many packets', async (t) => {
  const twice = decoding((onPacket) => () => [onPacket(), onPacket(), onPacket(), onPacket()]);
  await assert.rejects(decodeFile(twice, await recorded(t), 1), /^Error: \d+ of \d+ packets were decoded$/);
});

test('the decoder benchmark’s copying counts bytes and no packets', async (t) => {
  const file = await recorded(t);
  const [packets, bytes = 0] = (await copyFile(file, 1)).split(' ').map(Number);
  assert.equal(packets, 0);
  assert.equal(bytes % 120_036, 0);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { randomNumbers } from '../../../../test/fixtures/random-numbers.ts';
import { PacketDecoder } from '../../src/codec/decoder.ts';
import { encodePacket } from '../fixtures/encode-packet.ts';
import { describePacket, type Received } from '../fixtures/raw-peer.ts';

/** Various packets with lines of text between them, and the expected results of decoding. */
const STREAM: readonly (readonly [bytes: Buffer, received: Received])[] = [
  [encodePacket('REQ', 'PRE_SLEEP'), ['PRE_SLEEP']],
  [Buffer.from('status\n'), ['LINE', 'status']],
  [encodePacket('REQ', 'CAN_DO', 'a'), ['CAN_DO', 'a']],
  [encodePacket('REQ', 'SUBMIT_JOB', 'f', '', '\0x\0'), ['SUBMIT_JOB', 'f', '', '\0x\0']],
  [Buffer.from('cancel job H:x:1\r\n'), ['LINE', 'cancel job H:x:1']],
  [Buffer.from('\n'), ['LINE', '']],
  [encodePacket('REQ', 'WORK_STATUS', 'H:x:1', 1, 2), ['WORK_STATUS', 'H:x:1', '1', '2']],
  [
    encodePacket('REQ', 'SUBMIT_JOB_BG', 'g', 'u', 'd'.repeat(100)),
    ['SUBMIT_JOB_BG', 'g', 'u', 'd'.repeat(100)],
  ],
  // A payload that looks like a packet.
  [
    encodePacket('REQ', 'ECHO_REQ', encodePacket('REQ', 'PRE_SLEEP')),
    ['ECHO_REQ', encodePacket('REQ', 'PRE_SLEEP').toString('latin1')],
  ],
];
const bytes = Buffer.concat(STREAM.map(([part]) => part));
const expected = STREAM.map(([, received]) => received);

/** Splits the bytes into chunks, decodes them, and returns the results. */
function decodeInChunks(stream: Buffer, size: () => number): Received[] {
  const received: Received[] = [];
  const decoder = new PacketDecoder({
    onPacket: (packet) => received.push(describePacket(packet)),
    onLine: (line) => received.push(['LINE', line.toString('latin1')]),
  });
  for (let at = 0; at < stream.length; ) {
    const end = Math.min(at + size(), stream.length);
    decoder.decode(Buffer.from(stream.subarray(at, end)));
    at = end;
  }
  return received;
}

test('chunks of any one size decode to the same packets and lines', () => {
  for (let size = 1; size <= bytes.length; size += 1) {
    assert.deepEqual(
      decodeInChunks(bytes, () => size),
      expected,
      `chunks of ${size}`,
    );
  }
});

test('input split at any one position decodes to the same packets and lines', () => {
  for (let cut = 1; cut < bytes.length; cut += 1) {
    const sizes = [cut, bytes.length];
    assert.deepEqual(
      decodeInChunks(bytes, () => sizes.shift() ?? 1),
      expected,
      `cut at ${cut}`,
    );
  }
});

test('chunks of random sizes decode to the same packets and lines', () => {
  for (let seed = 1; seed <= 200; seed += 1) {
    const random = randomNumbers(seed);
    assert.deepEqual(
      decodeInChunks(bytes, () => 1 + Math.floor(random() * 40)),
      expected,
      `seed ${seed}`,
    );
  }
});

test('the decoder copies a packet of 1 MiB in chunks of 64 KiB once', (t) => {
  const stream = encodePacket('RES', 'WORK_COMPLETE', 'H:x:1', Buffer.alloc(1024 * 1024, 'x'));
  const sizes: number[] = [];
  const decoder = new PacketDecoder({ onPacket: (packet) => sizes.push(packet.bytes('data').length) });
  const { mock } = t.mock.method(Buffer, 'allocUnsafeSlow');
  for (let at = 0; at < stream.length; at += 65_536) decoder.decode(stream.subarray(at, at + 65_536));
  assert.deepEqual(sizes, [1024 * 1024]);
  assert.deepEqual(
    mock.calls.map((call) => call.arguments),
    [[stream.length]],
  );
});

test('the decoder assembles a packet of several MiB from chunks', () => {
  const payload = Buffer.alloc(3 * 1024 * 1024, 'abc');
  const received = decodeInChunks(encodePacket('REQ', 'ECHO_REQ', payload), () => 65_536);
  assert.deepEqual(received, [['ECHO_REQ', payload.toString('latin1')]]);
});

test('the decoder does not copy a payload that is in one chunk', () => {
  const chunk = Buffer.concat([
    encodePacket('REQ', 'SUBMIT_JOB', 'f', '', 'one'),
    encodePacket('REQ', 'SUBMIT_JOB', 'f', '', 'two'),
  ]);
  const payloads: Buffer[] = [];
  new PacketDecoder({ onPacket: (packet) => payloads.push(packet.bytes('data')) }).decode(chunk);
  assert.deepEqual(payloads.map(String), ['one', 'two']);
  chunk.fill('x');
  assert.deepEqual(payloads.map(String), ['xxx', 'xxx'], 'they are views of the chunk');
});

test('a packet assembled from chunks does not change when more input arrives', () => {
  const payloads: Buffer[] = [];
  const decoder = new PacketDecoder({ onPacket: (packet) => payloads.push(packet.bytes('data')) });
  for (const text of ['first', 'other']) {
    const packet = encodePacket('REQ', 'ECHO_REQ', text);
    decoder.decode(packet.subarray(0, 14));
    decoder.decode(packet.subarray(14));
  }
  assert.deepEqual(payloads.map(String), ['first', 'other']);
});

test('the decoder reads a chunk that starts at an offset in its buffer', () => {
  const pool = Buffer.concat([Buffer.alloc(100, 'x'), bytes]);
  const received: Received[] = [];
  new PacketDecoder({
    onPacket: (packet) => received.push(describePacket(packet)),
    onLine: (line) => received.push(['LINE', line.toString('latin1')]),
  }).decode(pool.subarray(100));
  assert.deepEqual(received, expected);
});

test('a decoder that is stopped in the middle of a chunk decodes nothing further', () => {
  const received: Received[] = [];
  const decoder = new PacketDecoder({
    onPacket: (packet) => {
      received.push(describePacket(packet));
      decoder.stop();
    },
    onLine: () => assert.fail('a line after the stop'),
  });
  decoder.decode(bytes);
  decoder.decode(bytes);
  assert.deepEqual(received, [['PRE_SLEEP']]);
});

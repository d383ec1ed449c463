import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DEFAULT_MAX_PACKET_SIZE, PacketDecoder } from '../../src/codec/decoder.ts';
import { type GearmanErrorCode, ProtocolError } from '../../src/errors.ts';
import { PACKET_TYPES } from '../../src/packets.ts';
import { encodePacket } from '../fixtures/encode-packet.ts';
import { randomBytes } from '../fixtures/random-bytes.ts';

function header(magic: string, type: number, length: number): Buffer {
  const bytes = Buffer.alloc(12);
  bytes.write(magic, 'latin1');
  bytes.writeUInt32BE(type, 4);
  bytes.writeUInt32BE(length, 8);
  return bytes;
}

function packetOf(type: number, body: string): Buffer {
  return Buffer.concat([header('\0REQ', type, body.length), Buffer.from(body)]);
}

const MALFORMED: Readonly<Record<string, readonly [bytes: Buffer, code: GearmanErrorCode]>> = {
  'a wrong magic': [header('\0REX', 1, 0), 'bad-magic'],
  'a magic without its NUL': [header('REQ\0', 1, 0), 'bad-magic'],
  'an HTTP request': [Buffer.from('GET / HTTP/1.1\r\n\r\n'), 'bad-magic'],
  'a TLS handshake': [Buffer.from('16030100c8010000c40303aabbccdd', 'hex'), 'bad-magic'],
  'packet type 0': [header('\0REQ', 0, 0), 'unknown-packet'],
  'the unused packet type 5': [header('\0REQ', 5, 0), 'unknown-packet'],
  'a packet type beyond the last': [header('\0REQ', 43, 0), 'unknown-packet'],
  'the highest packet type': [header('\0REQ', 0xffff_ffff, 0), 'unknown-packet'],
  'a packet length over the limit': [header('\0REQ', 16, DEFAULT_MAX_PACKET_SIZE - 11), 'packet-too-large'],
  'a packet length of 4 GiB': [header('\0REQ', 7, 0xffff_ffff), 'packet-too-large'],
  'a submission without a NUL': [packetOf(7, 'f'), 'argument-missing'],
  'a submission with one NUL': [packetOf(7, 'f\0'), 'argument-missing'],
  'an empty submission': [header('\0REQ', 7, 0), 'argument-missing'],
};

for (const [what, [bytes, code]] of Object.entries(MALFORMED)) {
  test(`the decoder rejects ${what} with a ProtocolError, in one chunk and byte by byte`, () => {
    for (const size of [bytes.length, 1]) {
      const decoder = new PacketDecoder({ onPacket: () => assert.fail('a packet was decoded') });
      assert.throws(
        () => {
          for (let at = 0; at < bytes.length; at += size) decoder.decode(bytes.subarray(at, at + size));
        },
        (error: unknown) => error instanceof ProtocolError && error.code === code,
      );
    }
  });
}

test('the decoder rejects a packet of any type that lacks arguments', () => {
  for (const type of PACKET_TYPES) {
    if (!type || type.arguments.length < 2 || type.mayLackPayload) continue;
    const body = 'x\0'.repeat(type.arguments.length - 2);
    const decoder = new PacketDecoder({ onPacket: () => {} });
    assert.throws(() => decoder.decode(packetOf(type.number, body)), {
      code: 'argument-missing',
      message: new RegExp(type.name),
    });
  }
});

test('packets before a malformed one are decoded, and none after it', () => {
  const names: string[] = [];
  const decoder = new PacketDecoder({ onPacket: (packet) => names.push(packet.name) });
  const good = encodePacket('REQ', 'PRE_SLEEP');
  assert.throws(() => decoder.decode(Buffer.concat([good, header('\0REQ', 0, 0), good])), {
    code: 'unknown-packet',
  });
  decoder.decode(good);
  assert.deepEqual(names, ['PRE_SLEEP']);
});

test('the decoder accepts a packet of the maximum size, but not one byte more', () => {
  const sizes: number[] = [];
  const options = {
    maxPacketSize: 100,
    onPacket: (packet: { bytes(argument: 'data'): Buffer }) => sizes.push(packet.bytes('data').length),
  };
  new PacketDecoder(options).decode(encodePacket('REQ', 'ECHO_REQ', 'x'.repeat(88)));
  assert.deepEqual(sizes, [88]);
  assert.throws(() => new PacketDecoder(options).decode(encodePacket('REQ', 'ECHO_REQ', 'x'.repeat(89))), {
    code: 'packet-too-large',
  });
});

test('the decoder yields the head and size of a packet over the limit, and decodes later packets', () => {
  const tooLarge = encodePacket('RES', 'WORK_COMPLETE', 'H:x:1', 'x'.repeat(5000));
  const next = encodePacket('RES', 'WORK_FAIL', 'H:x:2');
  const stream = Buffer.concat([tooLarge, tooLarge, next]);
  for (const chunkSize of [stream.length, 4096, 13, 1]) {
    const out: unknown[] = [];
    const decoder = new PacketDecoder({
      maxPacketSize: 3000,
      onPacket: (packet) => out.push([packet.name, packet.key('handle')]),
      onOversized: (packet, size) => out.push([packet.name, packet.key('handle'), size]),
    });
    for (let at = 0; at < stream.length; at += chunkSize) decoder.decode(stream.subarray(at, at + chunkSize));
    const cut = ['WORK_COMPLETE', 'H:x:1', tooLarge.length];
    assert.deepEqual(out, [cut, cut, ['WORK_FAIL', 'H:x:2']], `in chunks of ${chunkSize} bytes`);
  }
});

test('the decoder rejects a packet over the limit that has no payload or an unterminated handle', () => {
  const faulty: readonly (readonly [Buffer, GearmanErrorCode])[] = [
    [encodePacket('RES', 'JOB_CREATED', 'x'.repeat(5000)), 'packet-too-large'],
    [encodePacket('RES', 'SUBMIT_JOB', 'x'.repeat(5000), '', ''), 'argument-missing'],
  ];
  for (const [bytes, code] of faulty) {
    const decoder = new PacketDecoder({
      maxPacketSize: 3000,
      onPacket: () => assert.fail('a packet was decoded'),
      onOversized: () => assert.fail('the head was passed on'),
    });
    assert.throws(() => decoder.decode(bytes), { code });
  }
});

test('a worker’s packet may omit the NUL before its empty payload', () => {
  for (const number of [13, 25, 28, 29]) {
    const bytes = Buffer.concat([packetOf(number, 'H:x:1'), packetOf(14, 'H:x:2')]);
    for (const chunkSize of [bytes.length, 1]) {
      const out: unknown[] = [];
      const decoder = new PacketDecoder({
        onPacket: (packet) => {
          out.push(packet.key('handle'));
          if (packet.type.hasPayload) out.push(packet.bytes('data').length);
        },
      });
      for (let at = 0; at < bytes.length; at += chunkSize) decoder.decode(bytes.subarray(at, at + chunkSize));
      assert.deepEqual(out, ['H:x:1', 0, 'H:x:2']);
    }
  }
});

test('the decoder allocates little memory for a declared length without data', () => {
  const before = process.memoryUsage().arrayBuffers;
  const decoders = Array.from({ length: 50 }, () => new PacketDecoder({ onPacket: () => {} }));
  for (const decoder of decoders) decoder.decode(header('\0REQ', 16, DEFAULT_MAX_PACKET_SIZE - 12));
  const each = (process.memoryUsage().arrayBuffers - before) / decoders.length;
  assert.ok(each < 128 * 1024, `${each} bytes for each`);
});

test('the decoder rejects text as a bad magic unless lines are supported', () => {
  const decoder = new PacketDecoder({ onPacket: () => {} });
  assert.throws(() => decoder.decode(Buffer.from('status\nworkers\n')), { code: 'bad-magic' });
});

test('the decoder rejects an endless line above the limit, in one chunk and in parts', () => {
  for (const size of [100_000, 1000, 1]) {
    const decoder = new PacketDecoder({
      onPacket: () => {},
      onLine: () => assert.fail('a line was passed on'),
    });
    assert.throws(
      () => {
        for (let sent = 0; sent < 100_000; sent += size) decoder.decode(Buffer.alloc(size, 'x'));
      },
      { code: 'packet-too-large' },
    );
  }
});

test('random bytes make the decoder throw a ProtocolError or wait for more input', () => {
  for (let seed = 1; seed <= 500; seed += 1) {
    const decoder = new PacketDecoder({ onPacket: () => {}, onLine: () => {} });
    const noise = randomBytes(200, seed);
    // Half of them begin with a valid magic.
    if (seed % 2 === 0) header('\0REQ', seed % 43, noise.length % 60).copy(noise);
    try {
      decoder.decode(noise);
    } catch (error) {
      assert.ok(error instanceof ProtocolError, `seed ${seed}: ${String(error)}`);
    }
  }
});

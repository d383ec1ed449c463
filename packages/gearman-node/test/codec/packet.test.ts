import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PacketDecoder } from '../../src/codec/decoder.ts';
import type { Packet } from '../../src/codec/packet.ts';
import { encodePacket } from '../fixtures/encode-packet.ts';

function decoded(bytes: Uint8Array): Packet {
  const packets: Packet[] = [];
  new PacketDecoder({ onPacket: (packet) => packets.push(packet) }).decode(Buffer.from(bytes));
  const [packet] = packets;
  assert.ok(packet);
  return packet;
}

test('a packet has a name, a magic and its arguments', () => {
  const packet = decoded(encodePacket('RES', 'JOB_ASSIGN_UNIQ', 'H:x:1', 'größe', 'key', 'data'));
  assert.equal(packet.name, 'JOB_ASSIGN_UNIQ');
  assert.equal(packet.magic, 'RES');
  assert.equal(packet.text('function'), 'größe');
  assert.equal(packet.key('function'), Buffer.from('größe').toString('latin1'));
  assert.deepEqual(packet.bytes('data'), Buffer.from('data'));
});

test('an argument of a packet may be empty', () => {
  const packet = decoded(encodePacket('REQ', 'SUBMIT_JOB', '', '', ''));
  assert.deepEqual([packet.text('function'), packet.text('unique'), packet.text('data')], ['', '', '']);
});

test('a payload may contain, begin with and end with NULs', () => {
  const payload = Buffer.from('\0a\0\0b\0', 'latin1');
  assert.deepEqual(decoded(encodePacket('RES', 'WORK_COMPLETE', 'H:x:1', payload)).bytes('data'), payload);
});

test('a NUL after a packet’s last argument is ignored unless the argument is a payload', () => {
  assert.equal(decoded(encodePacket('RES', 'WORK_FAIL', 'H:x:1\0')).key('handle'), 'H:x:1');
  assert.equal(decoded(encodePacket('RES', 'ERROR', 'CODE', 'text\0')).text('text'), 'text');
});

function statusOf(numerator: string): Packet {
  return decoded(encodePacket('RES', 'WORK_STATUS', 'H', numerator, 1));
}

test('a number in a packet is decimal, and an empty one is 0', () => {
  for (const [text, number] of [
    ['0', 0],
    ['42', 42],
    ['007', 7],
    ['9007199254740991', Number.MAX_SAFE_INTEGER],
    ['', 0],
  ] as const) {
    assert.equal(statusOf(text).number('numerator'), number);
  }
  assert.equal(decoded(encodePacket('RES', 'WORK_STATUS', 'H', 1, '3\0')).number('denominator'), 3);
});

const INVALID_NUMBERS = [
  'x',
  '-1',
  '+1',
  '1.5',
  '1e5',
  '0x10',
  ' 12',
  '12\n',
  'Infinity',
  'NaN',
  '9'.repeat(17),
  '١',
];

for (const text of INVALID_NUMBERS) {
  test(`a packet with ${JSON.stringify(text)} as a number is rejected`, () => {
    assert.throws(() => statusOf(text).number('numerator'), {
      name: 'ProtocolError',
      code: 'invalid-argument',
      message: /the numerator of WORK_STATUS/,
    });
  });
}

test('the error for a long invalid number shows only its beginning', () => {
  assert.throws(() => statusOf('y'.repeat(5000)).number('numerator'), { message: /is "y{40}";/ });
});

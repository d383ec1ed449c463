import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PACKET_TYPES, PACKETS } from '../src/packets.ts';

test('packet types have the numbers 1 to 42 except 5, which the protocol does not use', () => {
  const numbers = PACKET_TYPES.flatMap((type) => type?.number ?? []);
  assert.deepEqual(
    numbers,
    Array.from({ length: 42 }, (_, index) => index + 1).filter((number) => number !== 5),
  );
});

test('each packet type is found by its number', () => {
  for (const [name, row] of Object.entries(PACKETS)) {
    assert.equal(PACKET_TYPES[row.number]?.name, name);
    assert.equal(PACKET_TYPES[row.number]?.arguments, row.arguments);
  }
});

test('only an argument called data is a payload, and only at the end of a packet', () => {
  for (const type of PACKET_TYPES) {
    if (!type) continue;
    assert.equal(type.hasPayload, type.arguments.includes('data'), type.name);
    assert.ok(!type.arguments.slice(0, -1).includes('data'), type.name);
  }
});

test('each packet type has at least one sender', () => {
  for (const type of PACKET_TYPES) assert.notEqual(type?.senders.length, 0, type?.name);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PacketEncoder } from '../../src/codec/encoder.ts';
import { GearmanError } from '../../src/errors.ts';
import { encodePacket } from '../fixtures/encode-packet.ts';

test('a packet consists of magic, type, length and arguments separated by NULs', () => {
  assert.equal(
    encodePacket('REQ', 'SUBMIT_JOB', 'reverse', 'key', 'data').toString('latin1'),
    '\0REQ\0\0\0\x07\0\0\0\x10reverse\0key\0data',
  );
  assert.equal(encodePacket('RES', 'NOOP').toString('latin1'), '\0RES\0\0\0\x06\0\0\0\0');
});

test('the encoder writes a NUL before an empty payload', () => {
  assert.equal(
    encodePacket('REQ', 'WORK_COMPLETE', 'H', '').toString('latin1'),
    '\0REQ\0\0\0\x0d\0\0\0\x02H\0',
  );
});

test('the encoder writes text as UTF-8, numbers in decimal, and bytes unchanged', () => {
  assert.deepEqual(
    encodePacket('REQ', 'WORK_STATUS', 'ü', 7, Buffer.from([0xff])).subarray(12),
    Buffer.from([0xc3, 0xbc, 0, 0x37, 0, 0xff]),
  );
});

test('the encoded length counts bytes, including a long text that is not copied', () => {
  const packet = encodePacket('REQ', 'ECHO_REQ', '€'.repeat(5000));
  assert.equal(packet.readUInt32BE(8), 15_000);
  assert.equal(packet.length, 12 + 15_000);
});

test('the encoder rejects a NUL in an argument before the last, and adds nothing', () => {
  const encoder = new PacketEncoder('REQ');
  for (const name of ['a\0b', Buffer.from([0])]) {
    assert.throws(
      () => encoder.add('SUBMIT_JOB', name, '', ''),
      (error: unknown) =>
        error instanceof GearmanError &&
        error.code === 'invalid-argument' &&
        /function of SUBMIT_JOB/.test(error.message),
    );
  }
  assert.equal(encoder.length, 0);
  assert.deepEqual(encoder.take(), []);
});

test('small encoded packets share one buffer, in order', () => {
  const encoder = new PacketEncoder('REQ');
  for (let index = 0; index < 100; index += 1) encoder.add('ECHO_REQ', index);
  const parts = encoder.take();
  assert.equal(parts.length, 1);
  const expected = Array.from({ length: 100 }, (_, index) => encodePacket('REQ', 'ECHO_REQ', index));
  assert.deepEqual(Buffer.concat(parts), Buffer.concat(expected));
});

test('the encoder does not copy a large payload', () => {
  const payload = Buffer.alloc(1024 * 1024, 'x');
  const encoder = new PacketEncoder('REQ');
  encoder.add('SUBMIT_JOB', 'f', '', payload);
  encoder.add('ECHO_REQ', 'after');
  const [head, body, tail, ...rest] = encoder.take();
  assert.equal(body, payload);
  assert.equal(Buffer.from(head ?? []).toString('latin1'), '\0REQ\0\0\0\x07\0\x10\0\x03f\0\0');
  assert.equal(Buffer.from(tail ?? []).toString('latin1'), '\0REQ\0\0\0\x10\0\0\0\x05after');
  assert.deepEqual(rest, []);
});

test('the encoder does not overwrite bytes that it has returned', () => {
  const encoder = new PacketEncoder('REQ');
  encoder.add('ECHO_REQ', 'first');
  const first = Buffer.concat(encoder.take());
  const taken = encoder.take();
  // More than one slab of small packets.
  for (let index = 0; index < 5000; index += 1) encoder.add('ECHO_REQ', 'second');
  assert.deepEqual(taken, []);
  assert.deepEqual(first, encodePacket('REQ', 'ECHO_REQ', 'first'));
  assert.equal(encoder.length, 5000 * (12 + 6));
});

test('the encoder’s length counts the bytes added since the last take', () => {
  const encoder = new PacketEncoder('RES');
  assert.equal(encoder.length, 0);
  encoder.add('NOOP');
  encoder.addBytes(Buffer.from('OK\n'));
  assert.equal(encoder.length, 15);
  encoder.take();
  assert.equal(encoder.length, 0);
});

test('the encoder rejects an argument of a wrong type, and adds nothing', () => {
  const encoder = new PacketEncoder('REQ');
  for (const wrong of [{ a: 1 }, [1], null, undefined, true, new Float64Array(1)]) {
    assert.throws(() => encoder.add('ECHO_REQ', wrong as never), { code: 'invalid-argument' });
  }
  encoder.add('ECHO_REQ', 'x');
  assert.deepEqual(Buffer.concat(encoder.take()), encodePacket('REQ', 'ECHO_REQ', 'x'));
});

test('arguments that were joined before encoding give the same packet', () => {
  for (const payload of ['', 'short', 'x'.repeat(5000)]) {
    const [encoder, joined] = [new PacketEncoder('RES'), new PacketEncoder('RES')];
    encoder.add('JOB_ASSIGN', 'H:1', Buffer.from([0xff]), Buffer.from(payload));
    joined.addJoined('JOB_ASSIGN', 'H:1\0\xff\0', Buffer.from(payload));
    assert.deepEqual(Buffer.concat(joined.take()), Buffer.concat(encoder.take()));
  }
});

test('the encoder reuses the memory of written packets', () => {
  const encoder = new PacketEncoder('RES');
  encoder.addJoined('NOOP', '');
  const [first] = encoder.take();
  encoder.reuse();
  encoder.addJoined('NO_JOB', '');
  const [second] = encoder.take();
  assert.equal(second?.buffer, first?.buffer);
  assert.equal(second?.byteOffset, first?.byteOffset);
});

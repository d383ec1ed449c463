import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkPacketSize } from '../../src/codec/packet-size.ts';
import { encodePacket } from '../fixtures/encode-packet.ts';

test('a packet may have the maximum size, but not one byte more', () => {
  for (const data of ['x'.repeat(500), 'ü'.repeat(500), Buffer.alloc(500), 12_345]) {
    const args: [string, string, string | number | Buffer] = ['f', 'key', data];
    const size = encodePacket('REQ', 'SUBMIT_JOB', ...args).length;
    checkPacketSize('SUBMIT_JOB', args, size);
    assert.throws(() => checkPacketSize('SUBMIT_JOB', args, size - 1), {
      code: 'packet-too-large',
      retriable: false,
      message: new RegExp(`SUBMIT_JOB of ${size} bytes .* limit of ${size - 1}`),
    });
  }
  checkPacketSize('PRE_SLEEP', [], 12);
});

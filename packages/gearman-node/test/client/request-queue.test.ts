import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RequestQueue } from '../../src/client/request-queue.ts';
import { PacketDecoder } from '../../src/codec/decoder.ts';
import type { Packet } from '../../src/codec/packet.ts';
import { GearmanError, ServerError } from '../../src/errors.ts';
import type { PacketName } from '../../src/packets.ts';
import { encodePacket } from '../fixtures/encode-packet.ts';

function packet(bytes: Buffer): Packet {
  const packets: Packet[] = [];
  new PacketDecoder({ onPacket: (decoded) => packets.push(decoded) }).decode(bytes);
  return packets[0] as Packet;
}

const created = packet(encodePacket('RES', 'JOB_CREATED', 'H:x:1'));
const status = packet(encodePacket('RES', 'STATUS_RES', 'H:x:1', 0, 0, 0, 0));

/** A queue of requests that records the outcome of each. */
function queueOf(...expected: readonly PacketName[]): {
  queue: RequestQueue;
  fates: string[];
  silences: () => number;
} {
  let silences = 0;
  const queue = new RequestQueue(1000, () => (silences += 1));
  const fates = expected.map(() => 'waits');
  for (const [index, expects] of expected.entries()) {
    queue.push({
      expects,
      onReply: () => {
        fates[index] = 'settled';
      },
      onFailure: (error: GearmanError) => {
        fates[index] = error.code;
      },
    });
  }
  return { queue, fates, silences: () => silences };
}

test('responses are matched to requests in order', () => {
  const { queue, fates } = queueOf('JOB_CREATED', 'JOB_CREATED');
  queue.settle(created);
  assert.deepEqual(fates, ['settled', 'waits']);
  queue.settle(created);
  assert.deepEqual(fates, ['settled', 'settled']);
  queue.settle(created); // ignored: no request expects it
});

test('an ERROR packet fails the oldest request', () => {
  const { queue, fates } = queueOf('JOB_CREATED', 'STATUS_RES');
  queue.fail(new ServerError('QUEUE_ERROR', 'full'));
  assert.deepEqual(fates, ['server-error', 'waits']);
  queue.settle(status);
  assert.deepEqual(fates, ['server-error', 'settled']);
  queue.fail(new ServerError('LATE', 'unexpected'));
});

test('a response to a later request fails the requests before it', () => {
  const { queue, fates } = queueOf('STATUS_RES', 'JOB_CREATED', 'STATUS_RES');
  queue.settle(created);
  assert.deepEqual(fates, ['server-silent', 'settled', 'waits']);
});

test('an unexpected response has no effect on waiting requests', () => {
  const { queue, fates } = queueOf('JOB_CREATED');
  queue.settle(status);
  assert.deepEqual(fates, ['waits']);
});

test('ending a request queue fails all its requests', () => {
  const { queue, fates } = queueOf('JOB_CREATED', 'STATUS_RES');
  queue.end(new GearmanError('closed', 'm'));
  assert.deepEqual(fates, ['closed', 'closed']);
});

test('a request queue reports silence while requests await a response', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const { queue, silences } = queueOf('JOB_CREATED');
  t.mock.timers.tick(1000);
  assert.equal(silences(), 1);
  queue.settle(created);
  t.mock.timers.tick(10_000);
  assert.equal(silences(), 1);
});

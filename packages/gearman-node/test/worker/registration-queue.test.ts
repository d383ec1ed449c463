import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Registration, RegistrationQueue } from '../../src/worker/registration-queue.ts';

const many: readonly Registration[] = Array.from({ length: 1200 }, (_, index) => ({
  packet: 'CAN_DO',
  function: `f${index}`,
}));

test('thousands of registrations are spread over turns of the event loop, in order', async () => {
  const sent: Registration[] = [];
  let emptied = 0;
  const queue = new RegistrationQueue(
    (registration) => sent.push(registration),
    () => (emptied += 1),
  );
  queue.add(many);
  const counts = [sent.length];
  queue.add([{ packet: 'CANT_DO', function: 'f0' }]);
  while (!queue.isEmpty) {
    await new Promise(setImmediate);
    counts.push(sent.length);
  }
  assert.deepEqual(counts, [500, 1000, 1201]);
  assert.deepEqual(sent, [...many, { packet: 'CANT_DO', function: 'f0' }]);
  assert.equal(emptied, 1);
});

test('empty waits for the last one; the end of the queue drops what is left', async () => {
  const sent: Registration[] = [];
  const queue = new RegistrationQueue(
    (registration) => sent.push(registration),
    () => {},
  );
  queue.add(many);
  await queue.empty();
  assert.equal(sent.length, 1200);
  queue.add(many);
  const emptied = queue.empty();
  queue.end();
  await emptied;
  assert.equal(sent.length, 1700);
  assert.equal(queue.isEmpty, true);
});

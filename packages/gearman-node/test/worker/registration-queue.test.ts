import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BATCH, type RegistrationPort, RegistrationQueue } from '../../src/worker/registration-queue.ts';

const many = Array.from({ length: 250 }, (_, index) => `f${index}`);

/** A server that confirms at once. */
function recorder(sent: string[]): RegistrationPort {
  return {
    send: (packet, name) => sent.push(`${packet} ${name}`),
    confirm: () => Promise.resolve(),
    onEmpty: () => {},
  };
}

test('thousands of registrations take several turns of the event loop, in order', async () => {
  const sent: string[] = [];
  let emptied = 0;
  const queue = new RegistrationQueue({ ...recorder(sent), onEmpty: () => (emptied += 1) });
  queue.add('CAN_DO', many);
  const counts = [sent.length];
  queue.add('CANT_DO', ['f0']);
  while (!queue.isEmpty) {
    await new Promise(setImmediate);
    counts.push(sent.length);
  }
  assert.deepEqual(counts, [0, 100, 200, 251]);
  assert.deepEqual(sent, [...many.map((name) => `CAN_DO ${name}`), 'CANT_DO f0']);
  assert.equal(emptied, 1);
});

test('registrations that are added one by one, while others wait, follow them in order', async () => {
  const sent: string[] = [];
  const queue = new RegistrationQueue(recorder(sent));
  queue.add('CAN_DO', many);
  queue.add('CAN_DO', ['a']);
  queue.add('CAN_DO', ['b']);
  queue.add('RESET_ABILITIES', ['']);
  queue.add('CAN_DO', ['c']);
  await queue.empty();
  const last = ['CAN_DO a', 'CAN_DO b', 'RESET_ABILITIES ', 'CAN_DO c'];
  assert.deepEqual(sent, [...many.map((name) => `CAN_DO ${name}`), ...last]);
});

test('a few registrations are sent at once', () => {
  const sent: string[] = [];
  const queue = new RegistrationQueue(recorder(sent));
  queue.add('CAN_DO', ['a', 'b']);
  assert.deepEqual(sent, ['CAN_DO a', 'CAN_DO b']);
  assert.equal(queue.isEmpty, true);
});

test('waiting for an empty registration queue ends with the last registration, and ending it discards the rest', async () => {
  const sent: string[] = [];
  const queue = new RegistrationQueue(recorder(sent));
  queue.add('CAN_DO', many);
  await queue.empty();
  assert.equal(sent.length, 250);
  queue.add('CAN_DO', many);
  const emptied = queue.empty();
  queue.end();
  await emptied;
  assert.equal(sent.length, 250);
  assert.equal(queue.isEmpty, true);
});

test('each batch of registrations waits until the server has confirmed the previous one', async () => {
  const sent: string[] = [];
  const confirmations: (() => void)[] = [];
  const confirm = (): Promise<void> => new Promise((resolve) => confirmations.push(resolve));
  const queue = new RegistrationQueue({ ...recorder(sent), confirm });
  for (let index = 0; index < BATCH + 1; index += 1) queue.add('CAN_DO', [`single${index}`]);
  assert.deepEqual([sent.length, confirmations.length], [BATCH, 1]);
  queue.add(
    'CAN_DO',
    Array.from({ length: BATCH }, (_, index) => `f${index}`),
  );
  confirmations[0]?.();
  while (confirmations.length === 1) await new Promise(setImmediate);
  assert.deepEqual([sent.length, queue.isEmpty], [2 * BATCH, false]);
  confirmations[1]?.();
  await queue.empty();
  assert.deepEqual([sent.length, confirmations.length], [2 * BATCH + 1, 2]);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { SharedTurns } from '../../src/connection/shared-turns.ts';

function spend(milliseconds: number): void {
  const end = performance.now() + milliseconds;
  while (performance.now() < end);
}

test('one turn of the event loop serves a few busy connections in order, whatever their number', async () => {
  const turns = new SharedTurns();
  const served: number[] = [];
  const work = async (index: number): Promise<void> => {
    await turns.next();
    served.push(index);
    spend(1);
  };
  const all = Promise.all(Array.from({ length: 20 }, (_, index) => work(index)));
  for (let before = 0; served.length < 20; before = served.length) {
    await turn();
    assert.ok(served.length - before <= 2, `${served.length - before} were served in one turn`);
  }
  await all;
  assert.deepEqual(
    served,
    Array.from({ length: 20 }, (_, index) => index),
  );
});

test('a connection with more work after its turn is served in the next turn', async () => {
  const turns = new SharedTurns();
  const served: number[] = [];
  const work = async (): Promise<void> => {
    for (let part = 0; part < 3; part += 1) {
      await turns.next();
      served.push(part);
    }
  };
  void work();
  for (const expected of [[0], [0, 1], [0, 1, 2]]) {
    await turn();
    assert.deepEqual(served, expected);
  }
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Abilities, MANY } from '../../src/worker/abilities.ts';

const none = (): boolean => false;
const onlyA = (name: string): boolean => name === 'a';

function abilities(...names: string[]): Abilities<string> {
  const made = new Abilities<string>();
  made.want(names);
  return made;
}

test('a worker announces each function with one CAN_DO', () => {
  const made = new Abilities<string>();
  assert.deepEqual(made.want(['a', 'b']), ['a', 'b']);
  assert.deepEqual(made.want(['b', 'c']), ['c']);
  assert.equal(made.size, 3);
});

test('a removed function gets one CANT_DO, and an unregistered one gets none', () => {
  const made = abilities('a', 'b');
  made.drop('a', 'handler of a');
  made.drop('never', '');
  assert.deepEqual(made.takeRemovable(none, true), { reset: false, deregister: ['a'] });
  assert.deepEqual(made.takeRemovable(none, true), { reset: false, deregister: [] });
  assert.deepEqual(made.want(['a']), ['a'], 'it can be added again');
});

test('a removed function with a running job is kept until the job ends', () => {
  const made = abilities('a', 'b');
  made.drop('a', '');
  made.drop('b', '');
  assert.deepEqual(made.takeRemovable(onlyA, false), { reset: false, deregister: ['b'] });
  assert.equal(made.hasRemovable(onlyA), false);
  assert.equal(made.hasRemovable(none), true);
  assert.deepEqual(made.takeRemovable(none, true), { reset: false, deregister: ['a'] });
});

test('no packet is pending for a function that is removed and added again in time', () => {
  const made = abilities('a');
  made.drop('a', '');
  assert.deepEqual(made.want(['a']), []);
  assert.deepEqual(made.takeRemovable(none, true), { reset: false, deregister: [] });
});

test('a removed function keeps its handler until it is deregistered', () => {
  const made = abilities('a');
  made.drop('a', 'handler');
  assert.equal(made.unwantedHandler('a'), 'handler');
  made.takeRemovable(none, true);
  assert.equal(made.unwantedHandler('a'), undefined);
});

test('RESET_ABILITIES removes many functions at once if no job is running', () => {
  const gone = Array.from({ length: MANY + 1 }, (_, index) => `f${index}`);
  const idle = abilities(...gone, 'd', 'e');
  for (const name of gone) idle.drop(name, '');
  assert.deepEqual(idle.takeRemovable(none, true), { reset: true, register: ['d', 'e'] });
  assert.equal(idle.size, 2);

  const busy = abilities('a', ...gone);
  for (const name of gone) busy.drop(name, '');
  assert.deepEqual(busy.takeRemovable(onlyA, false), { reset: false, deregister: gone.slice(0, -1) });
  assert.deepEqual(busy.takeRemovable(onlyA, false), { reset: false, deregister: gone.slice(-1) });
});

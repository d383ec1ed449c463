import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EchoConfirmation } from '../../src/worker/echo-confirmation.ts';
import { ServerKnowledge } from '../../src/worker/server-knowledge.ts';

/** A confirmation that records tokens and silences. */
function recorded(repliesToEcho?: boolean) {
  const knowledge = new ServerKnowledge(5000);
  knowledge.repliesToEcho = repliesToEcho;
  const sent: string[] = [];
  const silences: string[] = [];
  const echo = new EchoConfirmation(knowledge, knowledge.timeoutFor(0), {
    send: (token) => sent.push(token),
    onSilence: () => silences.push('silence'),
  });
  return { echo, sent, silences, knowledge };
}

/** Returns the promises that have resolved after all promise reactions. */
async function resolved(promises: readonly Promise<void>[]): Promise<boolean[]> {
  const states = promises.map(() => false);
  promises.forEach((promise, index) => void promise.then(() => (states[index] = true)));
  await new Promise(setImmediate);
  return states;
}

test('an echo response resolves its request and the requests before it', async () => {
  const { echo, sent } = recorded();
  const requests = [echo.request(), echo.request(), echo.request()];
  assert.deepEqual(sent, ['1', '2', '3']);
  echo.replied('2');
  assert.deepEqual(await resolved(requests), [true, true, false]);
  echo.replied('3');
  assert.deepEqual(await resolved(requests), [true, true, true]);
  echo.end();
});

test('a worker waits one second for the first echo response of a server, and only once', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const { echo, sent, silences, knowledge } = recorded();
  const request = echo.request();
  t.mock.timers.tick(1000);
  await Promise.all([request, echo.request()]);
  assert.deepEqual([sent, silences, knowledge.repliesToEcho], [['1'], [], false]);
});

test('a worker sends no echo request to a server that is known not to respond to it', async () => {
  const { echo, sent } = recorded(false);
  await echo.request();
  assert.deepEqual(sent, []);
});

test('a server that stops responding to echo requests is reported as silent', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const { echo, silences } = recorded(true);
  void echo.request();
  t.mock.timers.tick(4999);
  assert.deepEqual(silences, []);
  t.mock.timers.tick(1);
  assert.deepEqual(silences, ['silence']);
  echo.end();
});

test('a late echo response marks the server as responding', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const { echo, sent, knowledge } = recorded();
  const request = echo.request();
  t.mock.timers.tick(1000);
  await request;
  echo.replied('1');
  assert.equal(knowledge.repliesToEcho, true);
  void echo.request();
  assert.deepEqual(sent, ['1', '2']);
  echo.end();
});

test('ending the echo confirmation resolves all its requests', async () => {
  const { echo, silences } = recorded(true);
  const requests = [echo.request(), echo.request()];
  echo.end();
  await Promise.all(requests);
  assert.deepEqual(silences, []);
});

// Not a unit test: it takes seconds.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { waitForPort } from '../../src/instance/wait-for-port.ts';

const ADDRESS = { host: '127.0.0.1', port: 22 };

const well = (): Promise<void> => Promise.resolve();

describe('waitForPort', () => {
  test('the wait for a port ends when the service responds', async () => {
    let tries = 0;
    await waitForPort(
      ADDRESS,
      (address) => {
        assert.equal(address, ADDRESS);
        tries += 1;
        return tries === 3 ? Promise.resolve() : Promise.reject(new Error('not yet'));
      },
      well,
    );
    assert.equal(tries, 3);
  });

  test('the wait for a port aborts an attempt that takes too long, and starts another', async () => {
    let tries = 0;
    await waitForPort(
      ADDRESS,
      async (_, signal) => {
        tries += 1;
        if (tries === 1) await new Promise((_resolve, reject) => signal.addEventListener('abort', reject));
      },
      well,
    );
    assert.equal(tries, 2);
  });

  test('the wait for a port ends when its check throws', async () => {
    const gone = new Error('gone');
    let looks = 0;
    const waiting = waitForPort(
      ADDRESS,
      () => Promise.reject(new Error('not yet')),
      () => {
        looks += 1;
        return looks === 2 ? Promise.reject(gone) : Promise.resolve();
      },
    );
    await assert.rejects(waiting, gone);
  });

  test('the wait for a port and its attempt abort with the signal’s reason', async () => {
    const abort = new AbortController();
    const reason = new Error('enough');
    const tried = Promise.withResolvers<unknown>();
    const waiting = waitForPort(
      ADDRESS,
      async (_, signal) => {
        queueMicrotask(() => abort.abort(reason));
        await new Promise<void>((_resolve, reject) =>
          signal.addEventListener('abort', () => {
            tried.resolve(signal.reason);
            reject(reason);
          }),
        );
      },
      well,
      abort.signal,
    );
    await assert.rejects(waiting, reason);
    assert.equal(await tried.promise, reason);
  });
});

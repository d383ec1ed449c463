// Not a unit test: it emits the signals that end a test runner.
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { untilStopSignal } from '../../src/commands/stop-signal.ts';

it('the first stop signal aborts the task, and a second one of either kind has its default effect', async () => {
  const before = process.listenerCount('SIGINT');
  const task = async (signal: AbortSignal): Promise<void> => {
    assert.equal(process.listenerCount('SIGINT'), before + 1);
    process.emit('SIGTERM', 'SIGTERM');
    assert.equal(process.listenerCount('SIGINT'), before);
    assert.ok(signal.aborted);
    throw new Error('a consequence of the abort');
  };
  await assert.rejects(untilStopSignal(task), /^CommandError: stopped by SIGTERM$/);
});

it('a stop signal is handled only while its task runs', async () => {
  const before = process.listenerCount('SIGTERM');
  assert.equal(await untilStopSignal(() => Promise.resolve(5)), 5);
  assert.equal(process.listenerCount('SIGTERM'), before);
});

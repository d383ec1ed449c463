import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CloudError, cleanUpAfter, unlessAbsent } from '../src/cloud-error.ts';

test('a cloud error contains the request, the cloud’s reason, and the remedy', () => {
  const error = new CloudError('forbidden', 'provider aws: RegisterImage', 'you may not');
  assert.equal(
    error.message,
    'provider aws: RegisterImage: you may not; give the credentials this permission',
  );
  assert.equal(error.retriable, false);
  assert.ok(new CloudError('rate-limited', 'a', 'b').retriable);
  assert.ok(new CloudError('conflict', 'a', 'b'.repeat(5000)).message.length < 600);
});

test('only a cloud error for an absent object is replaced by undefined', () => {
  assert.equal(unlessAbsent(new CloudError('not-found', 'a', 'b')), undefined);
  const conflict = new CloudError('conflict', 'a', 'b');
  assert.throws(() => unlessAbsent(conflict), conflict);
});

async function fail(): Promise<never> {
  throw new Error('no route');
}

test('an upload whose cleanup fails stays on record, with its own reason', async () => {
  const lines: string[] = [];
  const logger = { debug() {}, info() {}, warn: (line: string) => void lines.push(line), error() {} };
  const abort = new AbortController();
  const failed = { provider: 'aws', imageId: 'a-1', logger, signal: abort.signal };
  const refusal = new CloudError('forbidden', 'provider aws: RegisterImage', 'you may not');
  assert.equal(await cleanUpAfter(refusal, failed, async () => {}), refusal);
  assert.deepEqual([lines, refusal.retriable], [[], false]);
  assert.equal(await cleanUpAfter(refusal, failed, fail), refusal);
  assert.ok(refusal.retriable);
  assert.match(lines.join(), /aws: upload of image a-1: the cleanup after its failure failed.*no route/);
  const changed = new Error('the file has changed');
  const error = await cleanUpAfter(changed, failed, fail);
  assert.ok(error instanceof CloudError && error.retriable);
  assert.equal(error.cause, changed);
  assert.match(error.message, /the file has changed; its cleanup also failed/);
  abort.abort();
  assert.equal(await cleanUpAfter(changed, failed, fail), changed);
});

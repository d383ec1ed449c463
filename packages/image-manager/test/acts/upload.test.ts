import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RecordingLogger } from '../../../image-builder/test/recording-logger.ts';
import type { ActContext } from '../../src/acts/act-context.ts';
import { followUpload } from '../../src/acts/upload.ts';
import { LedState } from '../../src/led-state.ts';
import type { Leadership } from '../../src/store/state-store.ts';
import { build, upload } from '../store/records.ts';

/** Follows an upload whose builder gives this answer; what is on record then. */
async function recordAfter(answer: string) {
  const of = build('ownerabc', 1, { state: 'ready' });
  const record = upload('ownerabc', 2, of, { leftovers: true });
  const leadership = { write: async () => {} } as unknown as Leadership;
  const state = new LedState(
    { builds: new Map([[of.id, of]]), uploads: new Map([[record.id, record]]) },
    leadership,
  );
  const context: Partial<ActContext> = {
    state,
    configuration: () => ({
      diskimages: [],
      providers: [],
      timing: { retryDelay: 60, longestRetryDelay: 3600, leakInterval: 600, absenceLimit: 1800 },
    }),
    fleet: { run: async () => Buffer.from(answer) },
    logger: new RecordingLogger(),
    now: () => 5000,
  };
  await followUpload(context as ActContext, record.id, AbortSignal.any([]));
  return state.uploads.get(record.id);
}

test('the provider’s id is taken from the answer; nothing is left to discard', async () => {
  const after = await recordAfter('{"external-id": "x", "more": 1}');
  assert.equal(after?.state, 'ready');
  assert.equal(after?.externalId, 'x');
  assert.equal(after?.leftovers, false);
  assert.equal(after?.endedAt, 5000);
});

for (const answer of [
  '',
  'null',
  '[]',
  '"x"',
  '{}',
  '{"external-id": ""}',
  '{"external-id": 7}',
  '{"external',
]) {
  test(`an answer without an id is a failure, and may have left something: ${answer}`, async () => {
    const after = await recordAfter(answer);
    assert.equal(after?.state, 'failed');
    assert.equal(after?.leftovers, true);
    assert.equal(
      after?.error,
      `the builder answered ${JSON.stringify(answer)}, which has no external-id; see its log`,
    );
  });
}

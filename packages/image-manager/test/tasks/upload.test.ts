import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RecordingLogger } from '../../../../test/fixtures/recording-logger.ts';
import { LeaderState } from '../../src/leader-state.ts';
import type { ManagerLeadership } from '../../src/store/leadership.ts';
import type { TaskContext } from '../../src/tasks/tasks.ts';
import { followUpload } from '../../src/tasks/upload.ts';
import { build, upload } from '../store/records.ts';

/** Runs an upload whose builder returns this result. Returns the record afterwards. */
async function recordAfter(reply: string, checksum?: string) {
  return (await recordsAfter(reply, checksum)).after;
}

async function recordsAfter(reply: string, checksum?: string) {
  const of = build('ownerabc', 1, { state: 'ready', ...(checksum !== undefined && { checksum }) });
  const record = upload('ownerabc', 2, of, { leftovers: true });
  const leadership = { write: async () => {} } as unknown as ManagerLeadership;
  const state = new LeaderState(
    { builds: new Map([[of.id, of]]), uploads: new Map([[record.id, record]]), pauses: new Map() },
    leadership,
  );
  let asked: unknown;
  const context: Partial<TaskContext> = {
    state,
    configuration: () => ({
      diskimages: [],
      providers: [],
      timing: { retryDelay: 60, maxRetryDelay: 3600, orphanScanInterval: 600, absenceTimeout: 1800 },
    }),
    fleet: {
      run: async (_, argument) => {
        asked = argument;
        return Buffer.from(reply);
      },
    } as Partial<TaskContext['fleet']> as TaskContext['fleet'],
    logger: new RecordingLogger(),
    now: () => 5000,
  };
  await followUpload(context as TaskContext, record.id, AbortSignal.any([]));
  return { after: state.uploads.get(record.id), of: state.builds.get(of.id), asked };
}

test('a successful upload is recorded with its external-id and leaves nothing to discard', async () => {
  const after = await recordAfter('{"external-id": "x", "more": 1}');
  assert.equal(after?.state, 'ready');
  assert.equal(after?.externalId, 'x');
  assert.equal(after?.leftovers, false);
  assert.equal(after?.endedAt, 5000);
});

for (const reply of [
  '',
  'null',
  '[]',
  '"x"',
  '{}',
  '{"external-id": ""}',
  '{"external-id": 7}',
  '{"external',
]) {
  test(`an upload result without an external-id is a failure that may have left partial data: ${reply}`, async () => {
    const after = await recordAfter(reply);
    assert.equal(after?.state, 'failed');
    assert.equal(after?.leftovers, true);
    assert.equal(
      after?.error,
      `the builder returned ${JSON.stringify(reply)} without an external-id; check its log`,
    );
  });
}

test('the first upload of a build without a checksum adds one to the record', async () => {
  const { after, of, asked } = await recordsAfter('{"external-id": "x", "checksum": "raw:aa"}');
  assert.equal(after?.state, 'ready');
  assert.equal(of?.checksum, 'raw:aa');
  assert.deepEqual(asked, {
    provider: 'cloud',
    'image-name': 'debian-bookworm',
    checksum: '',
    attestations: true,
  });
});

test('an upload job carries the checksum on record', async () => {
  const { after, asked } = await recordsAfter('{"external-id": "x", "checksum": "raw:aa"}', 'raw:aa');
  assert.equal(after?.state, 'ready');
  assert.deepEqual(asked, {
    provider: 'cloud',
    'image-name': 'debian-bookworm',
    checksum: 'raw:aa',
    attestations: true,
  });
});

test('an upload whose checksum differs from the record fails and is discarded', async () => {
  const { after, of } = await recordsAfter('{"external-id": "x", "checksum": "raw:bb"}', 'raw:aa');
  assert.equal(after?.state, 'failed');
  assert.equal(after?.leftovers, true);
  assert.match(
    after?.error ?? '',
    /^the builder uploaded debian-0000000001-ownerabc with checksum raw:bb, but the record has raw:aa/,
  );
  assert.equal(of?.checksum, 'raw:aa');
});

test('the checksum of a file in another format is ignored', async () => {
  const after = await recordAfter('{"external-id": "x", "checksum": "qcow2:bb"}', 'raw:aa');
  assert.equal(after?.state, 'ready');
});

test('a malformed attestation does not fail an upload', async () => {
  const after = await recordAfter('{"external-id": "x", "attestations": {"no": "list"}, "packages": 7}');
  assert.equal(after?.state, 'ready');
});

import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { InstanceProvider, StoredCapture } from '@nodepool-builder/image-builder';
import { RecordingLogger } from '../../../test/fixtures/recording-logger.ts';
import { InstanceReaper } from '../src/index.ts';

for (const isClaimed of [true, false]) {
  it(`a snapshot without an image ${isClaimed ? 'stays if an upload claims it during the scan' : 'is deleted'}`, async (t) => {
    let discarded = 0;
    let listed = 0;
    const capture: StoredCapture = {
      imageId: '1',
      externalId: 'snapshot',
      capturedAt: new Date(),
      formats: [],
      save: () => Promise.reject(new Error('not expected')),
      discard: async () => {
        discarded += 1;
      },
    };
    const provider: InstanceProvider = {
      name: 'cloud',
      launch: () => Promise.reject(new Error('not expected')),
      list: async () => [],
      captures: async () => {
        listed += 1;
        return isClaimed && listed > 1 ? [] : [capture];
      },
    };
    const reaper = await InstanceReaper.start({
      repository: {
        recordDirectory: () => `${import.meta.dirname}/no-records`,
        images: new Map(),
        on: () => undefined as never,
      },
      instanceProviders: () => [provider],
      logger: () => new RecordingLogger(),
    });
    t.after(() => reaper[Symbol.asyncDispose]());
    await reaper.scan();
    assert.equal(discarded, isClaimed ? 0 : 1);
  });
}

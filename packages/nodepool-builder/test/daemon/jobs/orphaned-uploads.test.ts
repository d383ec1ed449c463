import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { CloudError } from '@nodepool-builder/image-builder/plugin';
import { FakeImageProvider } from '../../../../../test/doubles/fake-image-provider.ts';
import { uploadRecord } from './upload-record.ts';
import { DiscardingProvider, DONE, FakeJob, GRACE, startUploads, succeed } from './uploads-fixture.ts';

describe('an orphaned upload', () => {
  it('an orphaned upload is discarded if its job does not come back within two minutes', async (t) => {
    const { records, provider, pass } = await startUploads(t, uploadRecord());
    await pass(GRACE - 1);
    assert.deepEqual(provider.discarded, []);
    await pass(1);
    assert.deepEqual(provider.discarded, ['upload-1']);
    assert.deepEqual(await records(), []);
  });

  it('an orphaned upload is discarded with the reason that its job failed', async (t) => {
    const { uploads, logger, pass } = await startUploads(t);
    const unreachable = new CloudError('connection-failed', 'provider cloud: no response');
    const failing = uploads.run(new FakeJob(), uploadRecord(), () => Promise.reject(unreachable));
    await assert.rejects(failing, unreachable);
    await pass(GRACE);
    assert.match(logger.lines.at(-1) ?? '', /^info upload of 0001 .*: discarded, because its job failed$/);
  });

  it('an orphaned upload stays if its job comes back in time', async (t) => {
    const other = uploadRecord({ 'upload-id': 'upload-2' });
    const { uploads, records, provider, pass } = await startUploads(t, uploadRecord(), other);
    await uploads.run(new FakeJob(), uploadRecord(), succeed);
    await pass(GRACE);
    assert.deepEqual(provider.discarded, ['upload-2']);
    assert.deepEqual(await records(), [uploadRecord({ 'external-id': 'uuid' })]);
  });

  it('an orphaned upload starts from scratch if its job comes back while it is being discarded', async (t) => {
    const { provider, uploads, records, pass } = await startUploads(t, uploadRecord());
    const started = Promise.withResolvers<void>();
    const discard = Promise.withResolvers<void>();
    provider.discarding = () => {
      started.resolve();
      return discard.promise;
    };
    const passed = pass(GRACE);
    await started.promise;
    const fresh = uploadRecord({ 'external-name': 'second' });
    const running = uploads.run(new FakeJob(), fresh, async (record) => {
      assert.deepEqual(record, fresh);
      assert.deepEqual(await records(), [fresh]);
      return DONE;
    });
    discard.resolve();
    await running;
    await passed;
    assert.deepEqual(await records(), [{ ...fresh, 'external-id': 'uuid' }]);
  });

  it('an orphaned upload stays in the provider, with a warning, if its result may have arrived', async (t) => {
    const { records, provider, logger, pass } = await startUploads(
      t,
      uploadRecord({ 'external-id': 'uuid' }),
    );
    await pass(GRACE);
    assert.deepEqual(provider.discarded, []);
    assert.deepEqual(await records(), []);
    assert.match(logger.lines[0] ?? '', /^warn upload of 0001 to cloud.*: image uuid stays/);
  });

  it('an orphaned upload is discarded after retries with growing pauses while the cloud is unreachable', async (t) => {
    const { uploads, discards, records, provider, logger, pass } = await startUploads(t, uploadRecord());
    assert.deepEqual([...uploads.orphans], [['cloud', 1]]);
    provider.discarding = () => Promise.reject(new Error('503'));
    await pass(GRACE);
    for (const pause of [10_000, 20_000, 40_000]) await pass(pause);
    assert.equal(provider.discarded.length, 4);
    assert.match(logger.lines[0] ?? '', /^warn .*retried later: 503/);
    provider.discarding = () => Promise.resolve();
    await pass(79_999);
    assert.equal(provider.discarded.length, 4);
    await pass(1);
    assert.equal(provider.discarded.length, 5);
    assert.deepEqual(await records(), []);
    assert.deepEqual(discards, [false, false, false, false, true]);
    assert.deepEqual([...uploads.orphans], []);
  });

  it('an orphaned upload stays on record while its provider is not configured', async (t) => {
    const { records, uploads, provider, providers, logger, pass } = await startUploads(t, uploadRecord());
    providers.clear();
    await pass(GRACE);
    await pass(GRACE);
    assert.deepEqual(logger.lines.length, 1, 'one warning');
    assert.match(logger.lines[0] ?? '', /^warn provider "cloud" is no longer configured/);
    assert.equal((await records()).length, 1);
    providers.set('cloud', provider);
    uploads.retry();
    await uploads.idle();
    assert.deepEqual(await records(), []);
  });

  it('an orphaned upload whose provider cannot be opened is discarded later', async (t) => {
    const { records, providers, provider, logger, pass } = await startUploads(t, uploadRecord());
    providers.get = () => assert.fail('its module is broken');
    await pass(GRACE);
    assert.match(logger.lines[0] ?? '', /^warn .*retried later: its module is broken/);
    providers.get = () => provider;
    await pass(10_000);
    assert.deepEqual(await records(), []);
  });

  it('an orphaned upload in an unreachable provider does not delay others', async (t) => {
    const other = uploadRecord({ provider: 'other' });
    const { records, provider, providers, pass } = await startUploads(t, uploadRecord(), other);
    provider.discarding = () => Promise.reject(new Error('503'));
    providers.set('other', new FakeImageProvider({ name: 'other' }));
    await pass(GRACE);
    assert.deepEqual(await records(), [uploadRecord()]);
  });

  it('an orphaned upload in a slow provider does not delay the retry of others', async (t) => {
    const [slow, failing] = [uploadRecord(), uploadRecord({ provider: 'other' })];
    const { uploads, records, provider, providers } = await startUploads(t, slow, failing);
    const [begun, discarded] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    provider.discarding = () => discarded.promise;
    const other = new DiscardingProvider({ name: 'other' });
    other.discarding = () => {
      begun.resolve();
      return Promise.reject(new Error('503'));
    };
    providers.set('other', other);
    t.mock.timers.tick(GRACE);
    await begun.promise;
    await new Promise(setImmediate);
    other.discarding = () => Promise.resolve();
    t.mock.timers.tick(10_000);
    while ((await records()).length > 1) await new Promise(setImmediate);
    assert.deepEqual(await records(), [slow]);
    discarded.resolve();
    await uploads.idle();
  });

  it('an orphaned upload that cannot be discarded does not keep the others in its provider', async (t) => {
    const all = ['1', '2', '3'].map((id) => uploadRecord({ 'upload-id': id, 'image-id': id }));
    const { records, provider, pass } = await startUploads(t, ...all);
    const [stuck = ''] = all.map((record) => record['upload-id']);
    provider.discarding = () =>
      provider.discarded.at(-1) === stuck ? Promise.reject(new Error('forbidden')) : Promise.resolve();
    await pass(GRACE);
    await pass(10_000);
    assert.deepEqual(await records(), all.slice(0, 1));
  });

  it('an orphaned upload stays on record when the builder stops', async (t) => {
    const { records, uploads, provider, pass } = await startUploads(t, uploadRecord());
    await uploads.close();
    await pass(GRACE);
    assert.deepEqual(provider.discarded, []);
    assert.equal((await records()).length, 1);
  });
});

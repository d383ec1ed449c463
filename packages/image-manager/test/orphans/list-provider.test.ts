import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RecordingLogger } from '../../../../test/fixtures/recording-logger.ts';
import { listProvider } from '../../src/orphans/find-orphans.ts';
import { SiteProvider } from '../site-provider.ts';

test('a provider that cannot be listed and an unknown provider are omitted from the listings', async () => {
  const [good, bad] = [new SiteProvider({ name: 'good' }), new SiteProvider({ name: 'bad' })];
  good.plant({ externalId: 'x' });
  bad.beforeList = () => {
    throw new Error('401');
  };
  const logger = new RecordingLogger();
  const provider = (name: string) => [good, bad].find((each) => each.name === name);
  const found = await Promise.all(
    ['good', 'bad', 'unknown'].map((name) => listProvider(name, { provider, logger }, AbortSignal.any([]))),
  );
  assert.deepEqual(found, [{ provider: 'good', images: [...good.images.values()] }, undefined, undefined]);
  assert.deepEqual(logger.lines, ['warn cannot list provider bad: 401']);
});

test('an aborted listing warns about no provider', async () => {
  const provider = new SiteProvider({ name: 'slow' });
  const logger = new RecordingLogger();
  const stop = new AbortController();
  provider.beforeList = (signal) => {
    stop.abort(new Error('stopped'));
    signal.throwIfAborted();
  };
  const listing = listProvider('slow', { provider: () => provider, logger }, stop.signal);
  await assert.rejects(listing, /stopped/);
  assert.deepEqual(logger.lines, []);
});

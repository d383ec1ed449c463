import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RecordingLogger } from '../../../../test/fixtures/recording-logger.ts';
import { listProviders } from '../../src/orphans/find-orphans.ts';
import { SiteProvider } from '../site-provider.ts';

test('a provider that fails and an unknown provider are left out', async () => {
  const [good, bad] = [new SiteProvider({ name: 'good' }), new SiteProvider({ name: 'bad' })];
  good.plant({ externalId: 'x' });
  bad.beforeList = () => {
    throw new Error('401');
  };
  const logger = new RecordingLogger();
  const found = await listProviders(
    {
      providers: [{ name: 'good' }, { name: 'bad' }, { name: 'unknown' }],
      provider: (name) => [good, bad].find((each) => each.name === name),
      logger,
    },
    AbortSignal.any([]),
  );
  assert.deepEqual(found, [{ provider: 'good', images: [...good.images.values()] }]);
  assert.deepEqual(logger.lines, ['warn provider bad cannot be listed: 401']);
});

test('after an abort, no provider gets a warning', async () => {
  const provider = new SiteProvider({ name: 'slow' });
  const logger = new RecordingLogger();
  const stop = new AbortController();
  provider.beforeList = (signal) => {
    stop.abort(new Error('stopped'));
    signal.throwIfAborted();
  };
  const listing = listProviders({ providers: [provider], provider: () => provider, logger }, stop.signal);
  await assert.rejects(listing, /stopped/);
  assert.deepEqual(logger.lines, []);
});

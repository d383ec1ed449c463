import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { DirectoryProvider } from '@nodepool-builder/image-builder';
import { RecordingLogger } from '../../../../test/fixtures/recording-logger.ts';
import { temporaryDirectory } from '../../../../test/fixtures/scratch-directory.ts';
import { undoAfter } from '../../../../test/fixtures/undo-after.ts';
import { waitUntil } from '../../../../test/fixtures/wait-until.ts';
import type { Configuration } from '../../src/configuration/configuration.ts';
import { loadConfiguration } from '../../src/configuration/load.ts';
import type { CloudImageRecord } from '../../src/web/cloud-image-watch.ts';
import { CloudImageWatch } from '../../src/web/cloud-image-watch.ts';

const FILTERS = [{ name: 'image-name', values: ['debian'] }];

/** Creates an image directory, and a watch that checks it again at once. */
class Site {
  readonly pool: string;
  readonly logger = new RecordingLogger();
  readonly watch: CloudImageWatch;

  private constructor(pool: string, configuration: Configuration) {
    this.pool = pool;
    this.watch = new CloudImageWatch({ configuration, logger: this.logger, interval: 5 });
  }

  static async start(t: TestContext): Promise<Site> {
    const pool = join(temporaryDirectory(t), 'pool');
    mkdirSync(pool);
    const site = new Site(
      pool,
      await configurationOf(t, pool, [{ name: 'debian', 'image-filters': FILTERS }]),
    );
    undoAfter(t, () => site.watch.close());
    return site;
  }

  async upload(imageId: string): Promise<void> {
    const path = join(this.pool, '..', `${imageId}.qcow2`);
    writeFileSync(path, imageId);
    await new DirectoryProvider({ name: 'pool', directory: this.pool }).upload({
      uploadId: imageId,
      imageId,
      imageName: 'debian',
      builtAt: new Date(Date.UTC(2026, 4, Number(imageId))),
      file: { format: 'qcow2', path, size: 1 },
    });
  }

  /** Waits for a record of the first cloud image. */
  async until(what: string, isDone: (record: CloudImageRecord) => boolean): Promise<CloudImageRecord> {
    return await waitUntil(what, () => {
      const [first] = this.watch.records;
      return first !== undefined && isDone(first) && first;
    });
  }
}

async function configurationOf(
  t: TestContext,
  pool: string,
  cloudImages: readonly object[],
): Promise<Configuration> {
  const file = join(temporaryDirectory(t), 'nodepool.yaml');
  const providers = [
    { name: 'p', type: 'directory', directory: pool, images: [], 'cloud-images': cloudImages },
  ];
  writeFileSync(file, JSON.stringify({ 'images-dir': 'i', providers }));
  return (await loadConfiguration(file)).configuration;
}

describe('a watch on cloud images', () => {
  it('the cloud image watch shows what is chosen now, and since when', async (t) => {
    const site = await Site.start(t);
    const before = await site.until('no image', ({ error }) => error !== null);
    assert.deepEqual(before, {
      provider: 'p',
      name: 'debian',
      'external-id': null,
      'external-name': null,
      built: null,
      since: null,
      error: 'no image in provider "p" matches the filters: none has a matching name',
    });
    await site.upload('1');
    const first = await site.until('the first image', (record) => record['external-id'] !== null);
    assert.equal(first['external-id'], 'debian-1.qcow2');
    assert.equal(first.built, '2026-05-01T00:00:00.000Z');
    assert.equal(first.error, null);
    await site.upload('2');
    const second = await site.until('the next', (record) => record['external-id'] === 'debian-2.qcow2');
    assert.ok((second.since ?? '') > (first.since ?? ''));
    assert.match(
      site.logger.lines.join('\n'),
      /provider p, cloud-images: debian is now image debian-2\.qcow2/,
    );
  });

  it('the cloud image watch keeps the last choice while the provider fails, with the reason', async (t) => {
    const site = await Site.start(t);
    await site.upload('1');
    const before = await site.until('the image', (record) => record['external-id'] !== null);
    await rename(site.pool, `${site.pool}.away`);
    const failed = await site.until('the failure', ({ error }) => error !== null);
    assert.match(failed.error ?? '', /pool/);
    assert.deepEqual({ ...failed, error: null }, before);
    await rename(`${site.pool}.away`, site.pool);
    assert.deepEqual(await site.until('the recovery', ({ error }) => error === null), before);
  });

  it('the cloud image watch follows a reload, and keeps the time of unchanged filters', async (t) => {
    const site = await Site.start(t);
    await site.upload('1');
    const before = await site.until('the image', (record) => record['external-id'] !== null);
    const cloudImages = [
      { name: 'debian', 'image-filters': FILTERS },
      { name: 'fixed', 'image-id': 'x.qcow2' },
    ];
    site.watch.reload(await configurationOf(t, site.pool, cloudImages));
    const [same, fixed] = await waitUntil(
      'the reload',
      () => site.watch.records.length === 2 && site.watch.records,
    );
    assert.deepEqual(same, before);
    assert.deepEqual([fixed?.['external-id'], fixed?.since, fixed?.error], ['x.qcow2', null, null]);
  });
});

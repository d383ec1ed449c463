// Not a unit test: it starts hooks.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { it, type TestContext } from 'node:test';
import { Client, JobServer } from '@nodepool-builder/gearman-node';
import { FakeImageProvider } from '../../../../../test/doubles/fake-image-provider.ts';
import { RecordingLogger } from '../../../../../test/fixtures/recording-logger.ts';
import { isRunning } from '../../../../../test/fixtures/running-process.ts';
import { temporaryDirectory } from '../../../../../test/fixtures/scratch-directory.ts';
import { waitUntil } from '../../../../../test/fixtures/wait-until.ts';
import { loadConfiguration } from '../../../src/configuration/load.ts';
import { discardRejected } from '../../../src/daemon/jobs/post-upload-hook.ts';
import { NodepoolBuilder } from '../../../src/daemon/nodepool-builder.ts';

const PROVIDER = '{"provider": "pool", "image-name": "debian"}';

/** Creates a site with image 1, whose provider has a hook. */
class Site {
  readonly #t: TestContext;
  readonly directory: string;
  readonly jobServer = new JobServer();
  readonly loggers = new Map<string, RecordingLogger>();

  constructor(t: TestContext) {
    this.#t = t;
    this.directory = temporaryDirectory(t);
    for (const name of ['images', 'pool']) mkdirSync(this.path(name));
    writeFileSync(this.path('images/1.raw'), 'an image');
    t.after(() => this.jobServer.close());
  }

  path(name: string): string {
    return join(this.directory, name);
  }

  /** Replaces the script of the hook. */
  hook(script: string): void {
    writeFileSync(this.path('hook'), `#!/bin/sh\ncd ${this.directory}\n${script}\n`, { mode: 0o755 });
  }

  /** Lists the files in the provider. */
  get pool(): string[] {
    return readdirSync(this.path('pool')).filter((name) => name.endsWith('.raw'));
  }

  /** Waits until the hook has written a line to a file. The shell creates the file before it writes the line. */
  async written(name: string): Promise<void> {
    const path = this.path(name);
    await waitUntil(`a line in ${name}`, () => existsSync(path) && readFileSync(path, 'utf8') !== '');
  }

  get uploads(): string[] {
    return readdirSync(this.path('images/.nodepool-builder/uploads'));
  }

  async start(settings = ''): Promise<NodepoolBuilder> {
    const { port } = this.jobServer.address ?? (await this.jobServer.listen(0));
    const provider = `name: pool, type: directory, directory: pool, image-type: raw, post-upload-hook: ./hook${settings}`;
    writeFileSync(
      this.path('nodepool.yaml'),
      `
images-dir: images
gearman-servers: [{host: 127.0.0.1, port: ${port}}]
providers: [{${provider}, images: [{name: debian}]}]
`,
    );
    const { configuration } = await loadConfiguration(this.path('nodepool.yaml'));
    const logger = (name: string): RecordingLogger => {
      const found = this.loggers.get(name) ?? new RecordingLogger();
      this.loggers.set(name, found);
      return found;
    };
    const builder = await NodepoolBuilder.start({ configuration, logger });
    this.#t.after(() => builder.close());
    return builder;
  }

  async upload(): Promise<string> {
    const { host, port } = this.jobServer.address ?? assert.fail('the job server does not listen');
    const client = new Client({ servers: [{ host, port }] });
    this.#t.after(() => client.close());
    return String(await client.submit('image-upload:1', PROVIDER, { unique: 'upload-1' }));
  }

  get uploadLog(): string {
    return (this.loggers.get('nodepool.image.upload.pool')?.lines ?? []).join('\n');
  }
}

it('the post-upload-hook runs before the result, with nodepool’s arguments, and its output is logged', async (t) => {
  const site = new Site(t);
  site.hook(`echo "checked $*"; ls pool > seen; echo "$HOME" > home`);
  await site.start();
  assert.equal(await site.upload(), '{"external-id": "debian-1.raw"}');
  assert.match(readFileSync(site.path('seen'), 'utf8'), /^debian-1\.raw$/m);
  assert.equal(readFileSync(site.path('home'), 'utf8').trim(), process.env.HOME);
  const line = `info checked pool debian-1.raw ${site.path('images/1.raw')}`;
  assert.ok(site.uploadLog.includes(line), site.uploadLog);
});

it('a post-upload-hook that rejects the image deletes it, and the job fails', async (t) => {
  const site = new Site(t);
  site.hook('exit 3');
  await site.start();
  await assert.rejects(site.upload(), { code: 'job-failed' });
  assert.deepEqual(site.pool, []);
  assert.deepEqual(site.uploads, []);
  assert.match(site.uploadLog, /hook" ended with exit code 3; the image was deleted from pool/);
});

it('a missing post-upload-hook deletes the image, and the log says what to do', async (t) => {
  const site = new Site(t);
  await site.start();
  await assert.rejects(site.upload(), { code: 'job-failed' });
  assert.deepEqual(site.pool, []);
  assert.match(site.uploadLog, /hook" is not installed, .*correct its path; the image was deleted from pool/);
});

it('a post-upload-hook that exceeds the upload’s time limit is killed with its processes, and the image is deleted', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const site = new Site(t);
  site.hook('sleep 600 & echo $! > pid; wait');
  await site.start(', image-upload-timeout: 1');
  const rejected = assert.rejects(site.upload(), { code: 'job-failed' });
  await site.written('pid');
  t.mock.timers.tick(1000);
  await rejected;
  assert.deepEqual(site.pool, []);
  assert.match(
    site.uploadLog,
    /did not end in time; .*raise image-upload-timeout; the image was deleted from pool/,
  );
  assert.equal(await isRunning(Number(readFileSync(site.path('pid'), 'utf8'))), false);
});

it('the post-upload-hook runs again if the builder was stopped during it and the job comes again', async (t) => {
  const site = new Site(t);
  site.hook('echo run >> runs; exec sleep 600');
  const first = await site.start();
  const upload = site.upload();
  upload.catch(() => undefined);
  await site.written('runs');
  assert.deepEqual(site.pool.length, 2, 'the image and the link to the latest exist during the hook');
  const stop = new AbortController();
  stop.abort();
  await first.close({ signal: stop.signal });
  assert.equal(site.uploads.length, 1, 'the upload without a decision is on record');
  site.hook('echo run >> runs');
  await site.start();
  assert.equal(await site.upload(), '{"external-id": "debian-1.raw"}');
  assert.equal(readFileSync(site.path('runs'), 'utf8'), 'run\nrun\n');
});

it('a rejected image that cannot be deleted at once causes a retriable error', async () => {
  class AwayProvider extends FakeImageProvider {
    override discard(): Promise<void> {
      return Promise.reject(new Error('503'));
    }
  }
  const { signal } = new AbortController();
  const upload = { uploadId: 'upload-1', imageId: 'debian-1', imageName: 'debian' };
  const error = await discardRejected(new AwayProvider(), upload, 'the hook rejected it', signal);
  assert.equal(error.retriable, true);
  assert.match(
    error.message,
    /^the hook rejected it; the image is still in fake and will be deleted later: 503$/,
  );
});

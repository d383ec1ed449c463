import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { Admin, JobServer, Worker, type WorkerJob } from '@nodepool-builder/gearman-node';
import type { BuilderEntry } from '@nodepool-builder/image-builder';
import { ZuulPollers, type ZuulSettings } from '@nodepool-builder/zuul-images';
import { RecordingLogger } from '../../../../test/fixtures/recording-logger.ts';
import { temporaryDirectory } from '../../../../test/fixtures/scratch-directory.ts';
import { undoAfter } from '../../../../test/fixtures/undo-after.ts';
import { waitUntil } from '../../../../test/fixtures/wait-until.ts';
import { qcowArtifact } from '../../../../test/fixtures/zuul/build-table.ts';
import { QUERY, startZuul } from '../../../../test/fixtures/zuul/start-zuul.ts';
import type { ZuulDouble } from '../../../../test/fixtures/zuul/zuul-double.ts';
import { isImageOffered, requestBuild } from '../../src/daemon/fleet.ts';

/** A name that needs encoding in a file name. */
const NAME = 'noble/arm64';

function imageOf(
  zuul: ZuulDouble,
  name: string,
  more: Partial<ZuulSettings> = {},
): BuilderEntry<ZuulSettings> {
  return {
    diskimage: { name, formats: ['qcow2'] },
    settings: {
      ...QUERY,
      'api-url': zuul.url,
      artifacts: [{ format: 'qcow2', type: 'image-qcow' }],
      'poll-interval': 3600,
      'require-sha256': false,
      pause: false,
      'build-timeout': 60,
      ...more,
    },
  };
}

class Fixture {
  readonly directory: string;
  readonly logger = new RecordingLogger();
  readonly jobServer: JobServer;
  readonly #t: TestContext;

  private constructor(t: TestContext, jobServer: JobServer) {
    this.#t = t;
    this.directory = temporaryDirectory(t);
    this.jobServer = jobServer;
  }

  static async create(t: TestContext): Promise<Fixture> {
    const jobServer = new JobServer();
    await jobServer.listen(0);
    undoAfter(t, () => jobServer.close());
    return new Fixture(t, jobServer);
  }

  get servers(): readonly [{ host: string; port: number }] {
    return [this.jobServer.address as { host: string; port: number }];
  }

  start(isHere: (imageId: string) => boolean = () => false): ZuulPollers {
    const { directory, servers, logger } = this;
    const pollers = new ZuulPollers({
      repository: { recordDirectory: () => directory },
      logger: () => logger,
      isOffered: async (imageId, signal) =>
        isHere(imageId) || (await isImageOffered(servers, imageId, signal)),
      requestBuild: (request, signal) => requestBuild(servers, request, signal, logger),
    });
    undoAfter(this.#t, () => pollers[Symbol.asyncDispose]());
    return pollers;
  }

  /** Resolves when this number of clients wait for a job. A client sends its name together with the job. */
  async waiting(count: number): Promise<void> {
    const admin = new Admin(this.servers[0]);
    await waitUntil(`${count} to wait for a job`, async () => {
      const clients = (await admin.workers()).filter(({ clientId }) => /zuul poller/.test(clientId));
      return clients.length === count;
    });
    await admin.close();
  }

  /** Starts a builder whose jobs last until `end` is called. */
  startBuilder(name: string): { readonly jobs: WorkerJob[]; readonly end: () => void } {
    const jobs: WorkerJob[] = [];
    const ended = Promise.withResolvers<string>();
    const worker = new Worker({ servers: this.servers, clientId: 'builder' });
    undoAfter(this.#t, () => worker.close());
    worker.add(`image-build:${name}`, (job) => {
      jobs.push(job);
      return ended.promise;
    });
    return { jobs, end: () => ended.resolve('') };
  }
}

/** Returns the Zuul jobs of the requested build lists, in order. */
function looks(zuul: ZuulDouble): readonly (string | null)[] {
  return zuul.listings.map(({ query }) => query.get('job_name'));
}

describe('the Zuul pollers of a daemon', () => {
  test('the Zuul pollers follow the configuration, also after an invalid one, and poll only changed images again', async (t) => {
    const zuul = await startZuul(t);
    const fixture = await Fixture.create(t);
    const pollers = fixture.start();
    const looked = (count: number): Promise<unknown> =>
      waitUntil(`look ${count}`, () => zuul.listings.length === count);
    pollers.configure([imageOf(zuul, 'bad', { mqtt: { url: 'no URL', topic: 'zuul' } })]);
    pollers.configure([imageOf(zuul, 'a', { job: 'build-a' })]);
    await looked(1);
    assert.match(fixture.logger.lines[0] ?? '', /^error cannot poll for all zuul-images: Invalid URL/);
    pollers.configure([imageOf(zuul, 'a', { job: 'build-a' }), imageOf(zuul, 'b', { job: 'build-b' })]);
    await looked(2);
    pollers.configure([imageOf(zuul, 'a', { job: 'build-a' }), imageOf(zuul, 'b', { job: 'build-c' })]);
    await looked(3);
    pollers.configure([imageOf(zuul, 'b', { job: 'build-c' })]);
    pollers.configure([imageOf(zuul, 'b', { job: 'build-c' }), imageOf(zuul, 'a', { job: 'build-a' })]);
    await looked(4);
    await pollers[Symbol.asyncDispose]();
    assert.deepEqual(looks(zuul), ['build-a', 'build-b', 'build-c', 'build-a']);
  });

  test('the Zuul pollers skip a build whose image this host has but does not offer yet', async (t) => {
    const zuul = await startZuul(t);
    const { uuid } = zuul.table().add([qcowArtifact('1')]);
    const fixture = await Fixture.create(t);
    const builder = fixture.startBuilder(NAME);
    fixture.start((imageId) => imageId.endsWith(uuid)).configure([imageOf(zuul, NAME)]);
    const file = join(fixture.directory, 'noble%2Farm64.json');
    await waitUntil('the build to be taken', () => readFile(file, 'utf8').catch(() => undefined));
    assert.deepEqual(builder.jobs, []);
  });

  test('the Zuul pollers leave a running job to its builder when they stop, and wait for it after a restart', async (t) => {
    const zuul = await startZuul(t);
    const { uuid } = zuul.table().add([qcowArtifact('1')]);
    const fixture = await Fixture.create(t);
    const builder = fixture.startBuilder(NAME);
    const first = fixture.start();
    first.configure([imageOf(zuul, NAME)]);
    await waitUntil('the job', () => builder.jobs.length === 1);
    await first[Symbol.asyncDispose]();
    await fixture.waiting(0);
    fixture.start().configure([imageOf(zuul, NAME)]);
    await fixture.waiting(1);
    builder.end();
    const file = join(fixture.directory, 'noble%2Farm64.json');
    const memory = await waitUntil('the build to be taken', () =>
      readFile(file, 'utf8').catch(() => undefined),
    );
    assert.match(memory, new RegExp(uuid));
    assert.deepEqual(
      builder.jobs.map(({ unique }) => unique),
      [uuid],
    );
    assert.deepEqual(
      fixture.logger.lines.filter((line) => line.startsWith('warn')),
      [],
    );
  });

  test('the Zuul pollers warn about a damaged record, and poll once it is repaired', async (t) => {
    const zuul = await startZuul(t);
    const fixture = await Fixture.create(t);
    const file = join(fixture.directory, 'noble.json');
    await writeFile(file, 'nothing');
    const pollers = fixture.start();
    pollers.configure([imageOf(zuul, 'noble', { 'poll-interval': 0.01 })]);
    await waitUntil('a warning', () => fixture.logger.lines.length > 0);
    assert.match(
      fixture.logger.lines[0] ?? '',
      /^warn polling for new builds of noble failed: .*; remove it/,
    );
    await writeFile(file, '{"version": 1, "builds": []}');
    await waitUntil('a poll', () => zuul.listings.length > 0);
  });
});

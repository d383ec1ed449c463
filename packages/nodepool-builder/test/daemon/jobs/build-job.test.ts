// Not a unit test: it starts flock.
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { it } from 'node:test';
import { WorkFailError } from '@nodepool-builder/gearman-node';
import { BaseImageBuilder, type BuildContext, ImageRepository } from '@nodepool-builder/image-builder';
import { RecordingLogger } from '../../../../../test/fixtures/recording-logger.ts';
import { temporaryDirectory } from '../../../../../test/fixtures/scratch-directory.ts';
import { SiteAttestation } from '../../../src/attestation/site-attestation.ts';
import { type BuildJobContext, runBuildJob } from '../../../src/daemon/jobs/build-job.ts';
import { RunningJobs } from '../../../src/daemon/jobs/running-jobs.ts';
import { Statistics } from '../../../src/daemon/jobs/statistics.ts';
import { fakeJob } from './fake-job.ts';

const UUID = '0123456789abcdef0123456789abcdef';

/** A builder whose builds fail. */
class UnneededBuilder extends BaseImageBuilder {
  protected override createImage(): Promise<void> {
    return Promise.reject(new Error('this build is not needed'));
  }
}

class SmallBuilder extends BaseImageBuilder {
  protected override async createImage({ outputPath }: BuildContext): Promise<void> {
    await writeFile(outputPath('raw'), 'content');
  }
}

function contextOf(
  repository: ImageRepository,
  builder?: BaseImageBuilder,
  isImported = true,
): BuildJobContext {
  return {
    repository,
    logDirectory: repository.logDirectory,
    running: new RunningJobs(),
    builder: () => builder,
    configuration: {
      'build-log-retention': 7,
      maxDiskSize: 2 ** 30,
      'build-environment': [],
      'build-cache-size': 0,
      diskimages: [{ name: 'noble', isImported }],
    },
    attestation: new SiteAttestation({ diskimages: [] }, new RecordingLogger()),
    statistics: new Statistics({}, new RecordingLogger()),
    logger: () => new RecordingLogger(),
    isOffered: async () => false,
    offered: () => Promise.resolve(),
  };
}

it('a build of a disk image that is no longer configured ends with WORK_FAIL (COMPAT 1.5)', async (t) => {
  const repository = await ImageRepository.open(temporaryDirectory(t));
  t.after(() => repository.close());
  await assert.rejects(
    runBuildJob(contextOf(repository), fakeJob('image-build:debian', '{"image-id": "1"}')),
    (error) => error instanceof WorkFailError && /"debian" is not configured here/.test(error.message),
  );
});

it('a Zuul build that a builder offers is not imported again', async (t) => {
  const repository = await ImageRepository.open(temporaryDirectory(t));
  t.after(() => repository.close());
  const run = async (imageId: string, isImported = true): Promise<unknown> => {
    const builder = new UnneededBuilder({ name: 'noble', formats: ['raw'] });
    const context = contextOf(repository, builder, isImported);
    const job = fakeJob('image-build:noble', JSON.stringify({ 'image-id': imageId }));
    const isOffered = async (asked: string, signal: AbortSignal): Promise<boolean> =>
      asked === imageId && signal === job.signal;
    return await runBuildJob({ ...context, isOffered }, job);
  };
  const imageId = `noble-1763773261-${UUID}`;
  assert.equal(await run(imageId), `{"image-id": "${imageId}"}`);
  // images with other names do not count
  await assert.rejects(run(`jammy-1763773261-${UUID}`), /this build is not needed/);
  await assert.rejects(run('noble-1'), /this build is not needed/);
  await assert.rejects(run(imageId, false), /this build is not needed/);
});

it('a build job returns its image’s checksum if the client requests it', async (t) => {
  const repository = await ImageRepository.open(temporaryDirectory(t));
  t.after(() => repository.close());
  const context = contextOf(repository, new SmallBuilder({ name: 'noble', formats: ['raw'] }));
  const run = async (argument: object): Promise<unknown> =>
    JSON.parse(await runBuildJob(context, fakeJob('image-build:noble', JSON.stringify(argument))));
  assert.deepEqual(await run({ 'image-id': 'noble-1' }), { 'image-id': 'noble-1' });
  const sha256 = 'ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73';
  assert.deepEqual(await run({ 'image-id': 'noble-2', checksum: true }), {
    'image-id': 'noble-2',
    checksum: `raw:${sha256}`,
  });
});

it('a build job cannot forge or flood the log', async (t) => {
  const repository = await ImageRepository.open(temporaryDirectory(t));
  t.after(() => repository.close());
  const logger = new RecordingLogger();
  const builder = new UnneededBuilder({ name: 'noble', formats: ['raw'] });
  const imageId = `x\n2016-05-01 ERROR nodepool: forged ${'x'.repeat(1_000_000)}`;
  const job = fakeJob('image-build:noble', JSON.stringify({ 'image-id': imageId }));
  await assert.rejects(runBuildJob({ ...contextOf(repository, builder), logger: () => logger }, job));
  assert.match(logger.lines.join(), /image x\\x0a2016-05-01 ERROR/);
  for (const line of logger.lines) assert.ok(!line.includes('\n') && line.length < 1000, line.slice(0, 1000));
});

it('an empty record ends a build’s output, and an import has none', async (t) => {
  const repository = await ImageRepository.open(temporaryDirectory(t));
  t.after(() => repository.close());
  const emptyRecords = async (imageId: string, isImported: boolean): Promise<number> => {
    const logger = new RecordingLogger();
    const builder = new SmallBuilder({ name: 'noble', formats: ['raw'] });
    const context = { ...contextOf(repository, builder, isImported), logger: () => logger };
    await runBuildJob(context, fakeJob('image-build:noble', JSON.stringify({ 'image-id': imageId })));
    return logger.lines.filter((line) => line === 'info ').length;
  };
  assert.equal(await emptyRecords('noble-1', false), 1);
  assert.equal(await emptyRecords('noble-2', true), 0);
});

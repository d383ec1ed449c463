import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { it, type TestContext } from 'node:test';
import { DIRECTORY_MODULE, ImageRepository, type UploadResult } from '@nodepool-builder/image-builder';
import { FakeImageProvider } from '../../../../../test/doubles/fake-image-provider.ts';
import { createGatedQemuImg } from '../../../../../test/fixtures/gated-qemu-img.ts';
import { RecordingLogger } from '../../../../../test/fixtures/recording-logger.ts';
import { temporaryDirectory } from '../../../../../test/fixtures/scratch-directory.ts';
import { attestImage, writeKeys } from '../../../../../test/fixtures/site-key.ts';
import { undoAfter } from '../../../../../test/fixtures/undo-after.ts';
import { SiteAttestation } from '../../../src/attestation/site-attestation.ts';
import { listedProvider, toProvider } from '../../../src/configuration/provider.ts';
import { RunningJobs } from '../../../src/daemon/jobs/running-jobs.ts';
import { Statistics } from '../../../src/daemon/jobs/statistics.ts';
import { runUploadJob, type UploadJobContext } from '../../../src/daemon/jobs/upload-job.ts';
import { Uploads } from '../../../src/daemon/jobs/uploads.ts';
import { fakeJob } from './fake-job.ts';

const NO_HOST = { env: {}, cwd: '/', home: '/', warn: assert.fail };

/** Context for uploads of the images in a directory to the provider `fake`. */
async function setUp(
  t: TestContext,
  directory: string,
  { provider, ...more }: Record<string, unknown> & { readonly provider: FakeImageProvider },
): Promise<UploadJobContext & { readonly logger: () => RecordingLogger }> {
  const repository = await ImageRepository.open(directory);
  undoAfter(t, () => repository.close());
  const logger = new RecordingLogger();
  const uploads = await Uploads.open(join(directory, 'uploads'), { provider: () => undefined, logger });
  const source = {
    name: 'fake',
    type: 'directory',
    directory,
    images: [{ name: 'debian' }],
  } as const;
  const listed = listedProvider('', { ...source, ...more }, DIRECTORY_MODULE, String);
  const configuration = await toProvider(listed, NO_HOST);
  return {
    repository,
    running: new RunningJobs(),
    logDirectory: join(directory, 'logs'),
    providers: new Map([['fake', { configuration, provider }]]),
    configuration: {
      maxDiskSize: 2 ** 30,
      compressesQcow2: false,
      'build-environment': [],
      'build-log-retention': 7,
      'public-variables': [],
    },
    uploads,
    services: new Map(),
    attestation: new SiteAttestation({ diskimages: [] }, logger),
    statistics: new Statistics({}, logger),
    logger: () => logger,
  };
}

const UPLOAD = fakeJob('image-upload:1', '{"provider": "fake", "image-name": "debian"}');

it('the upload hook gets the uploaded file, or an existing file for a claimed snapshot', async (t) => {
  const directory = temporaryDirectory(t);
  for (const format of ['qcow2', 'raw']) writeFileSync(join(directory, `1.${format}`), 'an image');
  const snapshot = { provider: 'fake', externalId: 'snapshot' };
  let claimed: UploadResult | undefined;
  class ClaimingProvider extends FakeImageProvider {
    override claim(): Promise<UploadResult | undefined> {
      return Promise.resolve(claimed);
    }
  }
  const provider = new ClaimingProvider({ formats: ['raw'] });
  const context = await setUp(t, directory, { provider, 'post-upload-hook': 'true' });
  const image = context.repository.get('1') ?? assert.fail('no image');
  context.repository.get = () => ({ ...image, snapshots: [snapshot] });
  for (const [result, format] of [
    [undefined, 'raw'],
    [snapshot, 'qcow2'],
  ] as const) {
    claimed = result;
    await runUploadJob(context, UPLOAD);
    const ran = context.logger().lines.findLast((line) => line.startsWith('info running the hook'));
    assert.equal(ran?.split(' ').at(-1), join(directory, `1.${format}`));
  }
});

it('a snapshot that was not attested is not claimed where attestations are required', async (t) => {
  const directory = temporaryDirectory(t);
  writeFileSync(join(directory, '1.raw'), 'an image');
  const { key, publicKey } = await writeKeys(temporaryDirectory(t));
  await attestImage(directory, '1', key);
  class ClaimingProvider extends FakeImageProvider {
    override claim(): Promise<UploadResult | undefined> {
      assert.fail('it was claimed');
    }
  }
  const provider = new ClaimingProvider({ formats: ['raw'] });
  const context = await setUp(t, directory, { provider });
  const required = { 'require-attestation': { 'trusted-keys': [publicKey] } };
  const attestation = new SiteAttestation({ ...required, diskimages: [] }, context.logger());
  const image = context.repository.get('1') ?? assert.fail('no image');
  const snapshots = [{ provider: 'fake', externalId: 'snapshot' }];
  context.repository.get = () => ({ ...image, snapshots });
  assert.match(await runUploadJob({ ...context, attestation }, UPLOAD), /"external-id": "fake\//);
  context.repository.get = () => ({ ...image, files: [], snapshots });
  await assert.rejects(
    runUploadJob({ ...context, attestation }, UPLOAD),
    /refused by require-attestation: it has no file, and snapshots are not attested/,
  );
});

it('a conversion counts towards image-upload-timeout', async (t) => {
  const directory = temporaryDirectory(t);
  writeFileSync(join(directory, '1.raw'), 'an image');
  const { PATH } = process.env;
  const bin = temporaryDirectory(t);
  const qemuImg = await createGatedQemuImg(bin);
  process.env.PATH = `${bin}:${PATH}`;
  undoAfter(t, () => (process.env.PATH = PATH));
  const provider = new FakeImageProvider({ formats: ['qcow2'] });
  const context = await setUp(t, directory, { provider, 'image-upload-timeout': 3600 });
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const rejected = assert.rejects(runUploadJob(context, UPLOAD), /the upload took longer than 3600 s/);
  await qemuImg.waiting();
  t.mock.timers.tick(3_600_000);
  await rejected;
  assert.deepEqual(await qemuImg.conversions(), ['begin']);
});

it('a small file with a large disk is not converted', async (t) => {
  const directory = temporaryDirectory(t);
  execFileSync('qemu-img', ['create', '-q', '-f', 'qcow2', join(directory, '1.qcow2'), '400G']);
  const provider = new FakeImageProvider({ formats: ['raw'] });
  const context = await setUp(t, directory, { provider });
  await assert.rejects(runUploadJob(context, UPLOAD), /has 400 GiB, more than 1; .*virtual-size-limit/);
});

it('an upload job cannot forge or flood the log', async (t) => {
  const directory = temporaryDirectory(t);
  writeFileSync(join(directory, '1.raw'), 'an image');
  const context = await setUp(t, directory, { provider: new FakeImageProvider({ formats: ['raw'] }) });
  const text = `x\n2016-05-01 ERROR nodepool: forged ${'x'.repeat(1_000_000)}`;
  for (const fields of [
    { provider: text, 'image-name': 'debian' },
    { provider: 'fake', 'image-name': text },
    { provider: 'fake', 'image-name': 'debian', checksum: `raw:${text}` },
  ]) {
    await assert.rejects(runUploadJob(context, fakeJob('image-upload:1', JSON.stringify(fields))));
  }
  const { lines } = context.logger();
  assert.match(lines.join(), /x\\x0a2016-05-01 ERROR/);
  for (const line of lines) assert.ok(!line.includes('\n') && line.length < 1000, line.slice(0, 1000));
});

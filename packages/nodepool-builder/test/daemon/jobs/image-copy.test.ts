// Not a unit test: it starts flock.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { DIRECTORY_MODULE, ImageRepository } from '@nodepool-builder/image-builder';
import { FakeImageProvider } from '../../../../../test/doubles/fake-image-provider.ts';
import { RecordingLogger } from '../../../../../test/fixtures/recording-logger.ts';
import { temporaryDirectory } from '../../../../../test/fixtures/scratch-directory.ts';
import { undoAfter } from '../../../../../test/fixtures/undo-after.ts';
import { SiteAttestation } from '../../../src/attestation/site-attestation.ts';
import { listedProvider, toProvider } from '../../../src/configuration/provider.ts';
import { runDeleteJob } from '../../../src/daemon/jobs/image-copy.ts';
import { RunningJobs } from '../../../src/daemon/jobs/running-jobs.ts';
import { Statistics } from '../../../src/daemon/jobs/statistics.ts';
import { runUploadJob } from '../../../src/daemon/jobs/upload-job.ts';
import { Uploads } from '../../../src/daemon/jobs/uploads.ts';
import { JobError } from '../../../src/protocol/job-reply.ts';
import { fakeJob } from './fake-job.ts';

const SHA256 = createHash('sha256').update('an image').digest('hex');
const RECORDED = `raw:${SHA256}`;
const OTHER = `raw:${'0'.repeat(64)}`;

interface Setup {
  readonly path: string;
  readonly provider: FakeImageProvider;
  readonly repository: ImageRepository;
  readonly logger: RecordingLogger;
  readonly run: (argument: object) => Promise<string>;
}

const NO_HOST = { env: {}, cwd: '/', home: '/', warn: assert.fail };

/** Returns image 1 in format raw. */
async function setUp(t: TestContext): Promise<Setup> {
  const directory = temporaryDirectory(t);
  const path = join(directory, '1.raw');
  writeFileSync(path, 'an image');
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
  const provider = new FakeImageProvider({ formats: ['raw'] });
  const context = {
    repository,
    running: new RunningJobs(),
    logDirectory: join(directory, 'logs'),
    providers: new Map([
      [
        'fake',
        {
          configuration: await toProvider(listedProvider('', source, DIRECTORY_MODULE, String), NO_HOST),
          provider,
        },
      ],
    ]),
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
  const run = (argument: object): Promise<string> =>
    runUploadJob(context, fakeJob('image-upload:1', JSON.stringify(argument)));
  return { path, provider, repository, logger, run };
}

const UPLOAD = { provider: 'fake', 'image-name': 'debian' };

describe('an upload with a checksum on record', () => {
  it('an upload whose checksum is on record succeeds if the copy has it, and returns it', async (t) => {
    const { run, provider } = await setUp(t);
    assert.equal(JSON.parse(await run({ ...UPLOAD, checksum: RECORDED })).checksum, RECORDED);
    assert.equal((await provider.list()).length, 1);
  });

  it('an upload fails and deletes the copy if the copy’s checksum differs from the record', async (t) => {
    const { run, provider, path, repository } = await setUp(t);
    await assert.rejects(
      run({ ...UPLOAD, checksum: OTHER }),
      (error) => error instanceof JobError && error.message.includes(SHA256),
    );
    assert.deepEqual(await provider.list(), []);
    assert.equal(existsSync(path), false);
    assert.equal(repository.get('1'), undefined);
    assert.deepEqual([...repository.pendingDeletes], []);
  });

  it('an upload succeeds if the copy has no file in the format on record', async (t) => {
    const { run, provider } = await setUp(t);
    await run({ ...UPLOAD, checksum: `qcow2:${SHA256}` });
    assert.equal((await provider.list()).length, 1);
  });
});

for (const invalid of ['raw', 'raw:', `raw:${SHA256.slice(1)}`, `raw:${SHA256}\n`, `:${SHA256}`]) {
  describe(`a job with the checksum ${JSON.stringify(invalid)}`, () => {
    for (const argument of [{ ...UPLOAD, checksum: invalid }, { compare: invalid }]) {
      it(`a job with the invalid checksum ${JSON.stringify(invalid)} in ${Object.keys(argument).at(-1)} fails and keeps the copy`, async (t) => {
        const { run, path, repository } = await setUp(t);
        await assert.rejects(run(argument), /the job's checksum .* is invalid; send/);
        assert.ok(existsSync(path));
        assert.ok(repository.get('1'));
      });
    }
  });
}

describe('the result of an upload', () => {
  it('an upload returns no checksum unless the client requests one', async (t) => {
    const { run } = await setUp(t);
    assert.match(await run(UPLOAD), /^\{"external-id": "[^"]+"\}$/);
  });
});

describe('a comparison of a copy with the record', () => {
  it('a comparison with equal checksums succeeds, and uploads nothing', async (t) => {
    const { run, provider, path } = await setUp(t);
    assert.equal(await run({ compare: RECORDED }), '');
    assert.equal(existsSync(path), true);
    assert.deepEqual(await provider.list(), []);
  });

  it('a comparison with different checksums deletes the copy', async (t) => {
    const { run, path, logger } = await setUp(t);
    await assert.rejects(run({ compare: OTHER }), JobError);
    assert.equal(existsSync(path), false);
    assert.ok(logger.lines.some((line) => line.startsWith('warn image 1 differs from the record')));
  });
});

it('deleting an image whose files are gone succeeds (COMPAT 1.5)', async (t) => {
  const repository = await ImageRepository.open(temporaryDirectory(t));
  t.after(() => repository.close());
  const deletion = runDeleteJob(repository, new RecordingLogger(), fakeJob('image-delete:0000000007', '""'));
  assert.equal(await deletion, undefined);
});

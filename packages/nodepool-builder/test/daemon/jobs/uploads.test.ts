import assert from 'node:assert/strict';
import { mkdir, readdir, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { UploadResult } from '@nodepool-builder/image-builder';
import { RecordingLogger } from '../../../../../test/fixtures/recording-logger.ts';
import { temporaryDirectory } from '../../../../../test/fixtures/scratch-directory.ts';
import { Uploads } from '../../../src/daemon/jobs/uploads.ts';
import { uploadRecord } from './upload-record.ts';
import { DONE, FakeJob, GRACE, quotaExceeded, startUploads, succeed } from './uploads-fixture.ts';

describe('an upload with a job', () => {
  it('an upload is on record from before its start until its result is acknowledged', async (t) => {
    const { uploads, records, settle, provider, pass } = await startUploads(t);
    const job = new FakeJob();
    await uploads.run(job, uploadRecord(), async (record) => {
      assert.deepEqual(await records(), [record]);
      return DONE;
    });
    assert.deepEqual(await records(), [uploadRecord({ 'external-id': 'uuid' })]);
    job.acknowledge();
    await settle();
    assert.deepEqual(await records(), []);
    await pass(GRACE);
    assert.deepEqual(provider.discarded, []);
  });

  it('an upload may have any id', async (t) => {
    const { uploads, records } = await startUploads(t);
    for (const id of ['H:host:42', '../../etc/passwd', 'x'.repeat(500)]) {
      await uploads.run(new FakeJob(), uploadRecord({ 'upload-id': id }), succeed);
    }
    assert.equal((await records()).length, 3);
  });

  it('an upload with the same id in another provider is another upload', async (t) => {
    const { uploads, records } = await startUploads(t);
    await uploads.run(new FakeJob(), uploadRecord(), succeed);
    const failed = uploads.run(new FakeJob(), uploadRecord({ provider: 'other' }), async () => {
      assert.equal((await records()).length, 2);
      throw quotaExceeded();
    });
    await assert.rejects(failed, /quota/);
    assert.deepEqual(await records(), [uploadRecord({ 'external-id': 'uuid' })]);
  });

  it('an upload keeps its name in a further attempt', async (t) => {
    const earlier = uploadRecord({ 'external-name': 'first', 'external-id': 'uuid' });
    const { uploads, records } = await startUploads(t, earlier);
    await uploads.run(new FakeJob(), uploadRecord({ 'external-name': 'second' }), async (record) => {
      assert.deepEqual(record, uploadRecord({ 'external-name': 'first' }));
      assert.deepEqual(await records(), [record], 'its result counts as not sent');
      return DONE;
    });
  });

  it('an upload is shared by a second job with its id', async (t) => {
    const { uploads, records, settle, provider, pass } = await startUploads(t);
    const [lost, again] = [new FakeJob(), new FakeJob()];
    const result = Promise.withResolvers<UploadResult>();
    let starts = 0;
    const work = (): Promise<UploadResult> => {
      starts += 1;
      return result.promise;
    };
    const results = [uploads.run(lost, uploadRecord(), work)];
    lost.lose();
    results.push(uploads.run(again, uploadRecord(), work));
    result.resolve(DONE);
    assert.deepEqual(await Promise.all(results), [DONE, DONE]);
    again.acknowledge();
    await settle();
    assert.equal(starts, 1);
    assert.deepEqual(await records(), []);
    await pass(GRACE);
    assert.deepEqual(provider.discarded, []);
  });

  it('an upload becomes an orphan if the job server is lost before the result', async (t) => {
    const { uploads, records, provider, pass } = await startUploads(t);
    const job = new FakeJob();
    await uploads.run(job, uploadRecord(), () => {
      job.lose();
      return succeed();
    });
    assert.deepEqual(await records(), [uploadRecord()]);
    await pass(GRACE);
    assert.deepEqual(provider.discarded, ['upload-1']);
  });

  it('an upload keeps its external-id if the job server is lost after the result', async (t) => {
    const { uploads, records, settle } = await startUploads(t);
    const job = new FakeJob();
    await uploads.run(job, uploadRecord(), succeed);
    job.lose();
    await settle();
    assert.deepEqual(await records(), [uploadRecord({ 'external-id': 'uuid' })]);
  });

  it('an upload does not change at the late end of an earlier job', async (t) => {
    const { uploads, records, settle, provider, pass } = await startUploads(t);
    const [first, again] = [new FakeJob(), new FakeJob()];
    await uploads.run(first, uploadRecord(), succeed);
    const second = Promise.withResolvers<UploadResult>();
    const running = uploads.run(again, uploadRecord(), () => second.promise);
    first.lose();
    await settle();
    assert.deepEqual(await records(), [uploadRecord()]);
    await pass(GRACE);
    assert.deepEqual(provider.discarded, []);
    second.resolve(DONE);
    await running;
  });

  it('an upload that failed for good leaves no record, as the provider has cleaned up', async (t) => {
    const { uploads, records, provider, pass } = await startUploads(t);
    const failure = quotaExceeded();
    await assert.rejects(
      uploads.run(new FakeJob(), uploadRecord(), () => Promise.reject(failure)),
      failure,
    );
    assert.deepEqual(await records(), []);
    await pass(GRACE);
    assert.deepEqual(provider.discarded, []);
  });

  it('an upload may start again while the record of its failure is being removed', async (t) => {
    const { uploads, records } = await startUploads(t);
    const result = Promise.withResolvers<UploadResult>();
    let starts = 0;
    const again = (): Promise<UploadResult> =>
      uploads.run(new FakeJob(), uploadRecord(), () => {
        starts += 1;
        return result.promise;
      });
    const second = Promise.withResolvers<UploadResult>();
    const first = uploads.run(new FakeJob(), uploadRecord(), () => {
      process.nextTick(() => second.resolve(again())); // the removal has begun by then
      return Promise.reject(quotaExceeded());
    });
    await assert.rejects(first, /quota/);
    const third = again();
    result.resolve(DONE);
    assert.deepEqual(await Promise.all([second.promise, third]), [DONE, DONE]);
    assert.equal(starts, 1);
    assert.deepEqual(await records(), [uploadRecord({ 'external-id': 'uuid' })]);
  });

  it('an upload becomes an orphan after an error that its provider did not expect', async (t) => {
    const { uploads, records, provider, pass } = await startUploads(t);
    const failure = Object.assign(new Error('no such file'), { code: 'ENOENT' });
    await assert.rejects(uploads.run(new FakeJob(), uploadRecord(), () => Promise.reject(failure)));
    assert.deepEqual(await records(), [uploadRecord()]);
    await pass(GRACE);
    assert.deepEqual(provider.discarded, ['upload-1']);
  });

  it('an upload becomes an orphan if the cloud was unreachable', async (t) => {
    const { uploads, records, provider, pass } = await startUploads(t);
    const failure = Object.assign(new Error('503'), { retriable: true });
    await assert.rejects(uploads.run(new FakeJob(), uploadRecord(), () => Promise.reject(failure)));
    assert.deepEqual(await records(), [uploadRecord()]);
    await pass(GRACE);
    assert.deepEqual(provider.discarded, ['upload-1']);
  });

  it('an upload becomes an orphan if its result cannot be recorded, as no client will know the image', async (t) => {
    const { uploads, records, provider, pass, obstacle } = await startUploads(t);
    const unrecorded = uploads.run(new FakeJob(), uploadRecord(), async (record) => {
      await mkdir(obstacle(record));
      return DONE;
    });
    await assert.rejects(unrecorded, /^JobError: cannot write the record of the upload of 0001: EISDIR/);
    assert.deepEqual(await records(), [uploadRecord()]);
    await rmdir(obstacle(uploadRecord()));
    await pass(GRACE);
    assert.deepEqual(provider.discarded, ['upload-1']);
    assert.deepEqual(await records(), []);
  });

  it('an upload stays an orphan if a further attempt cannot be recorded', async (t) => {
    const { uploads, records, provider, pass, obstacle } = await startUploads(t, uploadRecord());
    await mkdir(obstacle(uploadRecord()));
    await assert.rejects(uploads.run(new FakeJob(), uploadRecord(), succeed), /cannot write the record/);
    await rmdir(obstacle(uploadRecord()));
    assert.deepEqual(await records(), [uploadRecord()]);
    await pass(GRACE);
    assert.deepEqual(provider.discarded, ['upload-1']);
  });

  it('an upload becomes an orphan if it was aborted', async (t) => {
    const { uploads, records } = await startUploads(t);
    const job = new FakeJob();
    const aborted = uploads.run(job, uploadRecord(), () => {
      job.stop();
      return Promise.reject(new Error('aborted'));
    });
    await assert.rejects(aborted, /aborted/);
    assert.deepEqual(await records(), [uploadRecord()]);
  });
});

it('a damaged upload record is logged and left unchanged, and a half-written one is removed', async (t) => {
  const directory = temporaryDirectory(t);
  await writeFile(join(directory, 'torn.json'), '{"version": 1, "provider"');
  await writeFile(join(directory, 'newer.json'), JSON.stringify({ ...uploadRecord(), version: 2 }));
  await writeFile(join(directory, 'x.json.new'), '{"ver');
  const logger = new RecordingLogger();
  await Uploads.open(directory, { provider: () => undefined, logger });
  assert.deepEqual((await readdir(directory)).toSorted(), ['newer.json', 'torn.json']);
  assert.equal(
    logger.lines.filter((line) => /^warn ignoring the upload record .* is damaged: /.test(line)).length,
    2,
  );
});

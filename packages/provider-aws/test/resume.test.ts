// Only in test:all: it kills an upload at each step.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { test } from 'node:test';
import { readSettings } from '@nodepool-builder/image-builder/internal';
import { allBlocks } from '../../../test/doubles/aws/snapshots.ts';
import { AWS_SETTINGS } from '../src/aws-settings.ts';
import { awsFixture } from './aws-fixture.ts';
import { digestsOf, requestFor, writeDisk } from './disk.ts';

const BLOCKS = Object.fromEntries(
  Array.from({ length: 40 }, (_, index) => [index, 'abcdefgh'[index % 8]]),
) as Record<number, string>;

/** Requests that create or change something. The uploading process is killed once after each of them. */
const STEPS = [
  ['StartSnapshot', 1],
  ['PutSnapshotBlock', 1],
  ['PutSnapshotBlock', 17],
  ['PutSnapshotBlock', 40],
  ['CompleteSnapshot', 1],
  ['RegisterImage', 1],
] as const;

for (const [step, count] of STEPS) {
  for (const end of ['upload', 'discard'] as const) {
    test(`an upload to AWS killed at ${step} ${count} is ${end === 'upload' ? 'finished by another attempt' : 'removed by a discard'}`, async (t) => {
      const fixture = await awsFixture(t, { pendingLists: 1 });
      const { double, directory } = fixture;
      const path = join(directory, 'disk.raw');
      await writeDisk(path, BLOCKS);
      const options = {
        entry: { ...readSettings(AWS_SETTINGS, {}, String), name: 'ci', images: [], 'upload-concurrency': 1 },
        formats: ['raw'],
        directory: join(directory, 'records'),
        session: {
          region: 'us-east-1',
          credentialsFile: join(directory, 'credentials'),
          endpoint: double.endpoint,
          concurrency: 8,
        },
        interval: 0.02,
      };
      const program = join(import.meta.dirname, 'killed-upload.ts');
      const args = [...process.execArgv.filter((argument) => !argument.startsWith('--test')), program];
      const child = spawn(process.execPath, [...args, JSON.stringify({ options, path })], {
        stdio: ['ignore', 'inherit', 'inherit'],
      });
      const ended = once(child, 'exit');
      let seen = 0;
      double.fault = ({ operation }) => {
        if (operation !== step || ++seen !== count) return undefined;
        child.kill('SIGKILL');
        return 'lost';
      };
      assert.deepEqual(await ended, [null, 'SIGKILL']);
      double.fault = () => undefined;
      const putBefore = double.requests.filter(({ operation }) => operation === 'PutSnapshotBlock').length;

      const provider = fixture.open();
      if (end === 'discard') await provider.discard('u1');
      else {
        const { externalId } = await provider.upload(requestFor(path));
        assert.deepEqual(
          (await provider.list()).map((image) => image.externalId),
          [externalId],
        );
        const [snapshot] = double.region().snapshots.all();
        assert.ok(snapshot);
        assert.deepEqual(allBlocks(snapshot), await digestsOf(path));
        const put = double.requests.filter(({ operation }) => operation === 'PutSnapshotBlock').length;
        // The block whose response was lost is sent again.
        assert.ok(put <= 41, `${putBefore} blocks before, ${put} in all`);
      }
      const left = end === 'upload' ? 1 : 0;
      assert.equal(double.region().images.all().length, left);
      assert.equal(double.region().snapshots.all().length, left);
      assert.deepEqual(await provider.listPartialUploads(), []);
    });
  }
}

// Only in test:all: it kills an upload at each step.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { entryOf, openProvider, startDouble } from './azure-fixture.ts';
import { diskRequest } from './disk.ts';

/** Number of blocks with data. */
const BLOCKS = [0, 1, 2, 3, 5, 6, 9];

/** Requests that change something. The uploading process is killed once after each of them. */
const STEPS = [
  ['PUT disks', 1],
  ['POST disks/beginGetAccess', 1],
  ['PUT pages', 1],
  ['PUT pages', 5],
  ['PUT pages', BLOCKS.length + 1],
  ['POST disks/endGetAccess', 1],
  ['PUT images', 1],
  ['PUT versions', 1],
  ['DELETE disks', 1],
] as const;

for (const [step, count] of STEPS) {
  for (const end of ['upload', 'discard', 'removal'] as const) {
    const gallery = step === 'PUT versions' ? { 'gallery-name': 'ci' } : {};
    test(`an upload to Azure that was killed at ${step} ${count} is ${titleOf(end)}`, async (t) => {
      const double = await startDouble(t, { relaysPages: true, lag: end === 'upload' ? 2 : 0 });
      double.addGallery('ci');
      // Without the build time, the disk determines the number of a version.
      const { builtAt: _, ...request } = await diskRequest(t, BLOCKS);
      const { endpoint, subscription } = double;
      const directory = join(request.file.path, '../records');
      const options = {
        entry: entryOf(gallery),
        formats: ['raw'],
        directory,
        pollInterval: 0.01,
      };
      const settings = {
        account: { endpoint, subscription, resourceGroup: 'images' },
        token: double.issueToken(),
        options,
        request,
      };
      const program = join(import.meta.dirname, 'killed-upload.ts');
      const args = [...process.execArgv.filter((argument) => !argument.startsWith('--test')), program];
      const child = spawn(process.execPath, [...args, JSON.stringify(settings)], {
        stdio: ['ignore', 'inherit', 'inherit'],
      });
      const ended = once(child, 'exit');
      let seen = 0;
      double.fault = ({ name }) => {
        if (name !== step || ++seen !== count) return undefined;
        child.kill('SIGKILL');
        return 'lost';
      };
      assert.deepEqual(await ended, [null, 'SIGKILL']);
      double.fault = () => undefined;
      const putBefore = pagesOf(double.requests);

      const provider = openProvider(double, gallery, directory);
      if (end === 'upload') {
        const { externalId } = await provider.upload(request);
        assert.deepEqual(await double.content(externalId), await readFile(request.file.path));
        const again = pagesOf(double.requests) - putBefore;
        // Requests that were in flight when the process was killed are sent again.
        const isResumed = step === 'PUT pages' && count === BLOCKS.length + 1;
        if (isResumed) assert.equal(again, 1, 'the footer alone');
      } else if (end === 'discard') {
        await provider.discard(request.uploadId);
      } else {
        for (const partial of await provider.listPartialUploads()) {
          assert.equal(partial.uploadId, request.uploadId);
          await partial.remove();
        }
        for (const image of await provider.list()) await provider.delete(image.externalId);
      }
      const images = ['images', 'galleries/images/versions'].flatMap((type) =>
        double.ofType(`Microsoft.Compute/${type}`),
      );
      assert.equal(images.length, end === 'upload' ? 1 : 0);
      assert.deepEqual(double.ofType('Microsoft.Compute/disks'), []);
      assert.deepEqual(await provider.listPartialUploads(), []);
    });
  }
}

function titleOf(end: 'upload' | 'discard' | 'removal'): string {
  return {
    upload: 'finished by another attempt',
    discard: 'removed by a discard',
    removal: 'removed as a partial upload',
  }[end];
}

function pagesOf(requests: readonly { readonly name: string }[]): number {
  return requests.filter(({ name }) => name === 'PUT pages').length;
}

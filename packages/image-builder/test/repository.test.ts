import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { RepositoryFixture } from '../../../test/fixtures/repository-fixture.ts';
import { mountTmpfs, temporaryDirectory } from '../../../test/fixtures/temporary-directory.ts';
import { waitUntil } from '../../../test/fixtures/wait-until.ts';
import { withCode } from '../../../test/fixtures/with-code.ts';
import { ImageRepository } from '../src/index.ts';
import type { Manifest } from '../src/manifest.ts';
import { describeFiles } from '../src/repository/publication.ts';
import type { BuildSite } from '../src/repository.ts';
import { keeperOf } from './lock-keeper.ts';

/** Builder that creates the raw image of an id, and counts its builds. */
class Maker {
  runs = 0;
  readonly #imageId: string;

  constructor(imageId: string) {
    this.#imageId = imageId;
  }

  readonly make = async ({ staging }: BuildSite): Promise<Manifest> => {
    this.runs += 1;
    await writeFile(staging.path(`${this.#imageId}.raw`), 'content');
    const files = await describeFiles(staging, this.#imageId, ['raw']);
    return { version: 1, 'image-id': this.#imageId, 'image-name': 'debian', files };
  };
}

function stagingOf({ directory }: RepositoryFixture): Promise<string[]> {
  return readdir(join(directory, '.nodepool-builder', 'staging'));
}

test('an images directory belongs to one repository at a time', async (t) => {
  const fixture = await RepositoryFixture.open(t);
  await assert.rejects(
    ImageRepository.open(fixture.directory),
    withCode('directory-locked', new RegExp(`in use by process ${process.pid} on host`)),
  );
  await fixture.close();
  await fixture.open();
});

test('a missing, unwritable or non-directory images-dir is rejected', async (t) => {
  const directory = await temporaryDirectory(t);
  await writeFile(join(directory, 'file'), '');
  const readOnly = await mountTmpfs(t, 'ro');
  for (const path of [join(directory, 'missing'), join(directory, 'file'), readOnly]) {
    await assert.rejects(
      ImageRepository.open(path),
      withCode('directory-not-usable', /as images-dir failed/),
    );
  }
  assert.deepEqual(await readdir(directory), ['file']);
});

test('a full file system of images-dir is reported as full', async (t) => {
  const directory = await mountTmpfs(t, 'nr_inodes=3');
  await assert.rejects(ImageRepository.open(directory), withCode('disk-full', /free space there/));
});

test('an abort before the repository is open unlocks the directory', async (t) => {
  const { directory } = await RepositoryFixture.create(t);
  await assert.rejects(ImageRepository.open(directory, { signal: AbortSignal.abort() }), {
    name: 'AbortError',
  });
  await (await ImageRepository.open(directory)).close();
});

test('a repository takes its lock again if the lock’s keeper is killed', async (t) => {
  const fixture = await RepositoryFixture.open(t);
  const lock = fixture.path('.nodepool-builder/lock');
  const keeper = keeperOf(lock);
  assert.ok(keeper);
  // A process has the file open before it holds the lock, and the owner is recorded afterwards.
  const owner = fixture.path('.nodepool-builder/owner.json');
  await rm(owner);
  process.kill(keeper, 'SIGKILL');
  await waitUntil('another keeper', () => existsSync(owner));
  await assert.rejects(ImageRepository.open(fixture.directory), withCode('directory-locked'));
  assert.match(fixture.logger.lines.join('\n'), /error .* was killed; locking it again/);
});

test('concurrent and repeated calls make an image once', async (t) => {
  const fixture = await RepositoryFixture.open(t);
  const { repository } = fixture;
  const image = new Maker('a');
  const results = await Promise.all([1, 2].map(() => repository.add('a', 'debian', image.make)));
  const again = await repository.add('a', 'debian', image.make);
  assert.equal(image.runs, 1);
  for (const result of [...results, again]) assert.equal(result, repository.get('a'));
  assert.deepEqual(fixture.events, ['added a']);
  assert.deepEqual(await stagingOf(fixture), []);
});

test('an image id belongs to the first image name that it was used with', async (t) => {
  const fixture = await RepositoryFixture.create(t);
  await fixture.write('by-hand.raw');
  const repository = await fixture.open();
  const image = new Maker('a');
  const first = repository.add('a', 'debian', image.make);
  const refused = withCode('image-exists', /image a exists as "debian", not as "fedora"/);
  await assert.rejects(repository.add('a', 'fedora', image.make), refused);
  await first;
  await assert.rejects(repository.add('a', 'fedora', image.make), refused);
  await assert.rejects(
    repository.add('by-hand', 'debian', image.make),
    withCode('image-exists', /exists as "an unknown name"/),
  );
  assert.equal(image.runs, 1);
});

test('an incomplete image file is not overwritten', async (t) => {
  const fixture = await RepositoryFixture.open(t);
  await fixture.write('a.vmdk', '');
  const image = new Maker('a');
  await assert.rejects(fixture.repository.add('a', 'debian', image.make), withCode('image-exists'));
  assert.equal(image.runs, 0);
});

test('a failed image can be added again', async (t) => {
  const fixture = await RepositoryFixture.open(t);
  const fault = new Error('fault');
  await assert.rejects(
    fixture.repository.add('a', 'debian', () => Promise.reject(fault)),
    fault,
  );
  assert.deepEqual(await stagingOf(fixture), []);
  await fixture.repository.add('a', 'fedora', new Maker('a').make);
  assert.deepEqual(fixture.events, ['added a']);
});

test('an image’s deletion can be repeated until it is forgotten', async (t) => {
  const fixture = await RepositoryFixture.open(t);
  const { repository } = fixture;
  await repository.add('a', 'debian', new Maker('a').make);
  const pendingAtEvent = fixture.next('removed').then(() => [...repository.pendingDeletes]);
  await Promise.all([repository.delete('a'), repository.delete('a')]);
  assert.deepEqual(await pendingAtEvent, ['a']);
  await repository.delete('a');
  await fixture.close();
  const successor = await fixture.open();
  await successor.delete('a');
  await successor.forgetDelete('a');
  await assert.rejects(successor.delete('a'), withCode('image-not-found', /image a does not exist here/));
  assert.deepEqual(fixture.events, ['added a', 'removed a', 'deleteForgotten a']);
});

test('an image that appears again is no longer pending deletion', async (t) => {
  const fixture = await RepositoryFixture.open(t);
  const { repository } = fixture;
  await repository.add('a', 'debian', new Maker('a').make);
  await repository.delete('a');
  const forgotten = fixture.next('deleteForgotten');
  await repository.add('a', 'debian', new Maker('a').make);
  assert.equal(await forgotten, 'a');
  assert.deepEqual([...repository.pendingDeletes], []);
});

test('a failed deletion leaves the image', async (t) => {
  const fixture = await RepositoryFixture.open(t);
  const { repository } = fixture;
  await repository.add('a', 'debian', new Maker('a').make);
  await rm(fixture.path('.nodepool-builder/trash'), { recursive: true });
  await assert.rejects(repository.delete('a'), withCode('directory-not-usable', /deleting image a failed/));
  assert.ok(repository.get('a'));
  assert.deepEqual([...repository.pendingDeletes], []);
});

test('deleting an unknown image fails', async (t) => {
  const { repository } = await RepositoryFixture.open(t);
  await assert.rejects(repository.delete('a'), withCode('image-not-found'));
});

test('closing a repository aborts builds and unlocks the directory', async (t) => {
  const fixture = await RepositoryFixture.open(t);
  const begun = Promise.withResolvers<void>();
  const build = fixture.repository.add('a', 'debian', async ({ signal }) => {
    begun.resolve();
    return await new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason));
    });
  });
  await begun.promise;
  await Promise.all([assert.rejects(build, withCode('build-aborted', /is being closed/)), fixture.close()]);
  assert.deepEqual(await stagingOf(fixture), []);
  await fixture.open();
});

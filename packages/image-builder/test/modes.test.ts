import assert from 'node:assert/strict';
import { chmod, readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { RepositoryFixture } from '../../../test/fixtures/repository-fixture.ts';
import { makeDirectory, makeStateDirectory } from '../src/modes.ts';
import { makeImage, ScriptedBuilder } from './scripted-builder.ts';

function withUmask(t: TestContext, umask: number): void {
  const before = process.umask(umask);
  t.after(() => process.umask(before));
}

/** Lists `mode path` of all entries below a directory. */
async function modesBelow(directory: string): Promise<string[]> {
  const names = await readdir(directory, { recursive: true });
  return await Promise.all(
    names.toSorted().map(async (name) => {
      const { mode } = await stat(join(directory, name));
      return `${(mode & 0o7777).toString(8)} ${name}`;
    }),
  );
}

/** Returns the state of a repository with one built image. */
const STATE = [
  '700 .nodepool-builder',
  '700 .nodepool-builder/deleted',
  '700 .nodepool-builder/deletes',
  '600 .nodepool-builder/lock',
  '700 .nodepool-builder/logs',
  '640 .nodepool-builder/logs/debian-1.log',
  '700 .nodepool-builder/manifests',
  '600 .nodepool-builder/manifests/debian-1.json',
  '600 .nodepool-builder/owner.json',
  '700 .nodepool-builder/staging',
];

const MODES = [
  ...STATE,
  '700 .nodepool-builder/trash',
  '755 debian-1.d',
  '644 debian-1.qcow2',
  '644 debian-1.raw',
  '644 debian-1.raw.md5',
];

for (const umask of [0, 0o022, 0o077]) {
  test(`a build leaves private state and readable images, with umask 0${umask.toString(8)}`, async (t) => {
    withUmask(t, umask);
    const { repository, directory } = await RepositoryFixture.open(t);
    const builder = new ScriptedBuilder(async (context) => {
      await makeImage(context);
      const image = context.outputPath('raw');
      await context.run('sh', [
        '-c',
        'echo "0  $1" > "$1.md5"; mkdir "$(dirname "$1")/debian-1.d"',
        'sh',
        image,
      ]);
      const stage = (await modesBelow(directory)).filter((line) => /staging\/[^/]+$/.test(line));
      assert.match(stage.join('\n'), /^700 .*\/stage-\w+$/);
    });
    await builder.build({ imageId: 'debian-1', repository });
    await repository.file('debian-1', ['qcow2']);
    assert.deepEqual(await modesBelow(directory), MODES);
  });
}

test('a separate directory for build logs is readable by the group', async (t) => {
  withUmask(t, 0);
  const { repository, outside } = await RepositoryFixture.open(t);
  const logDirectory = join(outside, 'made');
  await new ScriptedBuilder(makeImage).build({ imageId: 'debian-1', repository, logDirectory });
  assert.deepEqual(await modesBelow(outside), ['750 made', '640 made/debian-1.log']);
});

test('permissions that the Python builder left too wide are tightened at the start', async (t) => {
  withUmask(t, 0o022);
  const fixture = await RepositoryFixture.open(t);
  const { directory, logger } = fixture;
  await new ScriptedBuilder(makeImage).build({ imageId: 'debian-1', repository: fixture.repository });
  await fixture.close();
  await writeFile(join(directory, '0000000007.vhd'), 'an image of the Python builder');
  await writeFile(join(directory, '0000000008.raw'), 'an image that only its owner reads');
  await writeFile(join(directory, 'notes.txt'), 'a file of a person');
  for (const name of await readdir(directory))
    await chmod(join(directory, name), name.startsWith('.') ? 0o777 : 0o666);
  await chmod(join(directory, '0000000008.raw'), 0o600);
  await fixture.open();
  assert.deepEqual(await modesBelow(directory), [
    ...STATE,
    '700 .nodepool-builder/trash',
    '644 0000000007.vhd',
    '600 0000000008.raw',
    '644 debian-1.raw',
    '666 notes.txt',
  ]);
  assert.ok(logger.lines.includes('info "0000000007.vhd" was writable for other users; tightened its mode'));
});

test('a directory that the file system rejects causes an error instead of an endless loop of mkdir', async () => {
  for (const path of ['/proc/nothing', '/proc/nothing/below']) {
    await assert.rejects(makeStateDirectory(path), { code: 'ENOENT' });
  }
});

test('a file in place of a directory causes an error, and keeps its mode', async (t) => {
  const { directory } = await RepositoryFixture.open(t);
  const path = join(directory, 'file');
  await writeFile(path, '', { mode: 0o644 });
  await assert.rejects(makeDirectory(path, 0o777), { code: 'EEXIST' });
  await assert.rejects(makeStateDirectory(path), { code: 'EEXIST' });
  assert.equal((await stat(path)).mode & 0o777, 0o644);
});

test('directories above a state directory are created, all of them private', async (t) => {
  const { directory } = await RepositoryFixture.open(t);
  await Promise.all(['a/b', 'a/b', 'a/c'].map((path) => makeStateDirectory(join(directory, path))));
  const created = (await modesBelow(directory)).filter((line) => / a(?:\/|$)/.test(line));
  assert.deepEqual(created, ['700 a', '700 a/b', '700 a/c']);
});

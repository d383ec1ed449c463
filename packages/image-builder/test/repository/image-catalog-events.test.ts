import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFile,
  chmod,
  link,
  mkdir,
  open,
  rename,
  rm,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { RepositoryFixture } from '../../../../test/fixtures/repository-fixture.ts';

test('a file that is moved into images-dir is offered until it is removed', async (t) => {
  const fixture = await RepositoryFixture.open(t);
  await writeFile(join(fixture.outside, 'a.raw'), 'content');
  const added = fixture.next('added');
  await rename(join(fixture.outside, 'a.raw'), fixture.path('a.raw'));
  const { id, name, files } = await added;
  assert.deepEqual({ id, name }, { id: 'a', name: undefined });
  assert.deepEqual(files, [{ format: 'raw', path: fixture.path('a.raw'), size: 7 }]);
  const removed = fixture.next('removed');
  await rm(fixture.path('a.raw'));
  assert.equal((await removed).id, 'a');
  assert.equal(fixture.repository.images.size, 0);
});

test('files with one id in images-dir are one image', async (t) => {
  const fixture = await RepositoryFixture.create(t);
  for (const name of ['a.qcow2', 'a.raw', 'b.c.raw']) await fixture.write(name);
  const { images } = await fixture.open();
  const formats = Array.from(images.values(), ({ id, files }) => [id, files.map(({ format }) => format)]);
  assert.deepEqual(Object.fromEntries(formats), { a: ['qcow2', 'raw'], 'b.c': ['raw'] });
  await rm(fixture.path('a.raw'));
  // Once the second file is offered, the scan that offered the first, and noticed the removal, has ended.
  for (const name of ['one.raw', 'two.raw']) {
    const added = fixture.next('added');
    await fixture.write(name);
    await added;
  }
  assert.deepEqual(
    images.get('a')?.files.map(({ format }) => format),
    ['qcow2'],
  );
});

test('other files in images-dir are ignored, and an invalid id is logged once', async (t) => {
  const fixture = await RepositoryFixture.create(t);
  for (const name of ['lost+found', 'b.raw', 'c.d']) await mkdir(fixture.path(name));
  for (const name of ['.x', '.x.raw', 'a.raw.md5', 'a.qcow2-new', 'noextension', 'a b.raw'])
    await fixture.write(name);
  await fixture.open();
  await appendFile(fixture.path('a b.raw'), 'more');
  const added = fixture.next('added');
  await fixture.write('a.raw');
  await added;
  assert.deepEqual([...fixture.repository.images.keys()], ['a']);
  const warnings = fixture.logger.lines.filter((line) => line.startsWith('warn'));
  assert.equal(warnings.length, 2);
  assert.match(warnings[0] ?? '', /"a b\.raw" is not offered as an image: its id contains white space/);
  assert.match(warnings[1] ?? '', /"b\.raw" is not offered as an image: it is not a regular file/);
});

test('a symbolic link in images-dir is not offered, and an emptied image is withdrawn', async (t) => {
  const fixture = await RepositoryFixture.create(t);
  await symlink('/etc/shadow', fixture.path('there.raw'));
  await fixture.write('empty.raw', '');
  await fixture.write('a.raw');
  const { images } = await fixture.open();
  assert.deepEqual([...images.keys()], ['a']);
  const removed = fixture.next('removed');
  await symlink('/etc/shadow', fixture.path('later.raw'));
  await truncate(fixture.path('a.raw'));
  assert.equal((await removed).id, 'a');
  // Events come in order: once this one is offered, the link has been examined.
  const added = fixture.next('added');
  await fixture.write('b.raw');
  await added;
  assert.deepEqual([...images.keys()], ['b']);
  const refused = fixture.logger.lines.filter((line) => line.includes('is a symbolic link'));
  assert.equal(refused.length, 2);
});

test('a file in images-dir is offered when its writer closes it, and not during a pause', async (t) => {
  const fixture = await RepositoryFixture.open(t);
  const handle = await open(fixture.path('slow.raw'), 'w');
  t.after(() => handle.close().catch(() => undefined));
  await handle.write('the first half, ');
  // Events arrive in order: once this one is offered, the other one has been examined as well.
  for (const name of ['one.raw', 'two.raw']) {
    const added = fixture.next('added');
    await fixture.write(name);
    await added;
    await handle.write('more, ');
  }
  assert.deepEqual(fixture.events, ['added one', 'added two']);
  await handle.write('the end');
  const added = fixture.next('added');
  await handle.close();
  assert.deepEqual(
    (await added).files.map(({ size }) => size),
    [35],
  );
});

test('a large image that cp writes is offered once, when it is complete', async (t) => {
  const fixture = await RepositoryFixture.open(t);
  const size = 200 * 1024 * 1024;
  await writeFile(join(fixture.outside, 'big.raw'), Buffer.alloc(size, 'x'));
  const added = fixture.next('added');
  const args = ['--reflink=never', join(fixture.outside, 'big.raw'), fixture.directory];
  const copied = once(spawn('cp', args, { stdio: 'inherit' }), 'exit');
  assert.equal((await added).files[0]?.size, size);
  assert.deepEqual(await copied, [0, null]);
  assert.deepEqual(fixture.events, ['added big']);
});

test('an image that is rewritten is withdrawn, and offered again when it is complete', async (t) => {
  const fixture = await RepositoryFixture.create(t);
  await fixture.write('a.raw');
  await fixture.open();
  const removed = fixture.next('removed');
  const handle = await open(fixture.path('a.raw'), 'w');
  await handle.write('other');
  await removed;
  const added = fixture.next('added');
  await handle.close();
  assert.equal((await added).files[0]?.size, 5);
});

test('changes to an image file’s mode and links cause no event', async (t) => {
  const fixture = await RepositoryFixture.create(t);
  await fixture.write('a.raw');
  await fixture.open();
  await chmod(fixture.path('a.raw'), 0o600);
  await link(fixture.path('a.raw'), join(fixture.outside, 'hard-link'));
  const added = fixture.next('added');
  await fixture.write('b.raw');
  await added;
  assert.deepEqual(fixture.events, ['added b']);
});

test('the disappearance of images-dir is logged, and its images come back with it', async (t) => {
  const fixture = await RepositoryFixture.create(t);
  await fixture.write('a.raw');
  await fixture.open();
  const removed = fixture.next('removed');
  await rename(fixture.directory, `${fixture.directory}.away`);
  await removed;
  assert.match(fixture.logger.lines.join('\n'), /error .*has disappeared/);
  const added = fixture.next('added');
  await rename(`${fixture.directory}.away`, fixture.directory);
  await added;
});

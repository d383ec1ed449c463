import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { codeBlocks, readPage } from '../../../test/docs/markdown.ts';
import { ExampleProject } from '../../../test/fixtures/example-project.ts';
import { RepositoryFixture } from '../../../test/fixtures/repository-fixture.ts';
import { makeImage, ScriptedBuilder } from './scripted-builder.ts';

const readme = await readPage('packages/image-builder/README.md');
const [program = '', upload = '', ...others] = codeBlocks(readme, 'ts');

test('the README’s builder makes an image of a directory', async (t) => {
  assert.deepEqual(others, []);
  const project = await ExampleProject.create(t);
  await project.makeDirectory('images');
  await project.write('program.ts', program);
  const [path] = (await project.run('program.ts')).split('\n');
  assert.equal(path, join(project.directory, 'images', 'skel-0000000001.qcow2'));
  const raw = path.replace(/qcow2$/, 'raw');
  const profile = execFileSync('debugfs', ['-R', 'cat .profile', raw], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  assert.deepEqual(profile, await readFile('/etc/skel/.profile'));
  execFileSync('qemu-img', ['compare', '-f', 'raw', '-F', 'qcow2', raw, path]);
  await project.checkTypes();
});

test('the README’s table names all files in a repository’s own directory', async (t) => {
  const { repository } = await RepositoryFixture.open(t);
  await new ScriptedBuilder(makeImage).build({ imageId: 'skel-1', repository });
  for (const name of await readdir(join(repository.directory, '.nodepool-builder'))) {
    assert.match(readme, new RegExp(`^\\|.*\`${name}[/\`].*\\|$`, 'm'), name);
  }
});

test('the README’s directory provider gets each image', async (t) => {
  const project = await ExampleProject.create(t);
  for (const name of ['images', 'pool']) await project.makeDirectory(name);
  await project.write('images/debian-1.qcow2', 'content');
  await project.write('program.ts', upload);
  assert.equal(await project.run('program.ts'), 'debian-debian-1.qcow2\n');
  assert.deepEqual((await readdir(join(project.directory, 'pool'))).toSorted(), [
    'debian-debian-1.qcow2',
    'debian-debian-1.qcow2.json',
    'debian-latest.qcow2',
  ]);
  await project.checkTypes();
});

import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { codeBlocks, readPage } from '../../../test/docs/markdown.ts';
import { cloudsYaml } from '../../../test/fixtures/openstack/account.ts';
import { openStack } from '../../../test/fixtures/openstack/openstack.ts';
import { ExampleProject } from '../../image-builder/test/example-project.ts';
import { IMAGE_PROVIDERS } from '../src/index.ts';

const readme = await readPage('packages/image-providers/README.md');
const [program = '', openstack = '', contract = ''] = codeBlocks(readme, 'ts');

/** A cloud for the contract that the README shows. */
const MY_CLOUD = `
import { FakeImageProvider } from '@nodepool-builder/image-builder/testing';

export class MyCloud extends FakeImageProvider {}
`;

test('the program uploads each image, and the contract passes', async (t) => {
  const project = await ExampleProject.create(t);
  for (const name of ['images', 'pool']) await project.makeDirectory(name);
  await project.write('images/debian-1.qcow2', 'content');
  await project.write('program.ts', program);
  await project.write('my-cloud.ts', MY_CLOUD);
  await project.write('contract.ts', contract);
  assert.equal(await project.run('program.ts'), 'debian-debian-1.qcow2\n');
  assert.deepEqual((await readdir(join(project.directory, 'pool'))).toSorted(), [
    'debian-debian-1.qcow2',
    'debian-debian-1.qcow2.json',
    'debian-latest.qcow2',
  ]);
  assert.match(await project.run('contract.ts'), /^ℹ fail 0$/m);
  await project.checkTypes();
});

test('a file is uploaded to a cloud of clouds.yaml, once, and listed', async (t) => {
  const account = await (await openStack()).createAccount();
  const project = await ExampleProject.create(t);
  await project.write('clouds.yaml', cloudsYaml({ ci: account.cloud() }));
  await project.write('debian-1.qcow2', 'content');
  await project.write('openstack.ts', openstack);
  const listed = /^debian-1 (?<id>[-0-9a-f]{36})\n$/;
  const id = listed.exec(await project.run('openstack.ts'))?.groups?.id;
  assert.equal(listed.exec(await project.run('openstack.ts'))?.groups?.id, id, 'the same upload');
  assert.deepEqual(
    (await account.images()).map((image) => [image.id, image.status]),
    [[id, 'active']],
  );
  await project.checkTypes();
});

test('the table has each provider', () => {
  for (const type of Object.keys(IMAGE_PROVIDERS))
    assert.match(readme, new RegExp(`^\\| \`${type}\` \\|`, 'm'));
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { codeBlocks, readPage } from '../../../test/docs/markdown.ts';
import { ExampleProject } from '../../../test/fixtures/example-project.ts';
import { cloudsYaml } from '../../../test/fixtures/openstack/account.ts';
import { openStack } from '../../../test/fixtures/openstack/openstack.ts';
import { imageData } from '../../image-builder/src/testing/image-data.ts';

const readme = await readPage('packages/provider-openstack/README.md');
const [openstack = ''] = codeBlocks(readme, 'ts');

test('the README’s program uploads a file to a cloud in clouds.yaml once, and lists it', async (t) => {
  const account = await (await openStack()).createAccount();
  const project = await ExampleProject.create(t);
  await project.write('clouds.yaml', cloudsYaml({ ci: account.cloud() }));
  await project.write('debian-1.qcow2', imageData('qcow2', 4000));
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

// Not a unit test: it starts servers.
import assert from 'node:assert/strict';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { addImage, instanceFixture, PUBLIC_KEY } from './instance-fixture.ts';

test('a Windows instance in AWS gives its password only to the host that launched it', async (t) => {
  const { double, directory, openInstances } = await instanceFixture(t);
  const region = double.region();
  addImage(region, 'windows', 'x86_64', 'Windows');
  const request = { buildId: 'windows-1', image: 'windows', publicKey: PUBLIC_KEY, port: 5986 };
  const launched = await openInstances().launch(request);
  const password = await launched.password();
  assert.equal(password, region.instances.get(launched.id).password);
  assert.ok(password);
  const keys = join(directory, 'instances');
  const [file = '', ...others] = await readdir(keys);
  assert.deepEqual(others, []);
  assert.equal((await stat(join(keys, file))).mode & 0o777, 0o600);
  assert.match(await readFile(join(keys, file), 'utf8'), /BEGIN PRIVATE KEY/);

  const [later] = await openInstances().list();
  assert.equal(await later?.password(), password);
  const [elsewhere] = await openInstances({}, { directory: join(directory, 'another') }).list();
  assert.equal(await elsewhere?.password(), undefined);
  region.instances.get(launched.id).state = 'pending';
  assert.equal(await launched.password(), undefined);
  region.instances.get(launched.id).state = 'running';
  await launched.destroy();
  assert.deepEqual(await readdir(keys), []);

  const linux = await openInstances().launch({ ...request, image: 'base' });
  assert.equal(await linux.password(), undefined);
  assert.deepEqual(await readdir(keys), []);
});

test('a screenshot of an AWS instance is a JPEG', async (t) => {
  const { directory, openInstances } = await instanceFixture(t);
  const request = { buildId: 'debian-1', image: 'base', publicKey: PUBLIC_KEY, port: 22 };
  const instance = await openInstances().launch(request);
  const path = join(directory, `screenshot.${instance.screenshotType}`);
  await instance.screenshot(path);
  assert.equal((await readFile(path)).subarray(0, 3).toString('hex'), 'ffd8ff');
  await instance.stop();
  await assert.rejects(instance.screenshot(path), /GetConsoleScreenshot .* is not in a state/);
});

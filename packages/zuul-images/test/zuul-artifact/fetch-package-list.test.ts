// Not a unit test: it starts servers and programs.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { FakeAttester } from '../../../../test/fixtures/fake-attester.ts';
import { ArtifactServer, idOf, ZuulSite } from './zuul-site.ts';

const server = await ArtifactServer.start();
after(() => server.nginx.stop());

const OTHER = { type: 'sbom', image_name: 'other' };

for (const [title, lists, expected] of [
  ['for the image', [OTHER, { type: 'sbom', image_name: 'debian' }], 'list 1'],
  ['that names no image', [OTHER, { type: 'sbom' }], 'list 1'],
  ['for other images alone', [OTHER], undefined],
] as const) {
  const verb = expected === undefined ? 'does not use' : 'fetches';
  test(`a build that wants a package list ${verb} a list ${title}`, async (t) => {
    const site = await ZuulSite.start(t, server);
    const metadata = { type: 'image-qcow', image_name: 'debian' };
    const image = await site.put('image.qcow2', server.qcow2, metadata);
    const artifacts = await Promise.all(
      lists.map((list, index) => site.put(`${index}.json`, Buffer.from(`list ${index}`), list)),
    );
    const row = site.zuul.table().add([image, ...artifacts]);
    const attester = new FakeAttester([], true);
    const { repository } = site.repository;
    const builder = site.builder({}, { 'image-name': 'debian' });
    await builder.build({ imageId: idOf(row), repository, attester });
    assert.equal(attester.packageList, expected);
  });
}

for (const [title, size] of [
  ['is missing', undefined],
  ['is too large', 8 * 2 ** 20 + 1],
] as const) {
  test(`an image whose package list ${title} is imported without it`, async (t) => {
    const site = await ZuulSite.start(t, server);
    const image = await site.put('image.qcow2', server.qcow2, { type: 'image-qcow' });
    const list = await site.put('sbom.json', Buffer.alloc(size ?? 0), { type: 'sbom' });
    if (size === undefined) await server.remove(new URL(list.url).pathname.slice(1));
    const row = site.zuul.table().add([image, list]);
    const attester = new FakeAttester([], true);
    const lines: string[] = [];
    const { repository } = site.repository;
    const onLine = (line: string): void => void lines.push(line);
    await site.builder({}).build({ imageId: idOf(row), repository, attester, onLine });
    assert.ok(repository.get(idOf(row)));
    assert.equal(attester.packageList, undefined);
    assert.ok(lines.some((line) => /cannot fetch the package list http.*sbom\.json: /.test(line)));
  });
}

// Not a unit test: it starts servers.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { latestImage, parseImageFilter } from '@nodepool-builder/image-builder';
import { AWS_CLOUD_IMAGES } from '../src/cloud-image-keys.ts';
import { awsFixture } from './aws-fixture.ts';

const NODEPOOL = {
  name: 'debian',
  'image-filters': [
    { name: 'name', values: ['debian-13-*'] },
    { name: 'tag:team', values: ['ci'] },
    { name: 'architecture', values: ['x86_64'] },
    { name: 'virtualization-type', values: ['hvm'] },
    { name: 'state', values: ['available'] },
  ],
};

test('nodepool’s filters choose the newest own image in AWS, and not a newer public one', async (t) => {
  const { double, open } = await awsFixture(t);
  const add = (name: string, owner: string, team: string): string =>
    double.region().images.add({
      name,
      owner,
      architecture: 'x86_64',
      registration: {},
      snapshots: [],
      isPublic: owner !== '123456789012',
      state: 'available',
      pendingLists: 0,
      sharedWith: new Set<string>(),
      tags: [{ Key: 'team', Value: team }],
    }).id;
  const own = add('debian-13-a', '123456789012', 'ci');
  add('debian-13-b', '123456789012', 'qa');
  const foreign = add('debian-13-c', '666666666666', 'ci');
  const provider = open();
  const chosen = async (image: typeof NODEPOOL): Promise<string | undefined> => {
    const filter = parseImageFilter(AWS_CLOUD_IMAGES.filters(image));
    return latestImage(await provider.findImages(filter), filter).latest?.externalId;
  };
  assert.equal(await chosen(NODEPOOL), own);
  const owner = { name: 'owner-id', values: ['666666666666'] };
  assert.equal(
    await chosen({ ...NODEPOOL, 'image-filters': [...NODEPOOL['image-filters'], owner] }),
    foreign,
  );
});

test('an image in AWS must match AWS’s filters and our own keys that mean the same', () => {
  const filters = [
    { name: 'owner', values: ['self', '123456789012'] },
    { name: 'owner-id', values: ['123456789012', '666666666666'] },
    { name: 'property:team', values: ['ci'] },
    { name: 'tag:team', values: ['ci', 'qa'] },
  ];
  assert.deepEqual(AWS_CLOUD_IMAGES.filters({ name: 'a', 'image-filters': filters }), [
    { name: 'owner', values: ['123456789012'] },
    { name: 'property:team', values: ['ci'] },
  ]);
  const both = [
    { name: 'is-public', values: ['true'] },
    { name: 'visibility', values: ['private'] },
  ];
  assert.throws(() => AWS_CLOUD_IMAGES.filters({ name: 'a', 'image-filters': both }), {
    code: 'invalid-filter',
  });
});

test('an AWS filter without an equivalent causes an error', () => {
  for (const [name, value] of [
    ['product-code', 'x'],
    ['state', 'pending'],
    ['tag:team', 'c*'],
    ['owner-id', '12*'],
  ]) {
    const image = { name: 'a', 'image-filters': [{ name: name ?? '', values: [value ?? ''] }] };
    assert.throws(() => AWS_CLOUD_IMAGES.filters(image), { code: 'invalid-filter' });
  }
});

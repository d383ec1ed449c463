import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { temporaryDirectory } from '../../../../test/fixtures/scratch-directory.ts';
import type { CloudImageConfiguration } from '../../src/configuration/configuration.ts';
import { loadConfiguration } from '../../src/configuration/load.ts';

interface Loaded {
  readonly images: Readonly<Record<string, readonly CloudImageConfiguration[]>>;
  readonly warnings: readonly string[];
}

/** Returns the cloud images of each provider, and the warnings. */
async function load(t: TestContext, text: string): Promise<Loaded> {
  const directory = temporaryDirectory(t);
  const file = join(directory, 'nodepool.yaml');
  writeFileSync(file, `images-dir: /i\n${text}`);
  const { configuration, warnings } = await loadConfiguration(file, {
    place: { env: {}, cwd: directory, home: directory },
  });
  return {
    images: Object.fromEntries(configuration.providers.map(({ name, cloudImages }) => [name, cloudImages])),
    warnings: warnings
      .map(({ line, reason }) => `${line}: ${reason}`)
      .filter((warning) => !warning.includes('clouds.yaml')),
  };
}

const CREDENTIALS = 'auth-url: http://127.0.0.1:1, username: u, password: p, project-name: p';

/** Returns the filters of an AMI, by key. */
const AMAZON = new Map([
  ['name', ['debian-*']],
  ['property:team', ['ci']],
  ['visibility', ['public']],
]);

describe('cloud-images', () => {
  it('a provider’s cloud-images take precedence over the top level’s', async (t) => {
    const { images, warnings } = await load(
      t,
      `cloud-images:
  - {name: debian, image-filters: [{name: name, values: [debian-*]}]}
  - {name: ubuntu, image-filters: [{name: image-name, values: [ubuntu]}]}
  - {name: fixed, image-filters: [{name: image-name, values: [fixed]}]}
providers:
  - name: a
    type: directory
    directory: d
    cloud-images:
      - {name: debian, image-filters: [{name: tag, values: [good, 1, true]}]}
      - {name: ubuntu, username: ci}
      - {name: fixed, image-id: 12}
  - {name: b, type: directory, directory: e, images: []}
`,
    );
    assert.deepEqual(warnings, []);
    assert.deepEqual(images, {
      a: [
        { name: 'debian', filters: [{ name: 'tag', values: ['good', '1', 'True'] }] },
        { name: 'ubuntu', filters: [{ name: 'image-name', values: ['ubuntu'] }] },
        { name: 'fixed', imageId: '12', filters: [] },
      ],
      b: [
        { name: 'debian', filters: [{ name: 'name', values: ['debian-*'] }] },
        { name: 'ubuntu', filters: [{ name: 'image-name', values: ['ubuntu'] }] },
        { name: 'fixed', filters: [{ name: 'image-name', values: ['fixed'] }] },
      ],
    });
  });

  it('OpenStack’s cloud-images are read in nodepool’s spelling', async (t) => {
    const { images, warnings } = await load(
      t,
      `providers:
  - name: c
    ${CREDENTIALS.replaceAll(', ', '\n    ')}
    cloud-images:
      - {name: Debian 12, config-drive: true, connection-type: ssh}
      - {name: jammy, image-name: Ubuntu 22.04, image-filters: [{name: owner, values: [admin]}]}
      - {name: any, image-name: '*'}
      - {name: other, image-family: debian}
`,
    );
    assert.deepEqual(images.c, [
      { name: 'Debian 12', filters: [{ name: 'name', values: ['Debian 12'] }] },
      {
        name: 'jammy',
        filters: [
          { name: 'name', values: ['Ubuntu 22.04'] },
          { name: 'owner', values: ['admin'] },
        ],
      },
      { name: 'any', filters: [], reason: '"*" is a pattern, but image-name is exact; use a filter "name"' },
      { name: 'other', filters: [], reason: 'the key "image-family" has no meaning in this provider' },
    ]);
    assert.match(
      warnings.join('\n'),
      /providers\[0\]\.cloud-images\[2\] "any" chooses no image: "\*" is a pattern/,
    );
  });

  it('the cloud-images of several clouds are read in their nodepool drivers’ spelling', async (t) => {
    const { images } = await load(
      t,
      `providers:
  - name: amazon
    type: aws
    region-name: eu-central-1
    cloud-images:
      - name: debian
        image-filters:
          - {name: name, values: [debian-*]}
          - {name: 'tag:team', values: [ci]}
          - {name: is-public, values: [true]}
      - {name: odd, image-filters: [{name: description, values: [xen]}]}
  - name: microsoft
    type: azure
    resource-group: images
    location: westeurope
    cloud-images:
      - {name: debian, image-filter: {name: debian-12, tags: {team: ci}}, username: ci}
`,
    );
    const [debian, odd] = images.amazon ?? [];
    assert.deepEqual(new Map(debian?.filters.map(({ name, values }) => [name, values])), AMAZON);
    assert.deepEqual(odd?.filters, []);
    assert.match(odd.reason ?? '', /the filter "description"/);
    assert.deepEqual(images.microsoft, [
      {
        name: 'debian',
        filters: [
          { name: 'name', values: ['debian-12'] },
          { name: 'property:team', values: ['ci'] },
        ],
      },
    ]);
  });

  for (const [what, text, reason] of [
    [
      'without a condition',
      'providers: [{name: a, type: directory, directory: d, cloud-images: [{name: x}]}]',
      /nodepool\.yaml:2:\d+: .*cloud-images\[0\] "x" chooses no image: it has no condition/,
    ],
    [
      'with an unknown filter',
      'cloud-images:\n  - {name: x, image-filters: [{name: status, values: [a]}]}',
      /nodepool\.yaml:3:\d+: cloud-images\[0\] "x" chooses no image: image filter: unknown key "status"/,
    ],
    ...['aws, region-name: r', 'directory, directory: d', 'gce, project: p'].map(
      (type) =>
        [
          `with an image-id next to image-filters (${type})`,
          `providers: [{name: a, type: ${type}, images: [], cloud-images: [{name: x, image-id: y, image-filters: [{name: name, values: [a]}]}]}]`,
          /cloud-images\[0\] "x" chooses no image: image-id and image-filters exclude each other; remove one/,
        ] as const,
    ),
    ...(
      [
        ['gce, project: p', 'image-family: f', 'image-family'],
        ['azure, resource-group: g, location: l', 'image-filter: {name: n}', 'image-filter'],
        [`openstack, ${CREDENTIALS}`, 'image-name: n', 'image-name'],
      ] as const
    ).map(
      ([type, key, name]) =>
        [
          `with an image-id next to ${name}`,
          `providers: [{name: a, type: ${type}, images: [], cloud-images: [{name: x, image-id: y, ${key}}]}]`,
          new RegExp(`"x" chooses no image: image-id and ${name} exclude each other`),
        ] as const,
    ),
    [
      'without filters at the top level',
      'cloud-images: [{name: x}]',
      /cloud-images\[0\] lacks the key "image-filters"/,
    ],
    [
      'that are omitted together with images',
      'providers: [{name: a, type: directory, directory: d}]',
      /providers\[0\] lacks the key "images"/,
    ],
  ] as const) {
    it(`cloud-images ${what} are rejected`, async (t) => {
      await assert.rejects(load(t, text), reason);
    });
  }

  it('cloud-images cause a warning in a provider without images', async (t) => {
    const { warnings } = await load(
      t,
      'providers: [{name: q, type: qemu, cloud-images: [{name: x, image-id: y}]}]',
    );
    assert.match(warnings.join('\n'), /cloud-images has no effect: a provider of type qemu has no images/);
  });
});

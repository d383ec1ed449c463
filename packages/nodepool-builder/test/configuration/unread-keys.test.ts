import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { temporaryDirectory } from '../../../../test/fixtures/scratch-directory.ts';
import { loadConfiguration } from '../../src/configuration/load.ts';
import { ConfigurationError, formatDiagnostic } from '../../src/yaml/diagnostic.ts';

/** Returns the messages about a file as lines; `refused` precedes the messages about a rejected file. */
async function messagesOf(t: TestContext, text: string): Promise<string[]> {
  const file = join(temporaryDirectory(t), 'nodepool.yaml');
  writeFileSync(file, text);
  try {
    const { warnings } = await loadConfiguration(file);
    return warnings.map((diagnostic) => formatDiagnostic('nodepool.yaml', diagnostic));
  } catch (error) {
    assert.ok(error instanceof ConfigurationError, String(error));
    return [
      'refused',
      ...error.diagnostics.map((diagnostic) => formatDiagnostic('nodepool.yaml', diagnostic)),
    ];
  }
}

/** An example in the documentation of later releases. */
const LATER = `images-dir: /i
zookeeper-servers:
  - host: localhost
labels:
  - name: noble
    min-ready: 1
providers:
  - name: devstack
    driver: openstack
    cloud: devstack
    diskimages:
      - name: noble
        config-drive: true
    cloud-images:
      - name: fedora
    pools:
      - name: main
        max-servers: 5
        labels:
          - {name: noble, diskimage: noble, min-ram: 512}
  - name: other
    driver: aws
    pools: []
diskimages:
  - name: noble
    metadata: {a: b}
    elements: [ubuntu-minimal, vm]
`;

describe('a file for a later nodepool', () => {
  it('a file for a later nodepool is rejected with one message, which says what to write instead', async (t) => {
    assert.deepEqual(await messagesOf(t, LATER), [
      'refused',
      'nodepool.yaml:9:5: providers[0].driver is a key of nodepool 0.4 and later, which uses ZooKeeper: the file is ' +
        'written for such a release; write "type: openstack" (or directory, or qemu) instead of "driver", and ' +
        '"images: [{name: IMAGE, diskimage: IMAGE}]" instead of "diskimages", and nothing instead of "pools"',
    ]);
  });

  it('a file for a later nodepool is accepted with a warning if its providers also have images', async (t) => {
    const text = `images-dir: /i
providers:
  - name: p
    type: directory
    directory: /p
    images: []
    diskimages: [{name: noble}]
`;
    assert.deepEqual(await messagesOf(t, text), [
      'nodepool.yaml:7:5: warning: providers[0].diskimages is a key of nodepool 0.4 and later, which uses ZooKeeper: the ' +
        'file is written for such a release; write "images: [{name: IMAGE, diskimage: IMAGE}]" instead of "diskimages"',
    ]);
  });

  it('a file for a later nodepool causes a warning if only its labels show it', async (t) => {
    assert.deepEqual(await messagesOf(t, 'images-dir: /i\nlabels:\n  - name: noble\n    min-ready: 2\n'), [
      'nodepool.yaml:3:5: warning: labels[0] has neither image nor providers, as in nodepool 0.4 and later, which uses ' +
        'ZooKeeper; it is ignored here; Gearman-era nodepool needs both',
    ]);
  });

  it('a file for a later nodepool is recognized by keys that the Gearman-based nodepool does not have', async (t) => {
    const text = `images-dir: /i
zookeeper-servers: [{host: localhost}]
labels: [{name: a, image: b, min-ready: 2, providers: [{name: p}]}]
providers:
  - {name: p, type: directory, directory: /p, pool: ext, images: []}
`;
    assert.deepEqual(await messagesOf(t, text), []);
  });
});

describe('a key of a later nodepool', () => {
  const errors: readonly (readonly [key: string, text: string, remedy: string])[] = [
    ['diskimages[0]', 'metadata: {os: debian}', 'write it as "meta" in each image'],
    [
      'providers[0]',
      "image-name-format: '{image_name}'",
      'write it as "template-hostname", with {image.name}',
    ],
    ['providers[0]', 'image-format: vmdk', 'write it as "image-type"'],
    [
      'providers[0]',
      'object-storage: {bucket-name: b}',
      'write its bucket-name as "bucket-name" of the provider',
    ],
    ['providers[0].images[0]', 'tags: {team: ci}', 'write it in "meta" of the image'],
    ['providers[0].images[0]', 'architecture: arm64', 'write it in "meta" of the image'],
    ...[
      'import-method: snapshot',
      'ena-support: false',
      'imds-support: v2.0',
      'iops: 3000',
      'throughput: 125',
      'volume-size: 40',
      'volume-type: gp2',
    ].map(
      (key) => ['providers[0].images[0]', key, 'write it in the provider, for all of its images'] as const,
    ),
  ];
  for (const [place, text, remedy] of errors) {
    const key = text.split(':')[0] ?? '';
    it(`the key ${place}.${key} of a later nodepool is rejected, as it changes an image`, async (t) => {
      const [first, message, ...others] = await messagesOf(t, fileWith({ [place]: text }));
      assert.equal(first, 'refused');
      const reason = `${place}.${key} is a key of a later nodepool, and is not read here; ${remedy}`;
      assert.ok(message?.includes(reason), message);
      assert.deepEqual(others, []);
    });
  }

  it('a key of a later nodepool that changes an image is also rejected in a provider’s diskimages', async (t) => {
    const messages = await messagesOf(
      t,
      fileWith({ 'providers[0]': 'diskimages: [{name: noble,architecture: arm64}]' }),
    );
    assert.match(
      messages.join('\n'),
      /providers\[0\]\.diskimages\[0\]\.architecture is a key of a later nodepool/,
    );
  });

  it('a key of a later nodepool that only deletes local files causes a warning', async (t) => {
    for (const text of ['keep-formats: [raw]', 'delete-after-upload: true']) {
      const messages = await messagesOf(t, fileWith({ 'diskimages[0]': text }));
      assert.match(
        messages.join(),
        /^nodepool\.yaml:2:\d+: warning: .* is a key of a later nodepool, and is not read here; all formats stay in images-dir/,
      );
    }
  });

  it('a key of a later nodepool that only launchers read is accepted', async (t) => {
    const text = fileWith({
      '': 'zookeeper-tls: {cert: c, key: k, ca: a}\nzookeeper-timeout: 5.0\ntenant-resource-limits: []\n',
      'diskimages[0]': 'username: zuul, python-path: auto, shell-type: sh',
      'providers[0]':
        'hostname-format: h, launch-retries: 3, max-cores: 5, port-cleanup-interval: 60, priority: 1',
      'providers[0].images[0]': 'username: u, connection-type: ssh, connection-port: 22, config-drive: true',
    });
    assert.deepEqual(await messagesOf(t, text), []);
  });
});

/** A file with additional keys in some sections. */
function fileWith(keys: Readonly<Record<string, string>>): string {
  const more = (place: string): string => (keys[place] === undefined ? '' : `, ${keys[place]}`);
  return `images-dir: /i
diskimages: [{name: noble, elements: [vm]${more('diskimages[0]')}}]
providers:
  - name: p
    type: directory
    directory: /p
    images: [{name: noble, diskimage: noble${more('providers[0].images[0]')}}]
${keys['providers[0]'] === undefined ? '' : `    ${keys['providers[0]'].replaceAll(', ', '\n    ')}\n`}${keys[''] ?? ''}`;
}

import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { ConfigurationError, formatFault } from '../../src/configuration/fault.ts';
import { loadConfiguration } from '../../src/configuration/load.ts';

let directory: string;
let file: string;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'configuration-'));
  file = join(directory, 'nodepool.yaml');
});
after(() => rm(directory, { recursive: true }));

async function load(text: string): ReturnType<typeof loadConfiguration> {
  await writeFile(file, text);
  return await loadConfiguration(file);
}

/** Each fault of a file that is refused, without the path of the file. */
async function faultsOf(text: string): Promise<string[]> {
  const error = await load(text).then(
    () => assert.fail('the configuration was accepted'),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof ConfigurationError, String(error));
  return error.faults.map((fault) => formatFault('nodepool.yaml', fault));
}

describe('a configuration that can be used', () => {
  it('is read with the defaults of nodepool', async () => {
    const { configuration, warnings } = await load(`
images-dir: images
elements-dir: elements:/usr/share/elements
gearman-servers:
  - host: zuul.example.com
diskimages:
  - name: debian
    elements: [debian-minimal, vm]
    release: 12
    env-vars: {DIB_CHECKSUM: '1'}
  - name: unused
providers:
  - name: pool
    type: directory
    directory: /srv/pool
    images:
      - {name: node, diskimage: debian, meta: {count: 2, on: yes}}
  - name: cloud
    image-type: raw
    max-servers: 5
    images:
      - {name: node, diskimage: debian, min-ram: 1024}
`);
    assert.deepEqual(warnings, []);
    assert.deepEqual(configuration.gearmanServers, [{ host: 'zuul.example.com', port: 4730 }]);
    assert.equal(configuration.imagesDir, join(directory, 'images'));
    const [debian, unused] = configuration.diskimages;
    assert.equal(debian?.release, '12');
    assert.equal(debian?.builder, 'dib');
    assert.deepEqual(debian?.formats, ['qcow2', 'raw']);
    assert.deepEqual(debian?.envVars, { DIB_CHECKSUM: '1' });
    assert.equal(debian?.elementsDir, `${join(directory, 'elements')}:/usr/share/elements`);
    assert.deepEqual(unused?.formats, []);
    const [pool, cloud] = configuration.providers;
    assert.deepEqual(pool, {
      name: 'pool',
      type: 'directory',
      imageType: 'qcow2',
      directory: '/srv/pool',
      images: [{ name: 'node', diskimage: 'debian', meta: { count: '2', true: 'True' } }],
    });
    assert.equal(cloud?.type, 'openstack');
  });

  it('may leave out everything but images-dir', async () => {
    const { configuration } = await load('images-dir: /srv/images\nproviders:\ndiskimages:\n');
    assert.deepEqual(configuration.diskimages, []);
    assert.deepEqual(configuration.providers, []);
    assert.deepEqual(configuration.gearmanServers, []);
  });

  it('ignores env-vars that are no mapping, as nodepool did', async () => {
    const { configuration } = await load('images-dir: /i\ndiskimages: [{name: a, env-vars: nonsense}]\n');
    assert.deepEqual(configuration.diskimages[0]?.envVars, {});
  });

  it('says nothing about keys of other parts of nodepool', async () => {
    const { warnings } = await load('images-dir: /i\nlabels: []\ncron: {}\nzmq-publishers: []\n');
    assert.deepEqual(warnings, []);
  });

  it('warns of a key that nobody knows, and of a disk image that is not built here', async () => {
    const { warnings } = await load(`images-dir: /i
diskimages:
  - name: debian
    elments: [vm]
providers:
  - name: pool
    images:
      - name: node
        diskimage: other
`);
    assert.deepEqual(
      warnings.map((fault) => formatFault('nodepool.yaml', fault)),
      [
        'nodepool.yaml:4:5: warning: diskimages[0] has the unknown key "elments"; it is ignored; did you mean "elements"?',
        'nodepool.yaml:9:9: warning: providers[0].images[0].diskimage "other" is not among diskimages; correct it, unless another builder makes that image',
      ],
    );
  });
});

describe('a configuration that is refused', () => {
  const cases: readonly (readonly [what: string, text: string, faults: readonly string[]])[] = [
    [
      'a missing images-dir',
      'diskimages: []\n',
      ['nodepool.yaml:1:1: the file lacks the key "images-dir"; add "images-dir: …"'],
    ],
    [
      'an empty file',
      '',
      [
        'nodepool.yaml:1:1: the file must be a mapping, but is empty; write "key: value" pairs, indented below it',
      ],
    ],
    [
      'wrong types, all of them at once',
      'images-dir: 5\ndiskimages:\n  - name: [a]\n    build-timeout: soon\n',
      [
        'nodepool.yaml:1:1: images-dir must be a string, but is a number; put it in quotes',
        'nodepool.yaml:3:5: diskimages[0].name must be a string, but is a list; put it in quotes',
        'nodepool.yaml:4:5: diskimages[0].build-timeout must be a number, but is a string; write a number without quotes',
      ],
    ],
    [
      'a list where a mapping belongs',
      'images-dir: /i\ndiskimages:\n  - debian\n',
      [
        'nodepool.yaml:3:5: diskimages[0] must be a mapping, but is a string; write "key: value" pairs, indented below it',
      ],
    ],
    [
      'a tab',
      'images-dir: /i\ndiskimages:\n\t- name: a\n',
      ['nodepool.yaml:3:1: tab characters must not be used in indentation; indent with spaces'],
    ],
    [
      'a key that stands there twice',
      'images-dir: /i\nimages-dir: /j\n',
      ['nodepool.yaml:2:1: duplicated mapping key; correct the YAML there'],
    ],
    [
      'two documents',
      'images-dir: /i\n---\nimages-dir: /j\n',
      [
        'nodepool.yaml:1:1: there is more than one document; keep the part before the second "---"; correct the YAML there',
      ],
    ],
    [
      'duplicate names',
      'images-dir: /i\ndiskimages:\n  - name: a\n  - name: a\nproviders:\n  - {name: p, images: []}\n  - {name: p, images: []}\n',
      [
        'nodepool.yaml:4:5: diskimages[1].name "a" is there already, on line 3; rename or remove one of the two',
        'nodepool.yaml:7:6: providers[1].name "p" is there already, on line 6; rename or remove one of the two',
      ],
    ],
    [
      'an unknown builder',
      'images-dir: /i\ndiskimages:\n  - name: a\n    builder: packer\n',
      ['nodepool.yaml:4:5: diskimages[0].builder "packer" is not there; use one of dib'],
    ],
    [
      'an unknown image type',
      'images-dir: /i\nproviders:\n  - name: p\n    image-type: qcow\n    images: []\n',
      [
        'nodepool.yaml:4:5: providers[0].image-type is "qcow"; use one of qcow2, raw, vhd, vhdx, vmdk, vdi, vpc, iso, tar, tgz, squashfs, aci',
      ],
    ],
    [
      'a directory provider without a directory',
      'images-dir: /i\nproviders:\n  - {name: p, type: directory, images: []}\n',
      ['nodepool.yaml:3:5: providers[0] lacks the key "directory"; name the directory that it serves'],
    ],
    [
      'a port that cannot be',
      'images-dir: /i\ngearman-servers:\n  - host: a\n    port: 70000\n',
      ['nodepool.yaml:4:5: gearman-servers[0].port is 70000; use a number <= 65535'],
    ],
    [
      'a name that Gearman cannot carry',
      'images-dir: /i\ndiskimages:\n  - name: "a\\0b"\n',
      [
        'nodepool.yaml:3:5: diskimages[0].name holds a control character or is longer than 500 bytes; choose a plain name',
      ],
    ],
  ];
  for (const [what, text, faults] of cases) {
    it(`names ${what}`, async () => assert.deepEqual(await faultsOf(text), faults));
  }

  it('names a file that is not there', async () => {
    const missing = join(directory, 'missing.yaml');
    await assert.rejects(
      loadConfiguration(missing),
      /missing\.yaml:1:1: the file cannot be read: ENOENT.*name the right one with -c FILE/,
    );
  });

  it('shows no value of a key that may be a secret', async () => {
    const faults = await faultsOf(
      'images-dir: /i\nproviders:\n  - name: p\n    images: swordfish\n    password: hunter2\n',
    );
    assert.doesNotMatch(faults.join(), /swordfish|hunter2/);
  });
});

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { describe, it } from 'node:test';
import { DIRECTORY_MODULE, type DibSettings, FORMAT_NAMES } from '@nodepool-builder/image-builder';
import { type CloudSettings, OPENSTACK_MODULE } from '@nodepool-builder/provider-openstack';
import { loadConfiguration } from '../../src/configuration/load.ts';
import { formatDiagnostic } from '../../src/yaml/diagnostic.ts';
import { CLOUD, diagnosticsOf, directory, file, load } from './load-text.ts';

describe('manager.store', () => {
  for (const store of [
    'mysql://u:hunter2@db/nodepool',
    'mysql+pymysql://u:hunter2@db/nodepool',
    'POSTGRESQL://u:hunter2@db/nodepool',
    'postgresql:u:hunter2@db/nodepool',
    'postgresql//u:hunter2@db/nodepool',
    'u_x:hunter2@db/nodepool',
  ]) {
    it(`the URL of another database in manager.store is rejected and not shown: ${store}`, async () => {
      assert.deepEqual(await diagnosticsOf(`images-dir: i\nmanager:\n  store: ${store}\n`), [
        'nodepool.yaml:3:3: manager.store is a URL, but not of a PostgreSQL database; write postgresql://USER@HOST/DATABASE, or the path of a file, which begins with ./ if it has a colon',
      ]);
    });
  }

  for (const [store, path] of [
    ['state/manager.sqlite', 'state/manager.sqlite'],
    ['./a:b@c', 'a:b@c'],
    ['/var/lib/a:b', '/var/lib/a:b'],
    ['postgresql://u:hunter2@db/nodepool', undefined],
    ['postgres://db/nodepool', undefined],
  ] as const) {
    it(`the setting manager.store may be ${store}`, async () => {
      const { configuration } = await load(`images-dir: i\nmanager:\n  store: ${store}\n`);
      assert.equal(configuration.manager.store, path === undefined ? store : resolve(directory, path));
    });
  }
});

describe('a configuration that can be used', () => {
  it('a configuration is read with nodepool’s defaults', async () => {
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
  - {name: unused, release: 15.0}
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
    assert.deepEqual(configuration['gearman-servers'], [{ host: 'zuul.example.com', port: 4730 }]);
    assert.equal(configuration['images-dir'], join(directory, 'images'));
    const [debian, unused] = configuration.diskimages;
    assert.equal(debian?.release, '12');
    assert.equal(debian?.builder, 'dib');
    assert.deepEqual(debian?.formats, ['qcow2', 'raw']);
    assert.deepEqual(debian?.envVars, { DIB_CHECKSUM: '1' });
    assert.equal(debian?.elementsDir, `${join(directory, 'elements')}:/usr/share/elements`);
    assert.deepEqual(unused?.formats, []);
    assert.equal(unused?.release, '15.0');
    const [pool, cloud] = configuration.providers;
    assert.equal(pool?.module, DIRECTORY_MODULE);
    assert.equal(pool?.imageType, 'qcow2');
    assert.equal(pool?.entry.directory, '/srv/pool');
    assert.deepEqual(pool?.entry.images, [
      { name: 'node', diskimage: 'debian', pause: false, meta: { count: '2', True: 'True' } },
    ]);
    assert.equal(cloud?.module, OPENSTACK_MODULE);
    assert.equal((cloud?.prepared.value as CloudSettings | undefined)?.name, 'envvars');
    assert.equal(cloud?.entry.rate, 1);
    assert.equal(cloud?.entry['template-hostname'], 'template-{image.name}-{timestamp}');
    assert.equal(configuration['build-log-retention'], 7);
  });

  it('a configuration may omit everything but images-dir', async () => {
    const { configuration } = await load('images-dir: /srv/images\nproviders:\ndiskimages:\n');
    assert.deepEqual(configuration.diskimages, []);
    assert.deepEqual(configuration.providers, []);
    assert.deepEqual(configuration['gearman-servers'], []);
  });

  it('env-vars in a configuration that are not a mapping are ignored, as in nodepool', async () => {
    const { configuration } = await load('images-dir: /i\ndiskimages: [{name: a, env-vars: nonsense}]\n');
    assert.deepEqual(configuration.diskimages[0]?.envVars, {});
  });

  it('keys of other parts of nodepool cause no warning', async () => {
    const { warnings } = await load('images-dir: /i\nlabels: []\ncron: {}\nzmq-publishers: []\n');
    assert.deepEqual(warnings, []);
  });

  it('an unknown key, and a disk image that is not built here, cause a warning', async () => {
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
      warnings.map((diagnostic) => formatDiagnostic('nodepool.yaml', diagnostic)),
      [
        'nodepool.yaml:4:5: warning: diskimages[0] has the unknown key "elments"; it is ignored; did you mean "elements"?',
        'nodepool.yaml:9:9: warning: providers[0].images[0].diskimage "other" is not among diskimages; correct it, unless another builder builds that image',
      ],
    );
  });
});

describe('keys of our own and of later releases', () => {
  it('keys of our own and of later releases are read', async () => {
    const { configuration, warnings } = await load(`images-dir: /i
build-log-dir: logs
build-log-retention: 3
diskimages:
  - {name: a, formats: [raw, qcow2], pause: true, build-timeout: 28800, dib-cmd: /usr/bin/other}
providers:
  - name: p
    image-type: vhd
    rate: 0.25
    bandwidth-limit: 1000000
    compress-qcow2: true
    image-upload-timeout: 3600
    upload-retry-timeout: 0
    images: [{name: n, diskimage: a}]
`);
    assert.deepEqual(warnings, []);
    assert.equal(configuration['build-log-dir'], join(directory, 'logs'));
    assert.equal(configuration['build-log-retention'], 3);
    const [diskimage] = configuration.diskimages;
    assert.deepEqual(diskimage?.formats, ['raw', 'qcow2', 'vhd']);
    assert.equal(diskimage?.pause, true);
    assert.equal(diskimage?.buildTimeout, 28_800);
    assert.equal((diskimage?.settings as DibSettings | undefined)?.['dib-cmd'], '/usr/bin/other');
    const [provider] = configuration.providers;
    assert.equal(provider?.entry.rate, 0.25);
    assert.equal(provider?.entry['bandwidth-limit'], 1_000_000);
    assert.equal(configuration.compressesQcow2, true);
    assert.equal(provider?.entry['image-upload-timeout'], 3600);
    assert.equal(provider?.entry['upload-retry-timeout'], 0);
  });

  it('template-hostname can name a provider’s keys by their names in nodepool', async () => {
    const { configuration } = await load(`images-dir: /i
providers:
  - name: p
    region-name: DFW
    max-servers: 184
    template-hostname: '{provider.region_name}-{image.name}-{timestamp}'
    images: []
`);
    assert.deepEqual(configuration.providers[0]?.attributes, {
      name: 'p',
      region_name: 'DFW',
      max_servers: 184,
      keypair: null,
      pool: null,
      rate: '1.0',
      api_timeout: null,
      boot_timeout: 60,
      launch_timeout: 3600,
      ipv6_preferred: null,
      clean_floating_ips: null,
      template_hostname: '{provider.region_name}-{image.name}-{timestamp}',
      image_type: 'qcow2',
    });
  });
});

/** Loads a configuration with these environment variables. */
async function loadWith(env: Readonly<Record<string, string>>, text: string, secrets = '') {
  await writeFile(file, text);
  const secure = join(directory, 'secure.yaml');
  await writeFile(secure, secrets || '{}');
  const place = { env: { ...CLOUD, ...env }, cwd: directory, home: directory };
  return await loadConfiguration(file, { place, secure });
}

describe('a variable of the environment in nodepool.yaml', () => {
  it('an environment variable NODEPOOL_… is replaced anywhere in nodepool.yaml and in the file for -s', async () => {
    const env = {
      NODEPOOL_DIR: '/srv/images',
      NODEPOOL_RELEASE: '15.0',
      NODEPOOL_TOKEN: 'hunter2',
      OTHER: 'x',
    };
    const { configuration, warnings } = await loadWith(
      env,
      `images-dir: %(NODEPOOL_DIR)/dib # %(NODEPOOL_COMMENT)
diskimages: [{name: a, release: %(NODEPOOL_RELEASE), env-vars: {A: "%(OTHER)", B: "a%(NODEPOOL_DIR)s"}}]
`,
      'diskimages: [{name: a, env-vars: {TOKEN: "%(NODEPOOL_TOKEN)"}}]\n',
    );
    const [diskimage] = configuration.diskimages;
    assert.equal(configuration['images-dir'], '/srv/images/dib');
    assert.equal(diskimage?.release, '15.0');
    assert.deepEqual(diskimage?.envVars, { A: '%(OTHER)', B: 'a/srv/imagess', TOKEN: 'hunter2' });
    assert.deepEqual(warnings, []);
  });

  it('an environment variable in nodepool.yaml that is not set causes a warning', async () => {
    const { configuration, warnings } = await loadWith(
      {},
      'images-dir: /i\ndiskimages: [{name: a, release: "%(NODEPOOL_R)"}]\n',
    );
    assert.equal(configuration.diskimages[0]?.release, '%(NODEPOOL_R)');
    assert.deepEqual(
      warnings.map((warning) => formatDiagnostic('nodepool.yaml', warning)),
      [
        'nodepool.yaml:2:34: warning: the variable NODEPOOL_R is not set; %(NODEPOOL_R) stays as it is; set it',
      ],
    );
  });
});

describe('rejected configurations', () => {
  const cases: readonly (readonly [what: string, text: string, diagnostics: readonly string[]])[] = [
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
        'nodepool.yaml:4:5: diskimages[0].build-timeout must be a number, but is a string; write a number',
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
      'two documents',
      'images-dir: /i\n---\nimages-dir: /j\n',
      [
        'nodepool.yaml:1:1: the file contains more than one document; remove the part from the second "---"; correct the YAML there',
      ],
    ],
    [
      'an unknown builder',
      'images-dir: /i\ndiskimages:\n  - name: a\n    builder: packer\n',
      ['nodepool.yaml:4:5: diskimages[0].builder "packer" is unknown; use one of dib, command, on-instance'],
    ],
    [
      'an unknown image type',
      'images-dir: /i\nproviders:\n  - name: p\n    image-type: qcow\n    images: []\n',
      [`nodepool.yaml:4:5: providers[0].image-type is "qcow"; use one of ${FORMAT_NAMES.join(', ')}`],
    ],
    [
      'a directory provider without a directory',
      'images-dir: /i\nproviders:\n  - {name: p, type: directory, images: []}\n',
      [
        'nodepool.yaml:3:5: providers[0] lacks the key "directory", which type: directory needs; name the directory that it serves',
      ],
    ],
    [
      'an S3 provider without a bucket',
      'images-dir: /i\nproviders:\n  - {name: p, type: s3, images: []}\n',
      [
        'nodepool.yaml:3:5: providers[0] lacks the key "bucket-name", which type: s3 needs; add "bucket-name: …"',
      ],
    ],
    [
      'an impossible port',
      'images-dir: /i\ngearman-servers:\n  - host: a\n    port: 70000\n',
      ['nodepool.yaml:4:5: gearman-servers[0].port is 70000; use a number <= 65535'],
    ],
    [
      'text that int() rejects, and a boolean in quotes',
      'images-dir: /i\ngearman-servers: [{host: a, port: "4730.0"}]\ndiskimages: [{name: a, keep: 1e3, pause: "no"}]\n',
      [
        'nodepool.yaml:2:29: gearman-servers[0].port must be a whole number, but is a string; write a whole number without quotes',
        'nodepool.yaml:3:24: diskimages[0].keep must be a whole number, but is a string; write a whole number',
        'nodepool.yaml:3:35: diskimages[0].pause must be true or false, but is a string; write true or false without quotes',
      ],
    ],
    [
      'a number in quotes in place of a list',
      'images-dir: /i\nproviders: "5"\n',
      ['nodepool.yaml:2:1: providers must be a list, but is a string; write a list, each entry after "- "'],
    ],
    [
      'a name that Gearman cannot carry',
      'images-dir: /i\ndiskimages:\n  - name: "a\\0b"\n',
      [
        'nodepool.yaml:3:5: diskimages[0].name contains a control character or is longer than 493 bytes; choose a plain name',
      ],
    ],
  ];
  for (const [what, text, diagnostics] of cases) {
    it(`the error for a rejected configuration names ${what}`, async () =>
      assert.deepEqual(await diagnosticsOf(text), diagnostics));
  }

  it('the error for a missing configuration names the file', async () => {
    const missing = join(directory, 'missing.yaml');
    await assert.rejects(
      loadConfiguration(missing),
      /missing\.yaml:1:1: cannot read the file: ENOENT.*correct -c FILE/,
    );
  });

  it('the error for a rejected configuration shows no value of a key that may be a secret', async () => {
    const diagnostics = await diagnosticsOf(
      'images-dir: /i\nproviders:\n  - name: p\n    images: swordfish\n    password: hunter2\n',
    );
    assert.doesNotMatch(diagnostics.join(), /swordfish|hunter2/);
  });
});

import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { ZuulSettings } from '@nodepool-builder/zuul-images';
import type { DiskImageConfiguration } from '../../src/configuration/configuration.ts';
import { loadConfiguration } from '../../src/configuration/load.ts';
import { ConfigurationError, formatDiagnostic } from '../../src/yaml/diagnostic.ts';

let directory: string;
let file: string;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'zuul-images-'));
  file = join(directory, 'nodepool.yaml');
});
after(() => rm(directory, { recursive: true }));

async function load(text: string): ReturnType<typeof loadConfiguration> {
  await writeFile(file, `images-dir: /i\n${text}`);
  return await loadConfiguration(file, { place: { env: {}, cwd: directory, home: directory } });
}

/** Required keys of an entry. */
const KEYS = [
  'api-url: "https://zuul.example.com/"',
  'project: a/b',
  'pipelines: [post]',
  'job: j',
  'artifacts: [{format: raw, type: r}]',
];
const NEEDED = KEYS.join(', ');

/** Settings of one image, with more than the required keys. */
async function zuulOf(more: string): Promise<ZuulSettings> {
  const { configuration, warnings } = await load(`zuul-images: {a: {${NEEDED}, ${more}}}\n`);
  assert.deepEqual(warnings, []);
  const [diskimage] = configuration.diskimages;
  assert.equal(diskimage?.builder, 'zuul-artifact');
  return diskimage.settings as ZuulSettings;
}

/** Returns the errors, or the warnings if there are no errors, without the path of the file. */
async function diagnosticsOf(text: string): Promise<string[]> {
  const diagnostics = await load(text).then(
    ({ warnings }) => warnings,
    (error: unknown) =>
      error instanceof ConfigurationError ? error.diagnostics : assert.fail(String(error)),
  );
  return diagnostics.map((diagnostic) => formatDiagnostic('nodepool.yaml', diagnostic));
}

/** Settings of an entry with only the required keys. */
const DEFAULTS = { 'poll-interval': 60, 'require-sha256': false, pause: false, 'build-timeout': 28_800 };

const EMPTY = { envVars: {}, secrets: [], publicVariables: [], options: {} };

function withoutDigest({
  digest: _,
  ...others
}: DiskImageConfiguration): Omit<DiskImageConfiguration, 'digest'> {
  return others;
}

const LIST = `zuul-images:
  - name: ubuntu-noble
    api-url: https://zuul.example.com/
    project: opendev/system-config
    pipelines: [periodic, post]
    job: build-ubuntu-noble-image
    artifacts:
      - {format: qcow, type: image-qcow}
      - {format: raw, type: image-raw}
`;

const MAPPING = `zuul-images:
  ubuntu-noble:
    api-url: https://zuul.example.com/
    project: opendev/system-config
    pipelines: [periodic, post]
    job: build-ubuntu-noble-image
    artifacts:
      - {format: qcow, type: image-qcow}
      - {format: raw, type: image-raw}
`;

const POOL = `providers:
  - {name: pool, type: directory, directory: /pool, image-type: raw, images: [{name: node, diskimage: ubuntu-noble}]}
`;

describe('zuul-images', () => {
  for (const [what, text] of [
    ['a list', LIST],
    ['a mapping', MAPPING],
  ] as const) {
    it(`zuul-images in ${what} become disk images in the formats that providers take`, async () => {
      const { configuration, warnings } = await load(`diskimages: [{name: debian}]\n${text}${POOL}`);
      assert.deepEqual(warnings, []);
      const [debian, ...others] = configuration.diskimages;
      assert.equal(debian?.builder, 'dib');
      assert.deepEqual(others.map(withoutDigest), [
        {
          ...EMPTY,
          name: 'ubuntu-noble',
          builder: 'zuul-artifact',
          isImported: true,
          pause: false,
          formats: ['raw'],
          buildTimeout: 28_800,
          keep: 2,
          settings: {
            ...DEFAULTS,
            'api-url': 'https://zuul.example.com/',
            project: 'opendev/system-config',
            pipelines: ['periodic', 'post'],
            job: 'build-ubuntu-noble-image',
            artifacts: [
              { format: 'qcow', type: 'image-qcow' },
              { format: 'raw', type: 'image-raw' },
            ],
          },
        },
      ]);
    });
  }

  it('zuul-images as in Zuul’s specification are one image, named after its job', async () => {
    const entry = MAPPING.replace('  ubuntu-noble:\n', '').replaceAll('\n    ', '\n  ');
    const pool = POOL.replace('ubuntu-noble', 'build-ubuntu-noble-image');
    const { configuration, warnings } = await load(entry + pool);
    assert.deepEqual(warnings, []);
    assert.deepEqual(
      configuration.diskimages.map(({ name, builder, formats }) => [name, builder, formats]),
      [['build-ubuntu-noble-image', 'zuul-artifact', ['raw']]],
    );
  });

  it('zuul-images in a list may be named after their jobs', async () => {
    const { configuration, warnings } = await load(LIST.replace('name: ubuntu-noble\n    ', ''));
    assert.deepEqual(warnings, []);
    assert.deepEqual(
      configuration.diskimages.map(({ name }) => name),
      ['build-ubuntu-noble-image'],
    );
  });

  it('zuul-images may have all their keys, with paths relative to the file', async () => {
    const zuul = await zuulOf(`branch: main, image-name: noble, ca-file: ca.pem, poll-interval: 5,
  mqtt: {url: "mqtts://u@broker:8883", topic: zuul/#, password-file: p, ca-file: /b.pem},
  s3-endpoint: "https://s3.example.com", allowed-hosts: [logs.local, "fd00::1"], require-sha256: true`);
    assert.deepEqual(zuul, {
      ...(await zuulOf('')),
      'allowed-hosts': ['logs.local', 'fd00::1'],
      'require-sha256': true,
      branch: 'main',
      'image-name': 'noble',
      'ca-file': join(directory, 'ca.pem'),
      'poll-interval': 5,
      mqtt: {
        url: 'mqtts://u@broker:8883',
        topic: 'zuul/#',
        'password-file': join(directory, 'p'),
        'ca-file': '/b.pem',
      },
      's3-endpoint': 'https://s3.example.com',
    });
  });

  it('zuul-images may have the disk image keys that apply to them', async () => {
    const { configuration } = await load(
      `zuul-images: {a: {${NEEDED}, formats: [vhd], pause: true, build-timeout: 5, keep: 3, validate: {hook: ./h}}}\n`,
    );
    const [image = assert.fail('no image')] = configuration.diskimages;
    const { settings: _, ...common } = withoutDigest(image);
    assert.deepEqual(common, {
      ...EMPTY,
      isImported: true,
      name: 'a',
      builder: 'zuul-artifact',
      pause: true,
      formats: ['vhd'],
      buildTimeout: 5,
      keep: 3,
      validation: { hook: [join(directory, 'h')] },
    });
  });
});

describe('how to authenticate to Zuul', () => {
  it('zuul-images authenticate with a file, a command, a secret shared with Zuul, or an OpenID client', async () => {
    const auth = async (keys: string): Promise<ZuulSettings['auth']> =>
      (await zuulOf(`auth: {${keys}}`)).auth;
    assert.deepEqual(await auth('token-file: t'), { 'token-file': join(directory, 't') });
    assert.deepEqual(await auth('token-command: [./t, "-x"]'), {
      'token-command': [join(directory, 't'), '-x'],
    });
    const shared = { issuer: 'i', audience: 'a', subject: 's' };
    assert.deepEqual(await auth('shared-secret: {issuer: i, audience: a, subject: s, secret-file: f}'), {
      'shared-secret': { ...shared, 'secret-file': join(directory, 'f') },
    });
    const client = { issuer: 'https://i/', 'client-id': 'c', scope: 's' };
    assert.deepEqual(
      await auth('client-credentials: {issuer: "https://i/", client-id: c, secret-file: f, scope: s}'),
      { 'client-credentials': { ...client, 'secret-file': join(directory, 'f') } },
    );
  });
});

const ENTRY = `zuul-images:\n  - name: a\n    ${KEYS.join('\n    ')}\n`;

describe('a diagnostic of zuul-images', () => {
  const cases: readonly (readonly [what: string, text: string, diagnostics: readonly string[]])[] = [
    [
      'a missing key in a single entry',
      'zuul-images:\n  api-url: https://zuul.example.com/\n  job: j\n',
      ['project', 'pipelines', 'artifacts'].map(
        (key) => `nodepool.yaml:2:1: zuul-images lacks the key "${key}"; add "${key}: …"`,
      ),
    ],
    [
      'a missing key',
      'zuul-images:\n  a:\n    api-url: https://zuul/\n    project: p\n    pipelines: [post]\n    job: j\n',
      ['nodepool.yaml:3:3: zuul-images.a lacks the key "artifacts"; add "artifacts: …"'],
    ],
    [
      'a host that is a URL or has a port',
      `zuul-images:\n  a: {${NEEDED}, allowed-hosts: [logs, "logs:80", "http://logs/"]}\n`,
      ['3:146: zuul-images.a.allowed-hosts[1]', '3:157: zuul-images.a.allowed-hosts[2]'].map(
        (place) =>
          `nodepool.yaml:${place} is neither a host name nor an address; ` +
          'write it without scheme, port and path: images.example.com or 10.0.0.5',
      ),
    ],
    [
      'the name of a disk image, in a list',
      `diskimages: [{name: a}]\n${ENTRY}`,
      [
        'nodepool.yaml:4:5: zuul-images[0].name "a" is also the name of one of diskimages; rename or remove one of the two',
      ],
    ],
    [
      'the name of a disk image, in a mapping',
      `diskimages: [{name: a}]\nzuul-images:\n  a: {${NEEDED}}\n`,
      [
        'nodepool.yaml:4:3: zuul-images.a "a" is also the name of one of diskimages; rename or remove one of the two',
      ],
    ],
    [
      'a name that is used twice',
      `zuul-images:\n  - {name: a, ${NEEDED}}\n  - {name: a, ${NEEDED}}\n`,
      [
        'nodepool.yaml:4:6: warning: zuul-images[1].name "a" is already used on line 3; this one counts; rename or remove one of the two',
      ],
    ],
    [
      'a name that cannot be part of an image id',
      `zuul-images:\n  a/b: {${NEEDED}}\n`,
      [
        'nodepool.yaml:3:3: zuul-images.a/b leads to image-ids that builders reject: each contains a "/"; choose a plain name',
      ],
    ],
    [
      'a name that Gearman cannot carry',
      `zuul-images:\n  - {name: ${'a'.repeat(501)}, ${NEEDED}}\n`,
      [
        'nodepool.yaml:3:6: zuul-images[0].name contains a control character or is longer than 493 bytes; choose a plain name',
        'nodepool.yaml:3:6: zuul-images[0].name leads to image-ids that builders reject: each is longer than 238 bytes; choose a plain name',
      ],
    ],
    [
      'an api-url that is not a URL',
      ENTRY.replace('https:', 'ftp:'),
      [
        'nodepool.yaml:4:5: zuul-images[0].api-url cannot be used: it is not an http or https URL; write it as https://zuul.example.com/',
      ],
    ],
    [
      'a project with its Git server',
      ENTRY.replace('a/b', 'opendev.org/opendev/system-config'),
      [
        'nodepool.yaml:5:5: warning: zuul-images[0].project seems to begin with a Git server, "opendev.org"; if so, use the short name "opendev/system-config", or no build will be found',
      ],
    ],
    [
      'a command that creates administrator tokens',
      `${ENTRY}    auth: {token-command: [zuul-admin, create-auth-token, --tenant, example]}\n`,
      [
        "nodepool.yaml:9:12: warning: zuul-images[0].auth.token-command creates tokens with the rights of a tenant's administrator, which Zuul rejects by default; use shared-secret, which creates tokens that only read",
      ],
    ],
    [
      'no pipeline',
      ENTRY.replace('[post]', '[]'),
      ['nodepool.yaml:6:5: zuul-images[0].pipelines is empty; write an entry, after "- "'],
    ],
    [
      'two artifacts in one format',
      `zuul-images:\n  - name: a\n    api-url: https://z/\n    project: p\n    pipelines: [x]\n    job: j\n    artifacts:\n      - {format: qcow, type: a}\n      - {format: qcow2, type: b}\n`,
      [
        'nodepool.yaml:10:10: zuul-images[0].artifacts[1].format "qcow2" is listed twice; remove one of the two',
      ],
    ],
    [
      'two ways to authenticate',
      `${ENTRY}    auth: {token-file: t, token-command: [c]}\n`,
      ['nodepool.yaml:9:5: zuul-images[0].auth has token-file and token-command; keep one of them'],
    ],
    [
      'no way to authenticate',
      `${ENTRY}    auth: {}\n`,
      [
        'nodepool.yaml:9:5: zuul-images[0].auth contains no way to authenticate; use one of token-file, token-command, shared-secret, client-credentials',
      ],
    ],
    [
      'an invalid mqtt URL',
      `${ENTRY}    mqtt: {url: broker, topic: zuul}\n`,
      ['nodepool.yaml:9:12: zuul-images[0].mqtt.url is not an mqtt or mqtts URL; correct it'],
    ],
    [
      'a password in an mqtt URL, which is not shown',
      `${ENTRY}    mqtt: {url: "mqtt://u:hunter2@broker", topic: zuul}\n`,
      ['nodepool.yaml:9:12: zuul-images[0].mqtt.url contains a password; move it to password-file'],
    ],
    [
      'an invalid s3-endpoint',
      `${ENTRY}    s3-endpoint: s3://bucket\n`,
      ['nodepool.yaml:9:5: zuul-images[0].s3-endpoint is not an http or https URL; correct it'],
    ],
    [
      'an invalid issuer',
      `${ENTRY}    auth: {client-credentials: {issuer: realm, client-id: c, secret-file: f}}\n`,
      [
        'nodepool.yaml:9:33: zuul-images[0].auth.client-credentials.issuer is not an http or https URL; correct it',
      ],
    ],
    [
      'a time to rebuild, which only other disk images have',
      `${ENTRY}    rebuild-age: 86400\n`,
      [
        'nodepool.yaml:9:5: warning: zuul-images[0] has the unknown key "rebuild-age"; it is ignored; remove it',
      ],
    ],
    [
      'a validation that checks nothing',
      `${ENTRY}    validate: {}\n`,
      ['nodepool.yaml:9:5: zuul-images[0].validate has neither hook nor boot; name one, or remove it'],
    ],
    [
      'a disk image outside zuul-images with their builder',
      'diskimages:\n  - name: a\n    builder: zuul-artifact\n',
      [
        'nodepool.yaml:4:5: diskimages[0].builder "zuul-artifact" builds only images of zuul-images; make the image one of zuul-images',
      ],
    ],
  ];
  for (const [what, text, diagnostics] of cases) {
    it(`zuul-images are reported for ${what}`, async () =>
      assert.deepEqual(await diagnosticsOf(text), diagnostics));
  }
});

it('an administrator’s token in a token-file causes a warning on a host that has the file', async () => {
  const text = `zuul-images:\n  - {name: a, ${NEEDED}, auth: {token-file: zuul-token}}\n`;
  const warnings = async (): Promise<readonly string[]> => {
    await writeFile(file, `images-dir: .\n${text}`);
    const place = { env: {}, cwd: directory, home: directory };
    const loaded = await loadConfiguration(file, { place, checksHost: true });
    return loaded.warnings.map((diagnostic) => formatDiagnostic('nodepool.yaml', diagnostic));
  };
  const writeToken = async (claims: object): Promise<void> => {
    const payload = Buffer.from(JSON.stringify(claims)).toString('base64url');
    await writeFile(join(directory, 'zuul-token'), `Bearer header.${payload}.signature\n`);
  };
  assert.deepEqual(await warnings(), []);
  await writeToken({ sub: 'nodepool' });
  assert.deepEqual(await warnings(), []);
  await writeToken({ sub: 'nodepool', zuul: { admin: ['example'] } });
  const [warning = '', ...others] = await warnings();
  assert.match(
    warning,
    /^nodepool\.yaml:3:\d+: warning: zuul-images\[0\]\.auth\.token-file has a token with the claim zuul\.admin, .*; use shared-secret/,
  );
  assert.deepEqual(others, []);
});

import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { DIRECTORY_MODULE, DibBuilder } from '@nodepool-builder/image-builder';
import type { OnInstance } from '@nodepool-builder/on-instance';
import { OPENSTACK_MODULE } from '@nodepool-builder/provider-openstack';
import type { Configuration, DiskImageConfiguration } from '../../src/configuration/configuration.ts';
import { loadConfiguration } from '../../src/configuration/load.ts';
import { Modules } from '../../src/configuration/modules.ts';
import { ConfigurationError, formatDiagnostic } from '../../src/yaml/diagnostic.ts';

let directory: string;
let file: string;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'on-instance-'));
  file = join(directory, 'nodepool.yaml');
});
after(() => rm(directory, { recursive: true }));

async function load(text: string, modules = Modules.builtIn): ReturnType<typeof loadConfiguration> {
  await writeFile(file, `images-dir: /i\n${text}`);
  const cloud = { OS_AUTH_URL: 'https://keystone.example.org/v3', OS_USERNAME: 'n', OS_PASSWORD: 'p' };
  return await loadConfiguration(file, {
    modules,
    place: { env: { ...cloud, OS_PROJECT_NAME: 'ci' }, cwd: directory, home: directory },
  });
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

async function configurationOf(text: string): Promise<Configuration> {
  const { configuration, warnings } = await load(text);
  assert.deepEqual(warnings, []);
  return configuration;
}

function settingsOfImage(diskimage: DiskImageConfiguration | undefined): OnInstance {
  assert.equal(diskimage?.builder, 'on-instance');
  return diskimage.settings as OnInstance;
}

/** Returns the settings of one image with these keys in its block. */
async function settingsOf(block: string, rest = ''): Promise<OnInstance> {
  const { diskimages } = await configurationOf(`${rest}
diskimages: [{name: "a'b", builder: on-instance, on-instance: {${block}}}]
`);
  return settingsOfImage(diskimages[0]);
}

/** The same digest in two notations. */
const HEXADECIMAL = 'E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855';
const FINGERPRINT = 'SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU';

const CLOUD = 'providers: [{name: cloud, images: [{name: node, diskimage: "a\'b"}]}]';

const CLOUD_IMAGES = 'cloud-images: [{name: debian, image-filters: [{name: name, values: [debian-*]}]}]';

/** Returns a disk image with this base image. */
function basedOn(baseImage: string, provider = 'cloud'): string {
  const block = `provider: ${provider}, base-image: ${baseImage}, steps: [x]`;
  return `${CLOUD}\n${CLOUD_IMAGES}\ndiskimages: [{name: "a'b", builder: on-instance, on-instance: {${block}}}]\n`;
}

describe('the base image', () => {
  for (const [what, written, read] of [
    [
      'filters',
      '{image-filters: [{name: tag, values: [7]}]}',
      { 'image-filters': [{ name: 'tag', values: ['7'] }] },
    ],
    ['the name of a cloud image', '{cloud-image: debian}', { 'cloud-image': 'debian' }],
  ] as const) {
    it(`a base image can be chosen by ${what}`, async () => {
      const { diskimages } = await configurationOf(basedOn(written));
      assert.deepEqual(settingsOfImage(diskimages[0])['base-image'], read);
    });
  }

  for (const [written, provider, reason] of [
    ['{}', 'cloud', /base-image needs either image-filters or cloud-image/],
    [
      '{cloud-image: bsd}',
      'cloud',
      /base-image\.cloud-image "bsd" is not among cloud-images of provider "cloud"/,
    ],
    ['{cloud-image: debian}', 'qemu', /base-image cannot be selected: provider "qemu" is of type qemu/],
    ['{image-filters: [{name: os, values: [x]}]}', 'cloud', /image-filters image filter: unknown key "os"/],
  ] as const) {
    it(`the base image ${written} is rejected in provider ${provider}`, async () => {
      const text = basedOn(written, provider);
      assert.match((await diagnosticsOf(text)).join('\n'), reason);
    });
  }
});

describe('the section on-instance', () => {
  it('the section on-instance needs a base image and something to run on it, and has defaults for the rest', async () => {
    assert.deepEqual(await settingsOf('base-image: base.qcow2, steps: [apt-get update]'), {
      provider: 'qemu',
      'base-image': join(directory, 'base.qcow2'),
      username: 'root',
      shell: 'posix',
      steps: ['apt-get update'],
      sysprep: false,
      'boot-timeout': 600,
      'stop-timeout': 300,
      'after-restart': 'destroy',
    });
  });

  it('the section on-instance reads all its keys, and a base image in a cloud is not a path', async () => {
    const block = `provider: cloud, base-image: Debian 12, min-ram: 2048, name-filter: Performance, username: debian,
      private-key: key, setup: prepare.sh, steps: [sync], boot-timeout: 60, stop-timeout: 5,
      keep-on-failure: 3600, after-restart: resume`;
    assert.deepEqual(await settingsOf(block, `script-dir: scripts\n${CLOUD}`), {
      provider: 'cloud',
      'base-image': 'Debian 12',
      'min-ram': 2048,
      'name-filter': 'Performance',
      username: 'debian',
      'private-key': join(directory, 'key'),
      shell: 'posix',
      steps: [`./prepare.sh 'a'\\''b'`, 'sync'],
      sysprep: false,
      'boot-timeout': 60,
      'stop-timeout': 5,
      'keep-on-failure': 3600,
      'after-restart': 'resume',
    });
  });

  it('the section on-instance with WinRM defaults to PowerShell and its user', async () => {
    const { winrm, shell, username, sysprep } = await settingsOf(
      `base-image: w.vhdx, winrm: {password-file: p, ca-file: /ca.pem, fingerprint: "${HEXADECIMAL}"}, steps: [Get-Date], sysprep: true`,
    );
    assert.deepEqual(
      { winrm, shell, username, sysprep },
      {
        winrm: {
          port: 5986,
          'password-file': join(directory, 'p'),
          'ca-file': '/ca.pem',
          fingerprint: FINGERPRINT,
        },
        shell: 'powershell',
        username: 'Administrator',
        sysprep: true,
      },
    );
  });

  it('the section on-instance uses machines of a provider of type qemu, which takes no images', async () => {
    const { providers, instanceProviders, diskimages } = await configurationOf(`
providers:
  - {name: local, type: qemu, accelerator: tcg, direct-boot: {kernel: vmlinuz, command-line: root=/dev/vda}}
diskimages: [{name: a, builder: on-instance, on-instance: {provider: local, base-image: b.raw, steps: [x]}}]
`);
    assert.deepEqual(providers, []);
    const common = {
      'template-hostname': 'template-{image.name}-{timestamp}',
      'compress-qcow2': false,
      pause: false,
      images: [],
    };
    assert.deepEqual(
      instanceProviders.map(({ entry }) => entry),
      [
        { name: 'qemu', ...common },
        {
          name: 'local',
          accelerator: 'tcg',
          'direct-boot': { kernel: join(directory, 'vmlinuz'), 'command-line': 'root=/dev/vda' },
          ...common,
        },
      ],
    );
    assert.equal(settingsOfImage(diskimages[0])['base-image'], join(directory, 'b.raw'));
  });

  it('the section on-instance needs no image file for the provider that has the snapshot', async () => {
    const { diskimages } = await configurationOf(`
providers:
  - {name: cloud, image-type: raw, images: [{name: node, diskimage: a}]}
  - {name: other, image-type: vhd, images: [{name: node, diskimage: a}]}
diskimages: [{name: a, builder: on-instance, on-instance: {provider: cloud, base-image: b, steps: [x]}}]
`);
    assert.deepEqual(diskimages[0]?.formats, ['vhd']);
  });

  const GOOD = 'base-image: b.raw, steps: [x]';
  for (const [what, diskimage, diagnostic] of [
    [
      'a section but without the builder',
      `on-instance: {${GOOD}}`,
      'diskimages[0].on-instance has no effect with the builder dib; write "builder: on-instance" next to it, or remove it',
    ],
    [
      'the builder but without a section',
      'builder: on-instance',
      'diskimages[0] lacks the key "on-instance", which builder: on-instance needs; set at least its base-image, and steps or setup',
    ],
    [
      'an unknown provider',
      `builder: on-instance, on-instance: {${GOOD}, provider: p}`,
      'diskimages[0].on-instance.provider "p" is not among providers; name a provider that runs instances, or none, for QEMU on this host',
    ],
    [
      'a provider that runs no machines',
      `builder: on-instance, on-instance: {${GOOD}, provider: pool}`,
      'diskimages[0].on-instance.provider "pool" is of type directory, which does not run instances; name a provider that runs instances, or none, for QEMU on this host',
    ],
    [
      'WinRM without a password',
      `builder: on-instance, on-instance: {${GOOD}, winrm: {ca-file: c}}`,
      'diskimages[0].on-instance.winrm lacks the key "password-file"; add "password-file: …"',
    ],
    [
      'an invalid fingerprint',
      `builder: on-instance, on-instance: {${GOOD}, winrm: {password-file: p, fingerprint: "AB:CD"}}`,
      'diskimages[0].on-instance.winrm.fingerprint is not a SHA-256 fingerprint of a certificate; write 64 hexadecimal digits, with or without colons, or SHA256: and 43 characters of base64',
    ],
    [
      'a POSIX shell over WinRM',
      `builder: on-instance, on-instance: {${GOOD}, shell: posix, winrm: {password-file: p, ca-file: c}}`,
      'diskimages[0].on-instance.shell is posix, which is not available over WinRM; use powershell, or remove winrm',
    ],
    [
      'sysprep without Windows',
      `builder: on-instance, on-instance: {${GOOD}, sysprep: true}`,
      'diskimages[0].on-instance.sysprep needs Windows, but the shell is posix; write "shell: powershell", or remove it',
    ],
    [
      'neither steps nor setup',
      'builder: on-instance, on-instance: {base-image: b.raw}',
      'diskimages[0].on-instance has neither steps nor setup: the image would be the base image; add the commands to run on the machine',
    ],
    [
      'a setup script but without script-dir',
      'builder: on-instance, on-instance: {base-image: b.raw, setup: s.sh}',
      'diskimages[0].on-instance.setup is a script of script-dir, which is not set; set script-dir',
    ],
    [
      'a step that is a mapping',
      'builder: on-instance, on-instance: {base-image: b.raw, steps: [{run: x}]}',
      'diskimages[0].on-instance.steps[0] must be a string, but is a mapping; put it in quotes',
    ],
  ] as const) {
    it(`on-instance settings are rejected with ${what}`, async () => {
      const providers = 'providers: [{name: pool, type: directory, directory: /pool, images: []}]';
      const diagnostics = await diagnosticsOf(`diskimages:\n- {name: a, ${diskimage}}\n${providers}\n`);
      assert.deepEqual(
        diagnostics.map((text) => text.replace(/^nodepool\.yaml:3:\d+: /, '')),
        [diagnostic],
      );
    });
  }

  it('the section on-instance causes a warning if only the console can announce a machine’s WinRM certificate', async () => {
    const block = `${GOOD}, winrm: {password-file: p}`;
    assert.deepEqual(
      await diagnosticsOf(`diskimages: [{name: a, builder: on-instance, on-instance: {${block}}}]\n`),
      [
        'nodepool.yaml:2:91: warning: diskimages[0].on-instance.winrm has neither "fingerprint" nor "ca-file", so only a certificate that the console announces is trusted; add one of them, unless the base image prints the fingerprint of its certificate to the console',
      ],
    );
  });

  it('the section on-instance needs no WinRM password if the provider supplies it', async () => {
    const block = 'provider: ec2, base-image: ami-1, winrm: {ca-file: c}, steps: [Get-Date]';
    const text = `diskimages: [{name: a, builder: on-instance, on-instance: {${block}}}]
providers: [{name: ec2, type: aws, images: []}]
`;
    assert.deepEqual(await diagnosticsOf(text), []);
  });

  it('only a provider of type qemu may lack images', async () => {
    assert.deepEqual(await diagnosticsOf('providers: [{name: a}, {name: b, type: qemu}]\n'), [
      'nodepool.yaml:2:13: providers[0] lacks the key "images"; add "images: …"',
    ]);
  });
});

describe("nodepool's own snapshot images", () => {
  const TWO_CLOUDS = `script-dir: /scripts
cron: {image-update: '14 2 * * *'}
providers:
  - name: pool
    type: directory
    directory: /pool
    images: []
  - name: cloud1
    images:
      - {name: bare, base-image: Ubuntu 12.04, setup: prepare.sh, username: ubuntu, private-key: /key, min-ram: 8192, name-filter: Perf}
  - name: cloud2
    images:
      - {name: bare, base-image: Ubuntu Precise, setup: prepare.sh, username: ubuntu, private-key: /key, min-ram: 8192, name-filter: Perf, meta: {a: b}}
`;

  it('nodepool’s snapshot images are built in the first provider that has them, and uploaded to the others', async () => {
    const { configuration } = await load(TWO_CLOUDS);
    const [bare, ...others] = configuration.diskimages;
    assert.deepEqual(others, []);
    assert.equal(bare?.name, 'bare');
    assert.equal(bare?.builder, 'on-instance');
    assert.equal(bare?.rebuildCron, '14 2 * * *');
    assert.equal(bare?.scriptDir, '/scripts');
    assert.deepEqual(bare?.settings, {
      provider: 'cloud1',
      'base-image': 'Ubuntu 12.04',
      'min-ram': 8192,
      'name-filter': 'Perf',
      username: 'ubuntu',
      'private-key': '/key',
      shell: 'posix',
      steps: ["./prepare.sh 'bare'"],
      sysprep: false,
      'boot-timeout': 600,
      'stop-timeout': 300,
      'after-restart': 'destroy',
    });
    assert.deepEqual(
      configuration.providers.map(({ name, entry }) => [
        name,
        entry.images.map(({ diskimage }) => diskimage),
      ]),
      [
        ['pool', []],
        ['cloud1', ['bare']],
        ['cloud2', ['bare']],
      ],
    );
  });

  it('nodepool’s snapshot images cause a warning if they are built otherwise than their keys say', async () => {
    assert.deepEqual(await diagnosticsOf(TWO_CLOUDS), [
      'nodepool.yaml:14:22: warning: providers[2].images[0].base-image has no effect here: provider "cloud1" builds the image, with another base-image; the image is built once, and uploaded here; make it a disk image, or rename one of the two',
    ]);
  });

  it('nodepool’s snapshot images stay unchanged next to a disk image of their name, or if they cannot be built', async () => {
    const text = `diskimages: [{name: dib}]
providers:
- name: cloud
  images:
  - {name: dib, base-image: b, setup: s}
  - {name: no-script-dir, base-image: b, setup: s}
  - {name: no-setup, base-image: b}
  - {name: no-number, base-image: b, setup: s, min-ram: much}
- {name: pool, type: directory, directory: /d, images: [{name: at-directory, base-image: b, setup: s}]}
`;
    const ignored = 'nothing is built from it; name a diskimage instead, or leave it to nodepool';
    const cloud = 'warning: providers[0].images';
    const diagnostics = await diagnosticsOf(text);
    assert.deepEqual(
      diagnostics.map((diagnostic) => diagnostic.replace(/^nodepool\.yaml:(\d+):\d+/, '$1')),
      [
        `6: ${cloud}[0].base-image has no effect: "dib" is already a disk image; ${ignored}`,
        `7: ${cloud}[1].base-image has a setup of script-dir, which is not set; ${ignored}`,
        `8: ${cloud}[2].base-image has no setup next to it: the image would be the base image; ${ignored}`,
        `9: ${cloud}[3].base-image has a min-ram next to it that is not a number; ${ignored}`,
        `10: warning: providers[1].images[0].base-image has no effect: a provider of type directory does not run instances; ${ignored}`,
      ],
    );
    const { configuration } = await load(text);
    assert.deepEqual(
      configuration.diskimages.map(({ name }) => name),
      ['dib'],
    );
    assert.equal(configuration.providers[0]?.entry.images[0]?.diskimage, undefined);
  });

  it('nodepool’s snapshot images are ignored without a builder for them', async () => {
    const { configuration, warnings } = await load(
      TWO_CLOUDS,
      Modules.none.with([OPENSTACK_MODULE, DIRECTORY_MODULE]).withBuilders({ dib: DibBuilder }),
    );
    assert.deepEqual([configuration.diskimages, warnings], [[], []]);
  });
});

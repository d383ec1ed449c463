// Only in test:all: it starts a manager and builders with each kind of key.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFile, cp, mkdir, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { startBuilder } from '../fixtures/builder-process.ts';
import { runInProcess } from '../fixtures/command-in-process.ts';
import { runCommand } from '../fixtures/command-outcome.ts';
import { gearman } from '../fixtures/gearman-commands.ts';
import { startGearmand } from '../fixtures/gearmand.ts';
import { setUp } from '../fixtures/set-up.ts';
import { createSite, type Site } from '../fixtures/site.ts';

/** A link in the JSON of `verify`. */
interface Link {
  readonly kind: string;
  readonly state: string;
  readonly reason: string;
  readonly 'key-id': string | null;
}

interface Report {
  readonly state: string;
  readonly links: readonly Link[];
}

const CODES = { proven: 0, unproven: 7, refuted: 8 } as const;

/** File system of 512 KiB, so that each change is verified within milliseconds. */
const SMALL = `
  - name: docs
    builder: command
    command:
      - sh
      - -c
      - truncate --size=512K "$0" && mke2fs -q -t ext2 -d "$1" "$0"
      - '{output.raw}'
      - ${join(import.meta.dirname, '../elements/mini-fail')}`;

let site: Site;
let publicKey: string;
/** Copy of everything that was attested, from which each change starts. */
let original: string;

setUp(async (undo) => {
  const server = await startGearmand();
  undo(() => server.stop());
  site = await createSite(server.port, SMALL);
  undo(() => site.remove());
  const file = (name: string): string => join(site.directory, name);
  publicKey = file('attestation.pub');
  execFileSync('openssl', ['genpkey', '-algorithm', 'ed25519', '-out', file('attestation.pem')]);
  execFileSync('openssl', ['pkey', '-in', file('attestation.pem'), '-pubout', '-out', publicKey]);
  execFileSync('chmod', ['600', file('attestation.pem')]);
  const attestation = 'attestation: {key: attestation.pem, public-key: attestation.pub}\n';
  await writeFile(site.config, (await readFile(site.config, 'utf8')) + attestation);

  const builder = await startBuilder(site.config);
  try {
    const built = await gearman(server.port, 'image-build:docs', '{"image-id": "docs-1"}');
    assert.equal(built.stdout, '{"image-id": "docs-1"}', built.stderr);
    const upload = '{"provider": "pool", "image-name": "docs"}';
    const uploaded = await gearman(server.port, 'image-upload:docs-1', upload);
    assert.equal(uploaded.stdout, '{"external-id": "docs-docs-1.qcow2"}', uploaded.stderr);
  } finally {
    await builder.end('SIGTERM');
  }
  original = file('original');
  await cp(site.images, join(original, 'images'), { recursive: true, preserveTimestamps: true });
  await cp(site.pool, join(original, 'pool'), {
    recursive: true,
    preserveTimestamps: true,
    verbatimSymlinks: true,
  });
});

/** Restores everything as the builder left it. */
async function restore(): Promise<void> {
  for (const [copy, directory] of [
    ['images', site.images],
    ['pool', site.pool],
  ] as const) {
    await rm(directory, { recursive: true });
    await cp(join(original, copy), directory, {
      recursive: true,
      preserveTimestamps: true,
      verbatimSymlinks: true,
    });
  }
}

/** Verifies in this process, because starting one takes most of a second. */
async function verify(state: keyof typeof CODES, ...args: readonly string[]): Promise<Report> {
  const { code, stdout, stderr } = await runInProcess('verify', ...args, '-c', site.config, '--json');
  assert.ok(stdout !== '', stderr);
  const report = JSON.parse(stdout) as Report;
  assert.deepEqual([report.state, code], [state, CODES[state]], stdout);
  return report;
}

const UPLOAD = ['--provider', 'pool', 'docs-docs-1.qcow2'];

function linksOf(report: Report): readonly string[] {
  return report.links.map(({ kind, state }) => `${kind} ${state}`);
}

describe('verify', () => {
  it('verify does not mistake a bill of materials in a provider for an attestation', async () => {
    await restore();
    const name = 'bom.cdx.json';
    const path = join(site.pool, 'docs-docs-1.qcow2.json');
    const record = JSON.parse(await readFile(path, 'utf8')) as { attestations: readonly string[] };
    await writeFile(join(site.pool, `docs-docs-1.qcow2.${name}`), '{"bomFormat": "CycloneDX"}');
    await writeFile(path, JSON.stringify({ ...record, attestations: [...record.attestations, name] }));
    await verify('proven', ...UPLOAD);
    await rm(join(site.images, 'docs-1.d'), { recursive: true });
    await rm(join(site.pool, 'docs-docs-1.qcow2.build.sigstore.json'));
    await verify('unproven', ...UPLOAD);
  });

  it('verify proves an image, a file and an upload by a builder that works with gearmand', async () => {
    await restore();
    const image = await verify('proven', 'docs-1');
    assert.deepEqual(linksOf(image).toSorted().slice(0, 2), ['build proven', 'conversion proven']);
    assert.ok(linksOf(image).includes('record proven'), JSON.stringify(image));
    await verify('proven', join(site.images, 'docs-1.qcow2'));
    const upload = await verify('proven', ...UPLOAD, '--download');
    assert.ok(linksOf(upload).includes('upload proven'));
    assert.ok(linksOf(upload).includes('download proven'));
    assert.ok(linksOf(upload).includes('record proven'));
  });

  it('verify needs no configuration for a file with its attestations and a key', async () => {
    await restore();
    const directory = join(site.directory, 'elsewhere');
    await mkdir(directory);
    await copyFile(join(site.images, 'docs-1.qcow2'), join(directory, 'docs-1.qcow2'));
    const args = ['--attestations', join(site.images, 'docs-1.d'), '--key', publicKey];
    const { code, stdout, stderr } = await runCommand('verify', join(directory, 'docs-1.qcow2'), ...args);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^proven +file .*\n +key [0-9a-f]{16} \(attestation\.pub\), .*\n/);
    assert.match(stderr, /^digests of docs-1\.qcow2: 0 %\n(?:.*\n)*digests of docs-1\.qcow2: 100 %\n$/);
  });

  it('verify reports that nothing is proven without attestations, or with another key', async () => {
    await restore();
    const other = join(site.directory, 'other.pub');
    execFileSync('sh', ['-c', `openssl genpkey -algorithm ed25519 | openssl pkey -pubout -out ${other}`]);
    const untrusted = await verify('unproven', 'docs-1', '--key', other);
    assert.match(untrusted.links[0]?.reason ?? '', /key/);
    await rm(join(site.images, 'docs-1.d'), { recursive: true });
    await verify('unproven', 'docs-1');
  });

  it('verify rejects impossible requests', async () => {
    await restore();
    const cases: readonly (readonly [args: readonly string[], code: number, message: RegExp])[] = [
      [
        ['docs-2'],
        3,
        /image docs-2 is neither in .*images nor in the store of the manager; run this on the builder/,
      ],
      [['../docs-2'], 3, /\.\.\/docs-2 does not exist; name an image-id or an image file/],
      [['docs-1', '--download'], 2, /--download needs --provider/],
      [['docs-1', '--attestations', join(site.directory, 'none')], 3, /none cannot be read: ENOENT/],
      [['docs-1', '--attestations', site.pool.replace('pool', 'elsewhere-2')], 3, /cannot be read/],
      [['docs-1', '--key', join(site.directory, 'none.pub')], 1, /public key ".*none\.pub"/],
      [['docs-1', '--key', join(site.directory, 'attestation.pem')], 1, /is a private key/],
      [['--provider', 'pool', 'docs-2.qcow2'], 3, /provider "pool" has no complete image docs-2\.qcow2/],
      [['--provider', 'other', 'docs-2.qcow2'], 3, /choose one of: pool/],
    ];
    for (const [args, expected, message] of cases) {
      const { code, stdout, stderr } = await runInProcess('verify', ...args, '-c', site.config);
      assert.deepEqual([code, stdout], [expected, ''], `${args.join(' ')}: ${stderr}`);
      assert.match(stderr, message);
    }
    await writeFile(join(site.directory, 'plain.yaml'), 'images-dir: images\n');
    const plain = await runInProcess('verify', 'docs-1', '-c', join(site.directory, 'plain.yaml'));
    assert.equal(plain.code, 2);
    assert.match(
      plain.stderr,
      /no public key to verify with; name one with --key, or set attestation\.trusted-keys/,
    );
  });

  it('verify reports a bundle that is truncated, and rejects one of more than 1 MiB', async () => {
    await restore();
    const bundle = join(site.images, 'docs-1.d/attestations/build.sigstore.json');
    await writeFile(bundle, (await readFile(bundle)).subarray(0, 500));
    await verify('refuted', 'docs-1');
    await writeFile(bundle, Buffer.alloc(1024 * 1024 + 1, ' '));
    const { code, stdout, stderr } = await runInProcess('verify', 'docs-1', '-c', site.config);
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(stderr, /build\.sigstore\.json/);
  });
});

/** Replaces one byte of a file without changing its times. */
async function flip(path: string, position: number): Promise<void> {
  const { atime, mtime } = await stat(path);
  const bytes = await readFile(path);
  bytes[position] = (bytes[position] ?? 0) ^ 1;
  await writeFile(path, bytes);
  await utimes(path, atime, mtime);
}

describe('verify after a change', () => {
  it('verify finds a changed byte anywhere in a file', async () => {
    for (const name of ['docs-1.raw', 'docs-1.qcow2']) {
      const { size } = await stat(join(original, 'images', name));
      for (const position of [0, 1, 511, Math.floor(size / 2), size - 2, size - 1]) {
        await restore();
        await flip(join(site.images, name), position);
        await verify('refuted', 'docs-1');
      }
    }
  });

  it('verify finds a file whose length has changed', async () => {
    await restore();
    const path = join(site.images, 'docs-1.raw');
    await writeFile(path, (await readFile(path)).subarray(0, -1));
    await verify('refuted', 'docs-1');
  });

  it('verify finds a changed byte in the provider’s image', async () => {
    const { size } = await stat(join(original, 'pool/docs-docs-1.qcow2'));
    for (const position of [0, Math.floor(size / 2), size - 1]) {
      await restore();
      await flip(join(site.pool, 'docs-docs-1.qcow2'), position);
      const { links } = await verify('refuted', ...UPLOAD, '--download');
      assert.equal(links.find(({ kind }) => kind === 'download')?.state, 'refuted');
    }
  });

  it('verify finds any changed value in any statement, and any changed signature', async () => {
    const names = await readdir(join(original, 'images/docs-1.d/attestations'));
    assert.equal(names.length, 3, names.join(', '));
    for (const name of names) {
      const path = join(site.images, 'docs-1.d/attestations', name);
      const bundle = JSON.parse(await readFile(join(original, 'images/docs-1.d/attestations', name), 'utf8'));
      const payload = Buffer.from(bundle.dsseEnvelope.payload, 'base64').toString();
      const statement = JSON.parse(payload) as object;
      const signature = Buffer.from(bundle.dsseEnvelope.signatures[0].sig, 'base64');
      const changes: [what: string, change: (envelope: Record<string, unknown>) => unknown][] = [
        ...leavesOf(statement).map(([where, change]): (typeof changes)[number] => [
          where,
          (envelope) => {
            envelope.payload = Buffer.from(JSON.stringify(change())).toString('base64');
          },
        ]),
        ...[0, 31, 32, signature.length - 1].map((position): (typeof changes)[number] => [
          `byte ${position} of the signature`,
          (envelope) => {
            const other = Buffer.from(signature);
            other[position] = (other[position] ?? 0) ^ 1;
            envelope.signatures = [{ ...bundle.dsseEnvelope.signatures[0], sig: other.toString('base64') }];
          },
        ]),
        ['payloadType', (envelope) => Object.assign(envelope, { payloadType: 'application/json' })],
        ['no signature', (envelope) => Object.assign(envelope, { signatures: [] })],
      ];
      for (const [what, change] of changes) {
        await restore();
        const changed = structuredClone(bundle);
        change(changed.dsseEnvelope);
        await writeFile(path, JSON.stringify(changed));
        const args = name.startsWith('upload-') ? UPLOAD : ['docs-1'];
        const { code, stdout } = await runInProcess('verify', ...args, '-c', site.config, '--json');
        assert.notEqual(code, 0, `${name}: ${what}: ${stdout}`);
        assert.notEqual((JSON.parse(stdout) as Report).state, 'proven', `${name}: ${what}`);
      }
    }
  });

  it('verify finds any changed value in the builder’s record that an attestation or a file proves', async () => {
    const name = '.nodepool-builder/manifests/docs-1.json';
    const record = JSON.parse(await readFile(join(original, 'images', name), 'utf8')) as object;
    let found = 0;
    for (const [where, change] of leavesOf(record)) {
      // Modification times and used space prove nothing. A conversion is proven by its own attestation.
      if (/mtime|disk-space|builder|built|version|from|format/.test(where)) continue;
      await restore();
      await writeFile(join(site.images, name), JSON.stringify(change()));
      const report = await verify('refuted', 'docs-1');
      assert.ok(linksOf(report).includes('record refuted'), where);
      found += 1;
    }
    assert.ok(found >= 10, `only ${found} values`);
    await restore();
    await writeFile(join(site.images, name), '{');
    assert.ok(linksOf(await verify('refuted', 'docs-1')).includes('record refuted'));
  });

  it('verify finds any changed value in the provider’s record that an attestation proves', async () => {
    const name = 'docs-docs-1.qcow2.json';
    const record = JSON.parse(await readFile(join(original, 'pool', name), 'utf8')) as Record<
      string,
      unknown
    >;
    for (const field of ['image-id', 'image-name', 'upload-id', 'sha256']) {
      await restore();
      const changed = { ...record, [field]: `x${String(record[field]).slice(1)}` };
      await writeFile(join(site.pool, name), JSON.stringify(changed));
      const { code, stdout } = await runInProcess('verify', ...UPLOAD, '-c', site.config, '--json');
      assert.notEqual(code, 0, `${field}: ${stdout}`);
    }
  });
});

/** Yields each plain value in a JSON document, with a copy of the document in which the value differs. */
function leavesOf(document: object): readonly (readonly [where: string, change: () => object])[] {
  const paths: (readonly (string | number)[])[] = [];
  const walk = (value: unknown, path: readonly (string | number)[]): void => {
    if (typeof value !== 'object' || value === null) paths.push(path);
    else for (const [key, one] of Object.entries(value)) walk(one, [...path, key]);
  };
  walk(document, []);
  return paths.map((path) => [
    path.join('.'),
    () => {
      const copy = structuredClone(document) as Record<string | number, unknown>;
      let parent = copy;
      for (const key of path.slice(0, -1)) parent = parent[key] as typeof parent;
      const last = path.at(-1) ?? '';
      const value = parent[last];
      parent[last] =
        typeof value === 'string' ? otherText(value) : typeof value === 'number' ? value + 1 : !value;
      return copy;
    },
  ]);
}

/** Changes the last character of a text, so that a digest remains a digest, and a time a time. */
function otherText(text: string): string {
  const at = /\d(?=\D*$)/.exec(text)?.index ?? text.length - 1;
  const digit = text[at] ?? '';
  const other = /\d/.test(digit) ? String((Number(digit) + 1) % 10) : digit === 'a' ? 'b' : 'a';
  return text.slice(0, Math.max(0, at)) + other + text.slice(at + 1);
}

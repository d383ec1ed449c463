import assert from 'node:assert/strict';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { temporaryDirectory } from '../../../test/fixtures/scratch-directory.ts';
import { readAttestations } from '../src/attestation-directory.ts';
import { type ChainReport, verifyChain } from '../src/chain.ts';
import { readTrustedKeys } from '../src/keys.ts';
import type { FoundAttestation, LocalFile, VerifiedSubject } from '../src/types.ts';
import type { FinishedUpload } from '../src/upload-statement.ts';
import { createSite, finishBuild, NOW, type Site, sha256, writeKeys } from './site-fixture.ts';

/** Creates a site with a built image, a converted file and an upload of each file. */
interface BuiltSite extends Site {
  readonly files: readonly LocalFile[];
  readonly upload: FinishedUpload;
  /** Content of all attestations about a subject. */
  readonly verify: (subject: VerifiedSubject, now?: Date) => Promise<ChainReport>;
  readonly attestations: () => Promise<FoundAttestation[]>;
}

async function builtSite(directory: string, imageId = 'debian-1'): Promise<BuiltSite> {
  const site = await createSite(directory);
  const { attester, trusted } = site;
  const build = await finishBuild(directory, imageId);
  await attester.attestBuild(build);
  const [raw] = build.manifest.files;
  assert.ok(raw !== undefined);
  const vhd = { ...raw, format: 'vhd' as const, sha256: sha256('vhd') };
  await attester.attestConversion({ imageId, imageName: 'debian', source: raw, file: vhd, directory });
  const upload: FinishedUpload = {
    'image-id': imageId,
    'image-name': 'debian',
    provider: 'cloud',
    'provider-type': 'openstack',
    'upload-id': 'one',
    'external-id': '7d1f',
    format: 'qcow2',
    sha256: sha256(`qcow2 of ${imageId}`),
    'reported-digests': { sha512: 'f'.repeat(128) },
    directory,
  };
  await attester.attestUpload(upload);
  const other = {
    'upload-id': 'two',
    'external-id': '8e2a',
    provider: 'other',
    format: 'vhd',
    sha256: sha256('vhd'),
  };
  await attester.attestUpload({ ...upload, ...other } as FinishedUpload);
  const attestations = async (): Promise<FoundAttestation[]> => [
    ...(await readAttestations(directory, imageId)),
  ];
  const files = [...build.manifest.files, vhd].map(({ format, sha256: digest }) => ({
    path: join(directory, `${imageId}.${format}`),
    format,
    sha256: digest,
  }));
  return {
    ...site,
    files,
    upload,
    attestations,
    verify: async (subject, now = NOW) => verifyChain(subject, await attestations(), trusted, now),
  };
}

/** Returns `kind state` of each link. */
function outline({ links }: ChainReport): string[] {
  return links.map(({ kind, state }) => `${kind} ${state}`);
}

function reasons({ links }: ChainReport): string {
  return links.map(({ subject, reason }) => `${subject}: ${reason}`).join('\n');
}

describe('the chain of an image', () => {
  test('an image’s chain of attestations leads from its files to its build', async (t) => {
    const { files, verify, trusted } = await builtSite(temporaryDirectory(t));
    const report = await verify({ kind: 'image', imageId: 'debian-1', files });
    assert.equal(report.state, 'proven', reasons(report));
    assert.deepEqual(outline(report), [
      'file proven',
      'build proven',
      'file proven',
      'file proven',
      'conversion proven',
      'materials proven',
    ]);
    assert.equal(report.build?.subjects[0]?.name, 'debian-1.raw');
    for (const link of report.links) {
      assert.equal(link.keyId, trusted[0]?.keyId);
      assert.equal(link.keyFile, trusted[0]?.file);
      assert.match(link.place ?? '', /attestations\/(?:build|convert-vhd)\.sigstore\.json$/);
    }
  });

  test('an image’s chain of attestations is refuted by a changed file', async (t) => {
    const { files, verify } = await builtSite(temporaryDirectory(t));
    const changed = files.map((file) => ({ ...file, sha256: sha256(`${file.format} changed`) }));
    const report = await verify({ kind: 'image', imageId: 'debian-1', files: changed });
    assert.equal(report.state, 'refuted');
    assert.deepEqual(outline(report), ['file refuted', 'file refuted', 'file refuted']);
    assert.match(reasons(report), new RegExp(`${sha256('raw changed')}.*${sha256('raw of debian-1')}`));
  });

  test('an image’s chain of attestations is refuted by a file that replaced another, also from another image', async (t) => {
    const { files, verify, attester, directory, trusted, attestations } = await builtSite(
      temporaryDirectory(t),
    );
    const [raw, qcow2] = files;
    assert.ok(raw !== undefined && qcow2 !== undefined);
    const swapped = [{ ...raw, sha256: qcow2.sha256 }];
    const report = await verify({ kind: 'image', imageId: 'debian-1', files: swapped });
    assert.deepEqual(outline(report), ['file refuted']);
    await attester.attestBuild(await finishBuild(directory, 'debian-2'));
    const both = [...(await attestations()), ...(await readAttestations(directory, 'debian-2'))];
    const foreign: VerifiedSubject = {
      kind: 'image',
      imageId: 'debian-1',
      files: [{ ...raw, sha256: sha256('raw of debian-2') }],
    };
    assert.equal(verifyChain(foreign, both, trusted, NOW).state, 'refuted');
  });

  test('an image’s chain of attestations does not prove a file that was added by hand', async (t) => {
    const { files, verify, directory } = await builtSite(temporaryDirectory(t));
    const stray = { path: join(directory, 'debian-1.vmdk'), format: 'vmdk', sha256: sha256('stray') };
    const report = await verify({ kind: 'image', imageId: 'debian-1', files: [...files, stray] });
    assert.equal(report.state, 'unproven');
    assert.match(
      reasons(report),
      /debian-1\.vmdk: no attestation of a build or conversion covers this file.*debian-1\.raw/,
    );
    const nothing = verifyChain({ kind: 'image', imageId: 'debian-1', files }, [], [], NOW);
    assert.equal(nothing.state, 'unproven');
    assert.equal(nothing.build, undefined);
    const empty = await verify({ kind: 'image', imageId: 'debian-1', files: [] });
    assert.equal(empty.state, 'unproven');
  });

  test('an image’s chain of attestations reports a build that finished in the future', async (t) => {
    const { files, verify } = await builtSite(temporaryDirectory(t));
    const subject: VerifiedSubject = { kind: 'image', imageId: 'debian-1', files: files.slice(0, 1) };
    const finished = Date.parse('2026-11-24T11:30:00Z');
    const slightly = await verify(subject, new Date(finished - 299_000));
    assert.equal(slightly.state, 'proven');
    const early = await verify(subject, new Date(finished - 301_000));
    assert.deepEqual(outline(early), ['file proven', 'build refuted', 'materials proven']);
    assert.match(reasons(early), /finished in the future, at 2026-11-24T11:30:00.000Z; correct the clock/);
  });

  test('an image’s chain of attestations reports materials without a digest, which are not required', async (t) => {
    const directory = temporaryDirectory(t);
    const { attester, trusted } = await createSite(directory);
    const materials = [{ name: 'packages of deb.debian.org', digest: {} }];
    const build = await finishBuild(directory, 'debian-1', { materials });
    await attester.attestBuild(build);
    const files = build.manifest.files.map((file) => ({ ...file, path: `debian-1.${file.format}` }));
    const found = await readAttestations(directory, 'debian-1');
    const report = verifyChain({ kind: 'image', imageId: 'debian-1', files }, found, trusted, NOW);
    assert.equal(report.state, 'proven');
    assert.deepEqual(outline(report).at(-1), 'materials unproven');
    assert.match(reasons(report), /1 material; without a digest: packages of deb\.debian\.org/);
  });
});

describe('the chain of an upload', () => {
  test('an upload’s chain of attestations leads from the provider to the build', async (t) => {
    const { verify } = await builtSite(temporaryDirectory(t));
    const downloaded = sha256('qcow2 of debian-1');
    const report = await verify({ kind: 'upload', provider: 'cloud', externalId: '7d1f', downloaded });
    assert.equal(report.state, 'proven', reasons(report));
    assert.deepEqual(outline(report), [
      'upload proven',
      'download proven',
      'file proven',
      'build proven',
      'materials proven',
    ]);
    assert.match(reasons(report), /debian-1\.qcow2 was uploaded on 2026-11-24T12:00:00\.000Z as debian/);
  });

  test('an upload’s chain of attestations leads through a conversion', async (t) => {
    const { verify } = await builtSite(temporaryDirectory(t));
    const report = await verify({ kind: 'upload', provider: 'other', externalId: '8e2a' });
    assert.equal(report.state, 'proven', reasons(report));
    assert.deepEqual(outline(report), [
      'upload proven',
      'file proven',
      'conversion proven',
      'build proven',
      'materials proven',
    ]);
  });

  test('an upload’s chain of attestations is refuted by other bytes in the provider', async (t) => {
    const { verify } = await builtSite(temporaryDirectory(t));
    const downloaded = sha256('other');
    const report = await verify({ kind: 'upload', provider: 'cloud', externalId: '7d1f', downloaded });
    assert.equal(report.state, 'refuted');
    assert.ok(outline(report).includes('download refuted'));
  });

  test('an upload’s chain of attestations is refuted by another digest that the provider reported', async (t) => {
    const { verify, attester, upload } = await builtSite(temporaryDirectory(t));
    await attester.attestUpload({ ...upload, 'reported-digests': { sha256: sha256('other') } });
    const report = await verify({ kind: 'upload', provider: 'cloud', externalId: '7d1f' });
    assert.equal(report.state, 'refuted');
    assert.match(reasons(report), /the provider reported the sha256/);
  });

  test('an upload’s chain of attestations is not refuted by an image that the provider has converted', async (t) => {
    const { verify, attester, upload } = await builtSite(temporaryDirectory(t));
    const digests = { sha256: sha256('other') };
    await attester.attestUpload({ ...upload, 'reported-digests': digests, converted: true });
    const subject = { kind: 'upload', provider: 'cloud', externalId: '7d1f' } as const;
    assert.equal((await verify(subject)).state, 'proven');
    const report = await verify({ ...subject, downloaded: sha256('other') });
    assert.equal(report.state, 'unproven');
    assert.match(reasons(report), /other bytes than debian-1\.qcow2 had, which it converted/);
  });

  test('an upload’s chain of attestations does not prove an image that was not attested', async (t) => {
    const { verify } = await builtSite(temporaryDirectory(t));
    for (const [provider, externalId] of [
      ['cloud', '8e2a'],
      ['other', '7d1f'],
    ] as const) {
      const report = await verify({ kind: 'upload', provider, externalId });
      assert.equal(report.state, 'unproven');
      assert.match(reasons(report), /the upload of image .* is not attested/);
    }
  });

  test('an upload’s chain of attestations is refuted by an attestation for another build', async (t) => {
    const { verify, attester, directory } = await builtSite(temporaryDirectory(t));
    await attester.attestBuild(await finishBuild(directory, 'debian-1', { materials: [] }));
    const report = await verify({ kind: 'upload', provider: 'cloud', externalId: '7d1f' });
    assert.equal(report.state, 'refuted');
    assert.match(reasons(report), /names another attestation of the build/);
  });

  test('an upload’s chain of attestations lacks a link if an attestation is missing', async (t) => {
    const { attestations, trusted } = await builtSite(temporaryDirectory(t));
    const all = await attestations();
    const without = (name: string): FoundAttestation[] =>
      all.filter(({ place }) => !place.endsWith(`/${name}.sigstore.json`));
    const subject: VerifiedSubject = { kind: 'upload', provider: 'other', externalId: '8e2a' };
    for (const [name, expected] of [
      ['upload-two', ['upload unproven']],
      ['convert-vhd', ['upload proven', 'file unproven']],
      ['build', ['upload proven', 'file proven', 'conversion unproven']],
    ] as const) {
      const report = verifyChain(subject, without(name), trusted, NOW);
      assert.equal(report.state, 'unproven');
      // The upload itself names the file, with the same digest.
      assert.deepEqual(outline(report), expected, reasons(report));
    }
  });
});

describe('the chain of a file', () => {
  test('a file’s chain of attestations leads to its build under the name that the build gave it', async (t) => {
    const { verify } = await builtSite(temporaryDirectory(t));
    const file = { kind: 'file', path: '/srv/debian-1.qcow2', sha256: sha256('qcow2 of debian-1') } as const;
    const report = await verify(file);
    assert.equal(report.state, 'proven', reasons(report));
    assert.deepEqual(outline(report), ['file proven', 'build proven', 'materials proven']);
    const changed = await verify({ ...file, sha256: sha256('other') });
    assert.equal(changed.state, 'refuted');
    const other = await verify({ ...file, path: '/srv/other.qcow2', sha256: sha256('other') });
    assert.equal(other.state, 'unproven');
  });

  test('a file’s chain of attestations is refuted under any other name, including another image’s', async (t) => {
    const { verify } = await builtSite(temporaryDirectory(t));
    for (const name of ['debian-2.qcow2', 'debian-1.raw', 'renamed.qcow2']) {
      const path = `/srv/${name}`;
      const report = await verify({ kind: 'file', path, sha256: sha256('qcow2 of debian-1') });
      assert.equal(report.state, 'refuted', name);
      assert.match(reasons(report), /its bytes are those of debian-1\.qcow2; (?:give|restore) the file/);
    }
  });

  test('a file’s chain of attestations leads through its upload if it is named after the external-id', async (t) => {
    const { verify, attester, upload } = await builtSite(temporaryDirectory(t));
    await attester.attestUpload({ ...upload, 'external-id': 'debian-debian-1.qcow2' });
    const path = '/pool/debian-debian-1.qcow2';
    const report = await verify({ kind: 'file', path, sha256: upload.sha256 });
    assert.deepEqual(outline(report), ['upload proven', 'file proven', 'build proven', 'materials proven']);
    const other = await verify({ kind: 'file', path, sha256: sha256('vhd') });
    assert.equal(other.state, 'refuted');
  });

  test('a file’s chain of attestations ends at a conversion whose source another image has under that name', async (t) => {
    const directory = temporaryDirectory(t);
    const { attester, trusted } = await createSite(directory);
    await attester.attestBuild(await finishBuild(directory, 'debian-2'));
    const source = { format: 'raw' as const, sha256: sha256('raw of debian-2') };
    const vhd = { format: 'vhd' as const, size: 3, mtime: NOW.toISOString(), md5: '', sha256: sha256('vhd') };
    await attester.attestConversion({
      imageId: 'debian-1',
      imageName: 'debian',
      source,
      file: vhd,
      directory,
    });
    const found = (
      await Promise.all(['debian-1', 'debian-2'].map((id) => readAttestations(directory, id)))
    ).flat();
    const file = { kind: 'file', path: 'debian-1.vhd', sha256: sha256('vhd') } as const;
    const report = verifyChain(file, found, trusted, NOW);
    assert.deepEqual(outline(report), ['file proven', 'conversion unproven']);
  });
});

describe('attestations', () => {
  test('damaged attestations refute the chain', async (t) => {
    const { files, verify, directory } = await builtSite(temporaryDirectory(t));
    const path = join(directory, 'debian-1.d/attestations');
    for (const name of await readdir(path)) {
      const file = join(path, name);
      const text = await readFile(file, 'utf8');
      for (const position of [10, Math.floor(text.length / 2), text.length - 10]) {
        const byte = text[position] === 'A' ? 'B' : 'A';
        await writeFile(file, text.slice(0, position) + byte + text.slice(position + 1));
        const report = await verify({ kind: 'image', imageId: 'debian-1', files });
        assert.equal(report.state, 'refuted', `${name} ${position}`);
        assert.match(reasons(report), new RegExp(name));
      }
      await writeFile(file, text.slice(0, -1));
      assert.equal((await verify({ kind: 'image', imageId: 'debian-1', files })).state, 'refuted');
      await writeFile(file, text);
    }
    assert.equal((await verify({ kind: 'image', imageId: 'debian-1', files })).state, 'proven');
  });

  test('attestations by a key that is not trusted neither prove nor refute anything', async (t) => {
    const directory = temporaryDirectory(t);
    const { files, attestations, trusted } = await builtSite(directory);
    const found = await attestations();
    const others = await readTrustedKeys([(await writeKeys(directory, 'other')).publicKey]);
    const subject: VerifiedSubject = { kind: 'image', imageId: 'debian-1', files };
    const report = verifyChain(subject, found, others, NOW);
    assert.equal(report.state, 'unproven');
    assert.match(reasons(report), /was signed with the key [\da-f]{64}, which is not trusted/);
    const foreign = await createSite(temporaryDirectory(t));
    await foreign.attester.attestBuild(await finishBuild(foreign.directory));
    const both = [...found, ...(await readAttestations(foreign.directory, 'debian-1'))];
    assert.equal(verifyChain(subject, both, trusted, NOW).state, 'proven');
  });
});

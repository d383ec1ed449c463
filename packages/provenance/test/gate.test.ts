import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Material, RequiredAttestation } from '@nodepool-builder/image-builder';
import { temporaryDirectory } from '../../../test/fixtures/scratch-directory.ts';
import { readAttestations } from '../src/attestation-directory.ts';
import { verifyChain } from '../src/chain.ts';
import { checkGate } from '../src/gate.ts';
import type { Package } from '../src/types.ts';
import { createSite, finishBuild, MATERIALS, NOW } from './site-fixture.ts';

const OPENSSL: Package = {
  name: 'openssl',
  version: '3.0.1',
  type: 'deb',
  purl: 'pkg:deb/debian/openssl@3.0.1',
};

interface Attempt {
  readonly rules?: RequiredAttestation;
  readonly materials?: readonly Material[];
  readonly now?: Date;
  readonly packages?: () => Promise<readonly Package[]>;
  readonly isAttested?: boolean;
}

/** Returns the error of a gate with these rules, for an image that has just been built. */
type Gate = (attempt?: Attempt) => Promise<string | undefined>;

function unexpected(): never {
  assert.fail('no rule needs the packages');
}

function unreadable(): Promise<never> {
  return Promise.reject(new Error('it is too large'));
}

function gateAt(directory: string): Gate {
  return async ({ rules = {}, materials = MATERIALS, now = NOW, packages, isAttested = true } = {}) => {
    const { attester, trusted } = await createSite(directory);
    const build = await finishBuild(directory, 'debian-1', { materials });
    await attester.attestBuild(build);
    const files = build.manifest.files.map((file) => ({ ...file, path: `debian-1.${file.format}` }));
    const found = isAttested ? await readAttestations(directory, 'debian-1') : [];
    const report = verifyChain({ kind: 'image', imageId: 'debian-1', files }, found, trusted, now);
    return await checkGate(rules, report, packages ?? unexpected, now);
  };
}

describe('a gate', () => {
  test('a gate without rules accepts what a trusted key proves, and nothing else', async (t) => {
    const gate = gateAt(temporaryDirectory(t));
    assert.equal(await gate(), undefined);
    assert.match(
      (await gate({ isAttested: false })) ?? '',
      /^trusted-keys: no attestation of a build or conversion covers this file/,
    );
  });

  test('a gate rejects an image by another builder', async (t) => {
    const gate = gateAt(temporaryDirectory(t));
    for (const builder of [
      'https://ci.example.org/*',
      '*builder-1',
      'https://ci.example.org/builder-1',
      '*',
    ]) {
      assert.equal(await gate({ rules: { builders: ['nobody', builder] } }), undefined, builder);
    }
    for (const builder of ['https://ci.example.org/', 'https://ci-example.org/*', 'HTTPS://*', '.*']) {
      const error = await gate({ rules: { builders: [builder] } });
      assert.equal(error, `builders: the builder https://ci.example.org/builder-1 is not one of ${builder}`);
    }
  });

  test('a gate rejects an image from another source repository, or from one with changes', async (t) => {
    const gate = gateAt(temporaryDirectory(t));
    const rules = { 'source-repositories': ['https://opendev.org/*'] };
    assert.equal(await gate({ rules }), undefined);
    const commit = { gitCommit: 'c'.repeat(40) };
    const other = {
      name: 'element ours',
      uri: `git+https://example.org/ours@${'c'.repeat(40)}`,
      digest: commit,
    };
    const [first] = MATERIALS;
    assert.ok(first !== undefined);
    for (const [material, words] of [
      [other, /^source-repositories: https:\/\/example\.org\/ours \(element ours\) is not one of/],
      [{ name: 'element local', digest: commit }, /the repository of element local has no address/],
      [{ ...first, annotations: { isModified: true } }, /had uncommitted changes/],
    ] as const) {
      assert.match((await gate({ rules, materials: [first, material] })) ?? '', words);
    }
    assert.match((await gate({ rules, materials: [] })) ?? '', /names no repository/);
  });

  test('a gate rejects an old image, and one from the future', async (t) => {
    const gate = gateAt(temporaryDirectory(t));
    const rules = { 'max-age': 1_800 }; // it finished half an hour before NOW
    assert.equal(await gate({ rules }), undefined);
    assert.match(
      (await gate({ rules, now: new Date(NOW.getTime() + 1_000) })) ?? '',
      /^max-age: the build finished 1801 s ago, which exceeds 1800 s$/,
    );
    const early = new Date(NOW.getTime() - 3_600_000);
    assert.match((await gate({ rules, now: early })) ?? '', /finished in the future/);
  });

  test('a gate rejects an image with a forbidden package', async (t) => {
    const gate = gateAt(temporaryDirectory(t));
    const packages = (): Promise<Package[]> => Promise.resolve([OPENSSL]);
    for (const [entry, isRefused] of [
      ['openssl', true],
      ['openssl@3.0.1', true],
      ['openssl@3.0.2', false],
      ['openss', false],
      ['telnetd', false],
    ] as const) {
      const error = await gate({ rules: { 'forbidden-packages': [entry] }, packages });
      const expected = isRefused ? 'forbidden-packages: the image contains openssl 3.0.1' : undefined;
      assert.equal(error, expected);
    }
    assert.equal(
      await gate({ rules: { 'forbidden-packages': ['telnetd'] }, packages: unreadable }),
      'forbidden-packages: the bill of materials cannot be read: it is too large',
    );
  });
});

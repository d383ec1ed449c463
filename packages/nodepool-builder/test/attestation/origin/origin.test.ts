import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { originOfBuild, readKeys } from '../../../src/attestation/origin/origin.ts';
import { packPackages, unpackPackages } from '../../../src/attestation/origin/package-list.ts';
import { AttestedSite, debianPackage, writeKeyPair } from './attested-site.ts';

const ELEMENT = {
  name: 'element debian-minimal',
  uri: 'git+https://opendev.org/openstack/diskimage-builder@0123456789',
  digest: { gitCommit: '0123456789' },
  annotations: { isModified: false },
};

const [CURL_8, CURL_9, TELNET, VIM] = [
  debianPackage('curl', '8.0'),
  debianPackage('curl', '9.0'),
  debianPackage('telnet', '1.0'),
  debianPackage('vim', '9.1'),
];

describe('the origin of a build', () => {
  it('a build’s origin has its materials, the changed packages, and the proof of each upload', async (t) => {
    const site = await AttestedSite.create(t);
    await site.build('debian-1', [], [CURL_8, TELNET]);
    await site.build('debian-2', [ELEMENT], [CURL_9, VIM]);
    await site.upload('u-1', 'debian-2', 'east');
    await site.upload('u-2', 'debian-2', 'west');
    const source = await site.source();
    const origin = await originOfBuild(source, 'debian-2');
    const keyId = source.keys[0]?.keyId;
    assert.partialDeepStrictEqual(origin, {
      'image-id': 'debian-2',
      diskimage: 'debian',
      proof: { state: 'proven', 'key-id': keyId, 'key-file': site.publicKey },
      builder: 'https://ci.example.org/builder-1',
      finished: '2026-01-01T00:10:00.000Z',
      materials: [
        {
          name: ELEMENT.name,
          uri: ELEMENT.uri,
          digests: ['gitCommit:0123456789'],
          facts: ['isModified: false'],
        },
      ],
      packages: {
        count: 2,
        'compared-with': 'debian-1',
        reason: null,
        added: [{ name: 'vim', architecture: 'amd64', version: '9.1' }],
        removed: [{ name: 'telnet', architecture: 'amd64', version: '1.0' }],
        changed: [{ name: 'curl', architecture: 'amd64', before: '8.0', after: '9.0' }],
      },
      'more-uploads': 0,
    });
    assert.deepEqual(
      origin.uploads.map(({ provider, proof }) => [provider, proof.state, proof['key-id']]),
      [
        ['west', 'proven', keyId],
        ['east', 'proven', keyId],
      ],
    );
    const first = await originOfBuild(source, 'debian-1');
    assert.equal(first.packages.reason, 'the store has no package list of an earlier build');
    assert.equal(first.packages.count, 2);
  });

  it('a build’s origin is shown but not proven without a trusted key', async (t) => {
    const site = await AttestedSite.create(t);
    await site.build('debian-1', [ELEMENT]);
    await site.upload('u-1', 'debian-1', 'east');
    const none = await originOfBuild(
      { ...(await site.source()), ...(await readKeys({ diskimages: [] })) },
      'debian-1',
    );
    const reason = 'no trusted keys are configured; set attestation.trusted-keys';
    assert.deepEqual([none.proof.state, none.proof.reason], ['unproven', reason]);
    assert.deepEqual([none.uploads[0]?.proof.state, none.uploads[0]?.proof.reason], ['unproven', reason]);
    assert.equal(none.materials.length, 1);
    const { publicKey } = await writeKeyPair(site.directory, 'other');
    const other = await originOfBuild(await site.source(publicKey), 'debian-1');
    assert.equal(other.proof.state, 'unproven');
    assert.match(other.proof.reason, /was signed with the key [0-9a-f]{64}, which is not trusted/);
    assert.notEqual(other.uploads[0]?.proof.state, 'proven');
  });

  it('a build’s origin is refuted by a changed attestation', async (t) => {
    const site = await AttestedSite.create(t);
    await site.build('debian-1');
    await site.upload('u-1', 'debian-1', 'east');
    for (const [index, document] of site.documents.entries()) {
      const bundle = JSON.parse(document.text) as { dsseEnvelope: { payload: string } };
      const payload = Buffer.from(bundle.dsseEnvelope.payload, 'base64').toString();
      bundle.dsseEnvelope.payload = Buffer.from(payload.replaceAll('abab', 'cdcd')).toString('base64');
      site.documents[index] = { ...document, text: JSON.stringify(bundle) };
    }
    const origin = await originOfBuild(await site.source(), 'debian-1');
    assert.equal(origin.proof.state, 'refuted');
    assert.match(origin.proof.reason, /was changed/);
    assert.equal(origin.uploads[0]?.proof.state, 'refuted');
  });

  it('a build’s origin does not prove an upload by another upload’s attestation', async (t) => {
    const site = await AttestedSite.create(t);
    await site.build('debian-1');
    await site.upload('u-1', 'debian-1', 'east', { externalId: 'of-somebody-else' });
    const origin = await originOfBuild(await site.source(), 'debian-1');
    assert.notEqual(origin.uploads[0]?.proof.state, 'proven');
  });

  it('a build’s origin says which attestations are missing', async (t) => {
    const site = await AttestedSite.create(t);
    await site.build('debian-1');
    await site.upload('u-1', 'debian-1', 'east');
    site.documents.length = 0;
    const origin = await originOfBuild(await site.source(), 'debian-1');
    const reason = 'its builder returned no attestation';
    assert.deepEqual([origin.proof.state, origin.proof.reason], ['unproven', reason]);
    assert.equal(origin.uploads[0]?.proof.reason, reason);
    assert.equal(origin.packages.reason, 'its builder returned no package list');
    site.packages.set('debian-1', 'AAAA');
    const damaged = await originOfBuild(await site.source(), 'debian-1');
    assert.match(damaged.packages.reason ?? '', /^the package list of debian-1 cannot be read: /);
    const absent = await originOfBuild(await site.source(), 'unknown-1');
    assert.equal(absent.packages.reason, 'no manager has a record of the build');
  });

  it('a build’s origin says that the build has not ended, or failed', async (t) => {
    const site = await AttestedSite.create(t);
    await site.build('debian-1');
    site.documents.length = 0;
    const { state, ...source } = await site.source();
    const build = state.builds.get('debian-1') ?? assert.fail();
    for (const [recorded, reason] of [
      ['building', 'the build has not ended'],
      ['failed', 'the build failed'],
    ] as const) {
      const builds = new Map([[build.id, { ...build, state: recorded }]]);
      const { packages, proof } = await originOfBuild({ ...source, state: { ...state, builds } }, build.id);
      assert.deepEqual([packages.reason, proof.reason], [reason, reason]);
    }
  });

  it('a build’s origin verifies only the newest uploads', async (t) => {
    const site = await AttestedSite.create(t);
    await site.build('debian-1');
    const one = await site.upload('u-1', 'debian-1', 'east');
    for (let number = 2; number <= 1000; number += 1) {
      site.uploads.set(`u-${number}`, { ...one, id: `u-${number}`, requestedAt: one.requestedAt - number });
    }
    const origin = await originOfBuild(await site.source(), 'debian-1');
    assert.deepEqual([origin.uploads.length, origin['more-uploads']], [20, 980]);
    assert.equal(origin.uploads[0]?.proof.state, 'proven');
  });
});

describe('a packed list of packages', () => {
  it('a packed package list has all packages, and no licenses', async () => {
    const packed = (await packPackages([{ ...CURL_8, license: 'curl' }, VIM])) ?? assert.fail('too large');
    assert.deepEqual(await unpackPackages(packed), [CURL_8, VIM]);
  });

  it('a package list that would be too large is not packed', async () => {
    const many = Array.from({ length: 200_000 }, (_, index) =>
      debianPackage(`package-${index}-${(index * 2_654_435_761) % 4_294_967_296}`, `${index % 977}`),
    );
    assert.equal(await packPackages(many), undefined);
  });
});

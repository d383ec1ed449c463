import assert from 'node:assert/strict';
import { test } from 'node:test';
import { originOfBuild } from '../../src/attestation/origin/origin.ts';
import { buildOrigin, uploadOrigin } from '../../src/web/origin-parts.ts';
import { AttestedSite, debianPackage } from '../attestation/origin/attested-site.ts';

/** Returns the text of a page's part, without tags. */
function textOf(part: { readonly text: string }): string {
  return part.text.replaceAll(/<[^>]+>/g, ' ').replaceAll(/\s+/g, ' ');
}

test('a build’s page shows its proof, its materials and the changed packages', async (t) => {
  const site = await AttestedSite.create(t);
  await site.build('debian-1', [], [debianPackage('curl', '8.0'), debianPackage('vim', '9.1')]);
  const material = {
    name: 'repository <b>',
    uri: 'git+https://example.org/r@1',
    digest: { gitCommit: '0123' },
    annotations: { isModified: true },
  };
  await site.build('debian-2', [material], [debianPackage('curl', '9.0'), debianPackage('nano', '7.2')]);
  const part = buildOrigin(await originOfBuild(await site.source(), 'debian-2'));
  const text = textOf(part);
  assert.match(
    text,
    /Proof proven built by https:\/\/ci\.example\.org\/builder-1 key [0-9a-f]{12} in \S+\.pub/,
  );
  assert.match(
    text,
    /1 material repository &lt;b&gt; git\+https:\/\/example\.org\/r@1 gitCommit:0123 isModified: true/,
  );
  assert.match(text, /2 packages; 1 added, 1 removed, 1 changed since debian-1 /);
  assert.match(text, /added nano amd64 7\.2 removed vim amd64 9\.1 changed curl amd64 8\.0 → 9\.0/);
  const first = textOf(buildOrigin(await originOfBuild(await site.source(), 'debian-1')));
  assert.match(first, /2 packages: the store has no package list of an earlier build/);
});

test('an upload’s page shows each link of its chain', async (t) => {
  const site = await AttestedSite.create(t);
  await site.build('debian-1');
  await site.upload('u-1', 'debian-1', 'east');
  const { uploads } = await originOfBuild(await site.source(), 'debian-1');
  const [upload] = uploads;
  const text = textOf(uploadOrigin(upload?.proof ?? assert.fail('no upload')));
  assert.match(text, /^ ?Origin proven /);
  assert.match(text, / upload: .* build: /);
  site.documents.length = 0;
  const without = await originOfBuild(await site.source(), 'debian-1');
  const missing = textOf(uploadOrigin(without.uploads[0]?.proof ?? assert.fail('no upload')));
  assert.match(missing, /unproven its builder returned no attestation/);
});

test('the web page shows only some of many packages, and the API returns them all', async (t) => {
  const site = await AttestedSite.create(t);
  await site.build('debian-1', [], []);
  const many = Array.from({ length: 700 }, (_, index) => debianPackage(`p-${index}`, '1'));
  await site.build('debian-2', [], many);
  const text = textOf(buildOrigin(await originOfBuild(await site.source(), 'debian-2')));
  assert.match(text, /700 packages; 700 added, 0 removed, 0 changed/);
  assert.match(text, /The API has 200 more\./);
});

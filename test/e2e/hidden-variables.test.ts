import assert from 'node:assert/strict';
import { appendFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { it, type TestContext } from 'node:test';
import { startBuilder } from '../fixtures/builder-process.ts';
import { gearman } from '../fixtures/gearman-commands.ts';
import { startGearmand } from '../fixtures/gearmand.ts';
import { createSite, type Site } from '../fixtures/site.ts';
import { statementIn, writeKeys } from '../fixtures/site-key.ts';
import { undoAfter } from '../fixtures/undo-after.ts';

/** Variables whose names do not suggest a secret, or do so in a way that no pattern matches. */
const SECRETS: Readonly<Record<string, string>> = {
  DIB_DEV_USER_PASSWORD: 'correct-horse',
  API_KEY: 'battery-staple',
  GITHUB_PAT: 'pässwört-of-github',
  MYSQL_PWD: String.raw`it's "quoted" $HOME \o/`,
  NPM_AUTH: 'tab\tand bell\u0007',
  SSH_PRIVATE: '-----BEGIN KEY-----\nb3BlbnNzaC1rZXk\n-----END KEY-----',
};

const SHOWN: Readonly<Record<string, string>> = {
  DIB_JOURNAL_SIZE: '4',
  REGION: 'north-east',
  MIRROR: 'https://ci:s3cr3t-pass@mirror.example.org/debian?signature=0123456789abcdef&dist=stable',
};

/** Values that are not secret, and occur in every log. */
const ORDINARY: Readonly<Record<string, string>> = { FLAG: 'true', ONE: '1', BINARIES: '/usr/bin:/usr/sbin' };

/** Element that prints its environment in every way that a shell can, in the chroot. */
const INSTALL = `#!/bin/bash
set -eux
${Object.keys({ ...SECRETS, ...SHOWN })
  .map((name) => `echo "$${name}"\nexport ${name}\nLC_ALL=C printf '%q\\n' "$${name}"`)
  .join('\n')}
declare -p
env
true /usr/bin
`;

const PARTS = [
  'correct-horse',
  'battery-staple',
  'sswört',
  'sswrt',
  'sswo',
  'rt-of-github',
  'quoted',
  'and bell',
  'b3BlbnNzaC1rZXk',
  's3cr3t-pass',
  '0123456789abcdef',
];

async function build(
  t: TestContext,
): Promise<{ readonly site: Site; readonly log: string; readonly daemon: string }> {
  const server = await startGearmand();
  undoAfter(t, () => server.stop());
  const site = await createSite(server.port);
  undoAfter(t, () => site.remove());
  const elements = `${join(import.meta.dirname, '../elements')}:${site.directory}/elements`;
  const variables = JSON.stringify({ ELEMENTS_PATH: elements, ...SECRETS, ...SHOWN, ...ORDINARY });
  await site.configure(
    `\n  - {name: docs, elements: [mini-os, printing], formats: [raw], env-vars: ${variables}}`,
  );
  await writeKeys(site.directory);
  await appendFile(
    site.config,
    'public-variables: [MIRROR, REG*]\nattestation: {key: attestation.pem, bill-of-materials: false}\n',
  );
  const install = join(site.directory, 'elements/printing/install.d');
  await mkdir(install, { recursive: true });
  await writeFile(join(install, '60-print'), INSTALL, { mode: 0o755 });
  const builder = await startBuilder(site.config);
  undoAfter(t, () => builder.end('SIGTERM'));
  const built = await gearman(server.port, 'image-build:docs', '{"image-id": "docs-1"}');
  const log = await readFile(join(site.images, '.nodepool-builder/logs/docs-1.log'), 'utf8');
  assert.equal(built.code, 0, log);
  return { site, log, daemon: builder.log.join('\n') };
}

it('logs and statements show all variables’ names, and only harmless variables’ values', async (t) => {
  const { site, log, daemon } = await build(t);
  const bundle = await readFile(join(site.images, 'docs-1.d/attestations/build.sigstore.json'), 'utf8');
  const { predicate } = statementIn(bundle);
  for (const text of [log, daemon, JSON.stringify(predicate)]) {
    const shown = text.split('\n').filter((line) => PARTS.some((part) => line.includes(part)));
    assert.deepEqual(shown, []);
  }
  const { environment } = predicate.buildDefinition.externalParameters;
  const masked = Object.fromEntries(Object.keys({ ...SECRETS, ...ORDINARY }).map((name) => [name, '***']));
  const { ELEMENTS_PATH: _, ...rest } = environment;
  assert.deepEqual(rest, {
    ...masked,
    ...SHOWN,
    MIRROR: 'https://***@mirror.example.org/debian?signature=***&dist=stable',
  });
  for (const line of [
    /^# this log hides the values of DIB_DEV_USER_PASSWORD, API_KEY, .*, SSH_PRIVATE; name those/,
    /\+ echo \*\*\*$/,
    /declare -x REGION="north-east"/,
    /\+ true \/usr\/bin$/,
    /mirror\.example\.org\/debian/,
  ]) {
    assert.ok(
      log.split('\n').some((one) => line.test(one)),
      String(line),
    );
  }
});

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { RecordingLogger } from '../../../image-builder/test/recording-logger.ts';
import { temporaryDirectory } from '../../../image-builder/test/temporary-directory.ts';
import { artifactAccessOf } from '../../src/builds/artifact-access.ts';
import { artifactsLeft } from '../../src/builds/artifacts-left.ts';
import { buildSourceOf, zuulApiOf } from '../../src/builds/image-source.ts';
import type { ZuulSettings } from '../../src/zuul-settings.ts';
import { allBuilds, ON, QUERY, startZuul } from '../api/api-fixture.ts';
import { selfSigned } from '../api/self-signed.ts';
import { zuulFailure } from '../api/zuul-failure.ts';
import { TokenFixture } from '../credentials/token-fixture.ts';

const IMAGE: ZuulSettings = {
  'api-url': 'https://zuul.example.com/',
  ...QUERY,
  artifacts: [{ format: 'qcow2', type: 'image-qcow' }],
  'poll-interval': 60,
  'require-sha256': false,
  pause: false,
  'build-timeout': 60,
};

const logger = new RecordingLogger();

describe('the API that an image comes from', () => {
  test('is asked with its credentials, for its tenant', async (t) => {
    const fixture = await TokenFixture.create(t);
    const { zuul } = fixture;
    const path = fixture.path('token');
    await writeFile(path, await fixture.mint());
    const { uuid } = zuul.table().add();
    const api = await zuulApiOf(
      { ...IMAGE, 'api-url': zuul.url, tenant: 'example', auth: { 'token-file': path } },
      logger,
    );
    assert.deepEqual(
      (await allBuilds(api, QUERY, ON)).map((build) => build.uuid),
      [uuid],
    );
  });

  test('is trusted by the certificates of the image, and so are its artifacts', async (t) => {
    const tls = selfSigned();
    const zuul = await startZuul(t, { tls, prefix: '/zuul' });
    zuul.table().add();
    const caFile = join(await temporaryDirectory(t), 'ca.pem');
    await writeFile(caFile, tls.cert);
    const image = { ...IMAGE, 'api-url': zuul.url, tenant: 'example' };
    const api = await zuulApiOf({ ...image, 'ca-file': caFile }, logger);
    assert.equal((await allBuilds(api, QUERY, ON)).length, 1);
    // No file is served beside the API: the 404 counts only from a trusted server.
    const artifact = { format: 'qcow2', url: `${zuul.origin}/image.qcow2` } as const;
    const trusted = await artifactsLeft(
      [artifact],
      await artifactAccessOf({ ...image, 'ca-file': caFile }),
      ON,
    );
    assert.equal(trusted.gone.length, 1);
    const untrusted = await artifactsLeft([artifact], await artifactAccessOf(image), ON);
    assert.deepEqual(untrusted, { left: [{ artifact }], gone: [] });
  });

  test('is not asked without the certificates that are named', async () => {
    const image = { ...IMAGE, 'ca-file': '/nonexistent/ca.pem' };
    await assert.rejects(zuulApiOf(image, logger), zuulFailure('invalid-settings', '/nonexistent/ca.pem'));
  });
});

test('what a build returns is the image of the same name, unless another is named', () => {
  const { query, rules } = buildSourceOf('noble', { ...IMAGE, branch: 'master' });
  assert.deepEqual(query, { ...QUERY, branch: 'master' });
  assert.deepEqual(rules, { imageName: 'noble', artifacts: IMAGE.artifacts, requireSha256: false });
  assert.equal(buildSourceOf('noble', { ...IMAGE, 'image-name': 'ubuntu' }).rules.imageName, 'ubuntu');
});

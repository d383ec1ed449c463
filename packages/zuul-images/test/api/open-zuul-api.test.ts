import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { RecordingLogger } from '../../../../test/fixtures/recording-logger.ts';
import { selfSigned } from '../../../../test/fixtures/self-signed.ts';
import { temporaryDirectory } from '../../../../test/fixtures/temporary-directory.ts';
import { QUERY, startZuul } from '../../../../test/fixtures/zuul/start-zuul.ts';
import { openZuulApi } from '../../src/api/zuul-api.ts';
import { artifactAccessOf, availableArtifacts } from '../../src/zuul-artifact/available-artifacts.ts';
import type { ZuulSettings } from '../../src/zuul-settings.ts';
import { TokenFixture } from '../credentials/token-fixture.ts';
import { allBuilds, ON } from './api-fixture.ts';
import { zuulFailure } from './zuul-failure.ts';

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

describe('the API of an image', () => {
  test('an image’s Zuul API is used with its credentials and its tenant', async (t) => {
    const fixture = await TokenFixture.create(t);
    const { zuul } = fixture;
    const path = fixture.path('token');
    await writeFile(path, fixture.mint());
    const { uuid } = zuul.table().add();
    const api = await openZuulApi(
      { ...IMAGE, 'api-url': `${zuul.url}t/example`, auth: { 'token-file': path } },
      logger,
    );
    assert.deepEqual(
      (await allBuilds(api, QUERY, ON)).map((build) => build.uuid),
      [uuid],
    );
  });

  test('an image’s Zuul API and artifacts are trusted by ca-file', async (t) => {
    const tls = await selfSigned();
    const zuul = await startZuul(t, { tls, prefix: '/zuul' });
    zuul.table().add();
    const caFile = join(await temporaryDirectory(t), 'ca.pem');
    await writeFile(caFile, tls.cert);
    const image = { ...IMAGE, 'api-url': `${zuul.url}t/example` };
    const api = await openZuulApi({ ...image, 'ca-file': caFile }, logger);
    assert.equal((await allBuilds(api, QUERY, ON)).length, 1);
    // The server has no file: its 404 counts only if it is trusted.
    const artifact = { format: 'qcow2', url: `${zuul.origin}/image.qcow2` } as const;
    const trusted = await availableArtifacts(
      [artifact],
      await artifactAccessOf({ ...image, 'ca-file': caFile }),
      ON,
    );
    assert.equal(trusted.expired?.code, 'artifact-expired');
    const untrusted = await availableArtifacts([artifact], await artifactAccessOf(image), ON);
    assert.deepEqual(untrusted, { available: [{ artifact, size: undefined }], expired: undefined });
  });

  test('an image’s Zuul API is not used if ca-file is missing', async () => {
    const image = { ...IMAGE, 'ca-file': '/nonexistent/ca.pem' };
    await assert.rejects(openZuulApi(image, logger), zuulFailure('invalid-settings', '/nonexistent/ca.pem'));
  });
});

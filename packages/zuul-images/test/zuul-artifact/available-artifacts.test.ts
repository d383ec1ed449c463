import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { ImageFormat } from '@nodepool-builder/image-builder';
import { type Nginx, startNginx } from '../../../../test/fixtures/nginx.ts';
import type { ImageArtifact } from '../../src/builds/image-artifact.ts';
import { isImageExpired } from '../../src/zuul-artifact/available-artifacts.ts';
import type { ZuulSettings } from '../../src/zuul-settings.ts';

const ON = new AbortController().signal;

const ZUUL: ZuulSettings = {
  'api-url': 'https://zuul.example.com/',
  project: 'opendev/system-config',
  pipelines: ['periodic'],
  job: 'build-ubuntu-noble-image',
  artifacts: [
    { format: 'qcow2', type: 'image-qcow' },
    { format: 'tar', type: 'image-tar' },
    { format: 'raw', type: 'image-raw' },
  ],
  'poll-interval': 60,
  'require-sha256': false,
  pause: false,
  'build-timeout': 60,
  'allowed-hosts': ['127.0.0.1'],
};

const EXPIRED = 'X-Amz-Date=20200101T000000Z&X-Amz-Expires=60&X-Amz-Signature=of-a-secret';

let nginx: Nginx;
before(async () => {
  nginx = await startNginx('location /forbidden { return 403; } location /busy { return 503; }');
  await writeFile(join(nginx.directory, 'there'), 'content');
});
after(() => nginx.stop());

type Places = Partial<Record<ImageFormat, string>>;

const CASES: readonly (readonly [
  what: string,
  formats: readonly ImageFormat[],
  Places,
  isExpired: boolean,
])[] = [
  ['an image is not expired if its artifact exists', ['qcow2'], { qcow2: 'there' }, false],
  ['an image is expired if the server does not have its artifact', ['qcow2'], { qcow2: 'missing' }, true],
  ['an image is expired if its signed URL has expired', ['qcow2'], { qcow2: `forbidden?${EXPIRED}` }, true],
  ['an image is not expired if the server refuses the artifact', ['qcow2'], { qcow2: 'forbidden' }, false],
  ['an image is not expired if the server is busy', ['qcow2'], { qcow2: 'busy' }, false],
  [
    'an image is not expired if another artifact can be converted',
    ['qcow2'],
    { qcow2: 'missing', raw: 'there' },
    false,
  ],
  ['an expired artifact that is not needed is ignored', ['qcow2'], { qcow2: 'there', tar: 'missing' }, false],
  [
    'an image is expired if no other artifact can be converted',
    ['qcow2', 'tar'],
    { qcow2: 'there', tar: 'missing' },
    true,
  ],
  ['without formats, the first artifact is needed', [], { qcow2: 'missing' }, true],
  ['an artifact that the build did not return is not expired', ['qcow2', 'tar'], { qcow2: 'there' }, false],
];
for (const [what, formats, places, isExpired] of CASES) {
  test(what, async () => {
    const artifacts = Object.entries(places).map(
      ([format, path]): ImageArtifact => ({ format: format as ImageFormat, url: `${nginx.url}/${path}` }),
    );
    assert.equal(await isImageExpired(artifacts, { name: 'noble', formats }, ZUUL, ON), isExpired);
  });
}

test('an image is not expired if the server is unreachable', async () => {
  const artifact: ImageArtifact = { format: 'qcow2', url: 'http://127.0.0.1:9/image.qcow2' };
  assert.equal(await isImageExpired([artifact], { name: 'noble', formats: ['qcow2'] }, ZUUL, ON), false);
});

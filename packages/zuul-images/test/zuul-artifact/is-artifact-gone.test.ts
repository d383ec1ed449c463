import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { ImageFormat } from '@nodepool-builder/image-builder';
import { type Nginx, startNginx } from '../../../../test/fixtures/nginx.ts';
import type { ImageArtifact } from '../../src/builds/image-artifact.ts';
import { isArtifactGone } from '../../src/zuul-artifact/is-artifact-gone.ts';
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

const OVER = 'X-Amz-Date=20200101T000000Z&X-Amz-Expires=60&X-Amz-Signature=of-a-secret';

let nginx: Nginx;
before(async () => {
  nginx = await startNginx('location /forbidden { return 403; } location /busy { return 503; }');
  await writeFile(join(nginx.directory, 'there'), 'content');
});
after(() => nginx.stop());

type Places = Partial<Record<ImageFormat, string>>;

const CASES: readonly (readonly [what: string, formats: readonly ImageFormat[], Places, isGone: boolean])[] =
  [
    ['what is there is not gone', ['qcow2'], { qcow2: 'there' }, false],
    ['what the server does not have is', ['qcow2'], { qcow2: 'missing' }, true],
    ['so is what was signed for a time that is over', ['qcow2'], { qcow2: `forbidden?${OVER}` }, true],
    ['what is refused may be given later', ['qcow2'], { qcow2: 'forbidden' }, false],
    ['so may what a server is too busy for', ['qcow2'], { qcow2: 'busy' }, false],
    ['what can be made of others is not gone', ['qcow2'], { qcow2: 'missing', raw: 'there' }, false],
    ['nor is what nobody wants', ['qcow2'], { qcow2: 'there', tar: 'missing' }, false],
    ['what cannot be made of others is', ['qcow2', 'tar'], { qcow2: 'there', tar: 'missing' }, true],
    ['without formats the first one is wanted', [], { qcow2: 'missing' }, true],
    ['what was never there is not gone', ['qcow2', 'tar'], { qcow2: 'there' }, false],
  ];
for (const [what, formats, places, isGone] of CASES) {
  test(what, async () => {
    const artifacts = Object.entries(places).map(
      ([format, path]): ImageArtifact => ({ format: format as ImageFormat, url: `${nginx.url}/${path}` }),
    );
    assert.equal(await isArtifactGone(artifacts, { name: 'noble', formats }, ZUUL, ON), isGone);
  });
}

test('a server that cannot be reached says nothing', async () => {
  const artifact: ImageArtifact = { format: 'qcow2', url: 'http://127.0.0.1:9/image.qcow2' };
  assert.equal(await isArtifactGone([artifact], { name: 'noble', formats: ['qcow2'] }, ZUUL, ON), false);
});

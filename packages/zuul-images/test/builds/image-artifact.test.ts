import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ZuulArtifact } from '../../src/api/zuul-build.ts';
import { type ImageRules, imageArtifacts } from '../../src/builds/image-artifact.ts';
import { makeBuild } from '../api/make-build.ts';

const SEED: ImageRules = {
  name: 'noble',
  'require-sha256': false,
  artifacts: [
    { format: 'qcow2', type: 'image-qcow' },
    { format: 'raw', type: 'image-raw' },
  ],
};

/** Metadata as the roles in zuul-jobs return it. */
const FIELD: ImageRules = {
  name: 'noble',
  'require-sha256': false,
  artifacts: [
    { format: 'qcow2', type: 'zuul_image' },
    { format: 'raw', type: 'zuul_image' },
  ],
};

function artifact(url: string, metadata: Record<string, unknown>): ZuulArtifact {
  return { name: url, url: `https://images.example.com/${url}`, metadata };
}

function found(
  artifacts: readonly ZuulArtifact[],
  rules: ImageRules,
): readonly (readonly [string, string])[] {
  return imageArtifacts(makeBuild({ artifacts }), rules).map(({ format, url }) => [
    format,
    url.slice('https://images.example.com/'.length),
  ]);
}

describe('the artifacts of an image', () => {
  test('an image’s artifacts are found by one type for each format', () => {
    const artifacts = [
      artifact('logs', { type: 'docs_site' }),
      artifact('r', { type: 'image-raw' }),
      artifact('q', { type: 'image-qcow', format: 'qcow' }),
    ];
    assert.deepEqual(found(artifacts, SEED), [
      ['qcow2', 'q'],
      ['raw', 'r'],
    ]);
  });

  test('an image’s artifacts are found by their format if all have one type', () => {
    const artifacts = [
      artifact('v', { type: 'zuul_image', format: 'vhd' }),
      artifact('r', { type: 'zuul_image', format: 'raw' }),
      artifact('q', { type: 'zuul_image', format: 'qcow2' }),
    ];
    assert.deepEqual(found(artifacts, FIELD), [
      ['qcow2', 'q'],
      ['raw', 'r'],
    ]);
  });

  test('an image’s artifacts are found by image_name if the job builds several images', () => {
    const artifacts = ['jammy', 'noble'].map((name) =>
      artifact(name, { type: 'zuul_image', format: 'raw', image_name: name }),
    );
    assert.deepEqual(found(artifacts, FIELD), [['raw', 'noble']]);
    assert.throws(
      () => found(artifacts, { ...FIELD, name: 'bookworm' }),
      /^Error: it has several artifacts with the image_name "jammy", "noble"; set image-name to one of them$/,
    );
  });

  test('an image’s artifacts may have another image_name if the job builds one image', () => {
    const artifacts = [artifact('x', { type: 'zuul_image', format: 'raw', image_name: 'ubuntu-noble' })];
    assert.deepEqual(found(artifacts, FIELD), [['raw', 'x']]);
  });

  test('an image’s artifacts have the configured image_name, or the error lists the names that exist', () => {
    const rules = { ...FIELD, 'image-name': 'noble' };
    const jammy = artifact('j', { type: 'zuul_image', format: 'raw', image_name: 'jammy' });
    const unnamed = artifact('u', { type: 'zuul_image', format: 'raw' });
    assert.throws(
      () => found([jammy, unnamed], rules),
      /^Error: none of its artifacts has the image_name "noble" that image-name requires: they have "jammy"$/,
    );
    assert.throws(
      () => found([unnamed], rules),
      /image_name "noble" that image-name requires: they have none$/,
    );
    const noble = artifact('n', { type: 'zuul_image', format: 'raw', image_name: 'noble' });
    assert.deepEqual(found([jammy, unnamed, noble], rules), [['raw', 'n']]);
  });

  test('an image’s artifacts never belong to two images in two formats', () => {
    const raw = artifact('r', { type: 'zuul_image', format: 'raw', image_name: 'jammy' });
    const qcow2 = (name: string): ZuulArtifact =>
      artifact('q', { type: 'zuul_image', format: 'qcow2', image_name: name });
    assert.deepEqual(found([raw, qcow2('noble')], FIELD), [['qcow2', 'q']]);
    assert.throws(
      () => found([raw, qcow2('bionic')], FIELD),
      /several artifacts with the image_name "bionic", "jammy"/,
    );
  });

  test('artifacts without image_name count for each image, unless there are several in a format', () => {
    const qcow2 = artifact('q', { type: 'zuul_image', format: 'qcow2', image_name: 'noble' });
    const raw = (url: string): ZuulArtifact => artifact(url, { type: 'zuul_image', format: 'raw' });
    assert.deepEqual(found([qcow2, raw('r')], FIELD), [
      ['qcow2', 'q'],
      ['raw', 'r'],
    ]);
    assert.throws(
      () => found([raw('r'), raw('s')], FIELD),
      /several artifacts of type "zuul_image" for raw without image_name; let the job return an image_name for each/,
    );
  });

  test('an image’s artifact may be returned twice by its job', () => {
    const one = artifact('q', { type: 'image-qcow' });
    assert.deepEqual(found([one, one], SEED), [['qcow2', 'q']]);
  });

  test('an image’s artifacts have the digests that the job returned, in lower case', () => {
    const [image] = imageArtifacts(
      makeBuild({
        artifacts: [
          artifact('q', { type: 'image-qcow', sha256: 'AB'.repeat(32), md5: '', crc32: '0a0b0c0d' }),
        ],
      }),
      SEED,
    );
    assert.deepEqual([image?.sha256, image?.md5, image?.crc32], ['ab'.repeat(32), undefined, '0a0b0c0d']);
  });

  test('an image’s artifacts have the digest md5sum that the zuul-jobs roles return', () => {
    const one = artifact('q', { type: 'image-qcow', md5sum: 'CD'.repeat(16) });
    const [image] = imageArtifacts(makeBuild({ artifacts: [one] }), SEED);
    assert.equal(image?.md5, 'cd'.repeat(16));
  });

  test('an image’s artifacts are rejected with an invalid digest', () => {
    for (const sha256 of ['abc', 'x'.repeat(64), 5]) {
      assert.throws(
        () => found([artifact('q', { type: 'image-qcow', sha256 })], SEED),
        /sha256 .* 64 hexadecimal/,
      );
    }
  });

  test('a build without artifacts for the image is rejected, with the reasons for ignoring others', () => {
    const build = makeBuild({ artifacts: [], unusableArtifacts: ['artifact "x": its URL is relative'] });
    assert.throws(
      () => imageArtifacts(build, SEED),
      /^Error: none of its artifacts is the image; artifact "x": its URL is relative$/,
    );
  });
});

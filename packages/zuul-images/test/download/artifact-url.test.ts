import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withCode } from '../../../image-builder/test/with-code.ts';
import { codingOf, nameOf, wireUrl } from '../../src/download/artifact-url.ts';

test('a bucket is a path of the endpoint', () => {
  for (const endpoint of ['https://s3.example.com/base', 'https://s3.example.com/base/']) {
    assert.equal(
      wireUrl('s3://images/a/b.raw.zst', endpoint).href,
      'https://s3.example.com/base/images/a/b.raw.zst',
    );
  }
});

test('an URL that cannot be used is named without its query', () => {
  for (const [url, message] of [
    ['images/a.raw?sig=secret', /^(?!.*secret).*not absolute; resolve it/],
    ['s3://images/a.raw?sig=secret', /^(?!.*secret).*s3:\/\/images\/a.raw is; set the URL/],
    ['file:///etc/passwd', /its scheme is file/],
  ] as const) {
    assert.throws(() => wireUrl(url, undefined), withCode('invalid-configuration', message));
  }
});

test('a name has neither query nor credentials', () => {
  assert.equal(nameOf(new URL('https://me:secret@h:8443/a.raw?sig=secret#x')), 'https://h:8443/a.raw');
});

test('the end of the path tells how an object is packed', () => {
  const codings = ['a.raw.zst?x=.gz', 'a.XZ', 'a.vhd.gz', 'a.qcow2', 'a.zst/b', ''].map((path) =>
    codingOf(new URL(path, 'https://h/')),
  );
  assert.deepEqual(codings, ['zstd', 'xz', 'gzip', undefined, undefined, undefined]);
});

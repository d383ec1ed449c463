import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RecordingLogger } from '../../../test/fixtures/recording-logger.ts';
import { documentsOf } from '../src/documents.ts';
import { BUILD_BUNDLE, bundle } from './store/records.ts';

const UPLOAD_BUNDLE = bundle('https://nodepool-builder.dev/upload/v1');

/** Reads a result, of an upload by default. Returns the documents and the warnings. */
function read(result: Parameters<typeof documentsOf>[0], uploadId: string | undefined = 'u-1') {
  const logger = new RecordingLogger();
  return { documents: documentsOf(result, 'debian-1', uploadId, logger), lines: logger.lines };
}

test('an upload’s attestation belongs to the upload, and the others to the build', () => {
  const { documents, lines } = read({ attestations: [BUILD_BUNDLE, UPLOAD_BUNDLE], packages: 'H4sI' });
  assert.deepEqual(documents, [
    { kind: 'attestation', imageId: 'debian-1', text: BUILD_BUNDLE },
    { kind: 'attestation', imageId: 'debian-1', uploadId: 'u-1', text: UPLOAD_BUNDLE },
    { kind: 'packages', imageId: 'debian-1', text: 'H4sI' },
  ]);
  assert.deepEqual(lines, []);
});

test('a build whose builder returns no documents causes no warning', () => {
  assert.deepEqual(read({}), { documents: [], lines: [] });
});

for (const [what, text, reason] of [
  ['is too large', JSON.stringify({ more: 'x'.repeat(2 ** 20) }), 'it has 1048587 bytes, and the limit is'],
  ['is not JSON', BUILD_BUNDLE.slice(0, -1), 'it is not JSON'],
  ['is not a text', 7, 'it is not text'],
  ['is half a character', `${BUILD_BUNDLE}\ud83c`, 'it is not valid Unicode'],
  ['is not a bundle', '{}', 'dsseEnvelope is missing'],
  ['contains no statement', JSON.stringify({ dsseEnvelope: { payload: 'AAAA' } }), 'it is not JSON'],
  ['has a NUL', `${BUILD_BUNDLE}\0`, 'it is not JSON'],
] as const) {
  test(`an attestation that ${what} is omitted with a warning`, () => {
    const { documents, lines } = read({ attestations: [text, UPLOAD_BUNDLE] });
    assert.deepEqual(
      documents.map(({ uploadId }) => uploadId),
      ['u-1'],
    );
    assert.equal(lines.length, 1);
    assert.ok(
      lines[0]?.includes(
        `upload u-1 of debian-1: attestation 1 that the builder returned is not stored: ${reason}`,
      ),
      lines[0],
    );
  });
}

test('a list of attestations that is not an array, or too long, is omitted with a warning', () => {
  const { documents, lines } = read({ attestations: BUILD_BUNDLE, packages: '<>' });
  assert.deepEqual(documents, []);
  assert.match(lines.join('\n'), /the list of attestations .* it is not an array/);
  assert.match(lines.join('\n'), /the package list .* it is not base64/);
  const many = read({ attestations: Array.from({ length: 20 }, () => BUILD_BUNDLE) });
  assert.equal(many.documents.length, 16);
  assert.match(many.lines.join('\n'), /attestation 17 and the rest .* the limit is 16 attestations/);
});

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { readStatement } from '../src/bundle.ts';
import { provenanceFailure } from './provenance-failure.ts';

const STATEMENT = {
  _type: 'https://in-toto.io/Statement/v1',
  subject: [{ name: 'file', digest: { sha256: 'a'.repeat(64), sha512: 'b' } }],
  predicateType: 'https://example.org/predicate/v1',
  predicate: { key: 'value' },
};

function read(statement: unknown): ReturnType<typeof readStatement> {
  return readStatement(Buffer.from(JSON.stringify(statement)), 'here');
}

describe('a statement', () => {
  test('an attestation’s statement is read, also in the version that cosign 2 writes', () => {
    const expected = {
      subjects: [{ name: 'file', sha256: 'a'.repeat(64) }],
      predicateType: STATEMENT.predicateType,
      predicate: STATEMENT.predicate,
    };
    assert.deepEqual(read(STATEMENT), expected);
    assert.deepEqual(read({ ...STATEMENT, _type: 'https://in-toto.io/Statement/v0.1' }), expected);
  });

  test('an attestation’s statement in another form is rejected', () => {
    for (const [statement, words] of [
      [{ ...STATEMENT, _type: 'https://in-toto.io/Statement/v2' }, '_type'],
      [{ ...STATEMENT, subject: [] }, 'subject'],
      [
        { ...STATEMENT, subject: [{ name: 'file', digest: { md5: 'a' } }] },
        'subject[0].digest.sha256 is missing',
      ],
      [{ ...STATEMENT, subject: [{ name: 'file', digest: { sha256: 'short' } }] }, 'sha256'],
      [{ ...STATEMENT, predicate: 'text' }, 'predicate is not an object'],
      ['text', 'it is not an object'],
    ] as const) {
      assert.throws(() => read(statement), provenanceFailure('statement-invalid', 'here', words));
    }
    for (const bytes of [Buffer.from('{'), Buffer.from([0xff, 0xfe])]) {
      assert.throws(() => readStatement(bytes, 'here'), provenanceFailure('statement-invalid', 'here'));
    }
  });
});
